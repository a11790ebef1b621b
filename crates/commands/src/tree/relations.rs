use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use serde_json::{Map, Value, json};

use super::argument::{ArgumentArity, ArgumentPlacement, ClapArgument};
use super::value::ValueKind;

/// What the arguments of one command have to do with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArgumentRelations {
    /// Pairs that cannot both be given, by their places in the list of arguments.
    pub(super) conflicts: Vec<(usize, usize)>,
    /// The first of each pair can be given only with the second.
    pub(super) requires: Vec<(usize, usize)>,
    /// Groups of which at least one has to be given.
    pub(super) any_of: Vec<Vec<usize>>,
}

impl ArgumentRelations {
    /// Finds out what clap tells of the arguments of a command that is built.
    pub(super) fn from_command(command: &Command, arguments: &[ClapArgument]) -> Self {
        let mut relations = Self::default();
        let find = |id: &str| arguments.iter().position(|argument| argument.id == id);
        for arg in command.get_arguments() {
            let Some(at) = find(arg.get_id().as_str()) else { continue };
            for other in command.get_arg_conflicts_with(arg) {
                relations.add_conflict(at, find(other.get_id().as_str()));
            }
            if arg.is_exclusive_set() {
                (0..arguments.len()).for_each(|other| relations.add_conflict(at, Some(other)));
            }
        }
        for group in command.get_groups() {
            let members: Vec<usize> = group.get_args().filter_map(|id| find(id.as_str())).collect();
            // The question is asked of a copy, since clap wants to change what it asks.
            if !group.clone().is_multiple() {
                for (nth, first) in members.iter().enumerate() {
                    members
                        .iter()
                        .skip(nth + 1)
                        .for_each(|second| relations.add_conflict(*first, Some(*second)));
                }
            }
            if group.is_required_set() && !members.is_empty() {
                relations.any_of.push(members);
            }
        }
        relations.require_earlier_positionals(command, arguments);
        relations
    }

    fn add_conflict(&mut self, first: usize, second: Option<usize>) {
        let Some(second) = second.filter(|second| *second != first) else { return };
        let pair = (first.min(second), first.max(second));
        if !self.conflicts.contains(&pair) {
            self.conflicts.push(pair);
        }
    }

    /// Has a value by its place need those before it, which could not be told from it otherwise.
    fn require_earlier_positionals(&mut self, command: &Command, arguments: &[ClapArgument]) {
        if command.is_allow_missing_positional_set() {
            return;
        }
        for (at, argument) in arguments.iter().enumerate() {
            let ArgumentPlacement::Positional { index, last: false } = argument.placement else { continue };
            let before = arguments.iter().enumerate().filter(|(_, other)| {
                matches!(other.placement, ArgumentPlacement::Positional { index: other, last: false } if other < index)
                    && !other.required
                    && other.level == argument.level
            });
            self.requires.extend(before.map(|(other, _)| (at, other)));
        }
    }

    /// Returns a call of no more than what is required.
    pub(super) fn minimal_call(&self, arguments: &[ClapArgument]) -> Map<String, Value> {
        let required = arguments.iter().filter(|argument| argument.required);
        let first = self.any_of.iter().filter_map(|group| arguments.get(*group.first()?));
        required.chain(first).map(|argument| (argument.property.clone(), sample_value(argument))).collect()
    }

    /// Finds out which argument needs which, by trying each: clap does not tell.
    ///
    /// `complaint` reads a call with these arguments as the program would.
    pub(super) fn probe_requirements(
        &mut self,
        command: &Command,
        arguments: &[ClapArgument],
        mut complaint: impl FnMut(&Map<String, Value>) -> Option<clap::Error>,
    ) {
        let least = self.minimal_call(arguments);
        let positions = self.requires.clone();
        for (at, argument) in arguments.iter().enumerate().filter(|(_, argument)| !argument.required) {
            let mut call = least.clone();
            call.insert(argument.property.clone(), sample_value(argument));
            for (_, before) in positions.iter().filter(|(needing, _)| *needing == at) {
                let before = arguments.get(*before);
                call.extend(before.map(|before| (before.property.clone(), sample_value(before))));
            }
            let Some(error) = complaint(&call) else { continue };
            for missing in missing_arguments(&error) {
                let by_display = |arg: &&Arg| arg.to_string() == missing;
                let Some(arg) = command.get_arguments().find(by_display) else { continue };
                let other = arguments.iter().position(|other| other.id == arg.get_id().as_str());
                self.requires
                    .extend(other.map(|other| (at, other)).filter(|pair| !self.requires.contains(pair)));
            }
        }
    }

    /// Adds what JSON Schema can say of the relations to the schema of a command's arguments.
    ///
    /// `anyOf`, `oneOf` and `allOf` stand only below the top, since some models' interfaces refuse them there.
    pub(super) fn add_to(&self, schema: &mut Map<String, Value>, arguments: &[ClapArgument]) {
        let mut required: Map<String, Value> = Map::new();
        let mut schemas: Map<String, Value> = Map::new();
        for (first, second) in &self.requires {
            let (Some(first), Some(second)) = (arguments.get(*first), arguments.get(*second)) else {
                continue;
            };
            if first.may_mean_absent() || second.may_mean_absent() {
                let either = json!({ "anyOf": [absent(first), present(second)] });
                push(&mut schemas, &first.property, either);
            } else {
                push(&mut required, &first.property, second.property.clone().into());
            }
        }
        for (first, second) in &self.conflicts {
            let (Some(first), Some(second)) = (arguments.get(*first), arguments.get(*second)) else {
                continue;
            };
            let without = if first.may_mean_absent() {
                json!({ "anyOf": [absent(first), absent(second)] })
            } else {
                absent(second)
            };
            push(&mut schemas, &first.property, without);
        }
        for rules in schemas.values_mut() {
            *rules = json!({ "allOf": std::mem::take(rules) });
        }
        let none_of = self.any_of.iter().map(|group| {
            let members = group.iter().filter_map(|member| arguments.get(*member));
            let properties: Map<String, Value> =
                members.map(|member| (member.property.clone(), member.absent_schema())).collect();
            json!({ "properties": properties })
        });
        let none_of: Vec<Value> = none_of.collect();
        schema.extend((!required.is_empty()).then(|| ("dependentRequired".to_owned(), required.into())));
        schema.extend((!schemas.is_empty()).then(|| ("dependentSchemas".to_owned(), schemas.into())));
        schema.extend((!none_of.is_empty()).then(|| ("not".to_owned(), json!({ "anyOf": none_of }))));
    }

    /// Says the relations of one argument in words.
    pub(super) fn notes(&self, at: usize, arguments: &[ClapArgument]) -> Vec<String> {
        let name = |at: usize| arguments.get(at).map(|argument| format!("`{}`", argument.property));
        let listed = |names: Vec<String>| names.join(", ");
        let conflicts = self.conflicts.iter().filter_map(|(first, second)| match (*first, *second) {
            (first, second) if first == at => name(second),
            (first, second) if second == at => name(first),
            _ => None,
        });
        let conflicts: Vec<String> = conflicts.collect();
        let needs = self.requires.iter().filter(|(first, _)| *first == at);
        let needs: Vec<String> = needs.filter_map(|(_, second)| name(*second)).collect();
        let mut notes = Vec::new();
        notes.extend((!conflicts.is_empty()).then(|| format!("Not together with {}.", listed(conflicts))));
        notes.extend((!needs.is_empty()).then(|| format!("Only together with {}.", listed(needs))));
        for group in self.any_of.iter().filter(|group| group.contains(&at)) {
            let members = listed(group.iter().filter_map(|member| name(*member)).collect());
            notes.push(format!("At least one of {members} is needed."));
        }
        notes
    }
}

fn absent(argument: &ClapArgument) -> Value {
    json!({ "properties": { argument.property.as_str(): argument.absent_schema() } })
}

fn present(argument: &ClapArgument) -> Value {
    let mut schema = json!({ "required": [argument.property] });
    if let (true, Some(schema)) = (argument.may_mean_absent(), schema.as_object_mut()) {
        let properties = json!({ argument.property.as_str(): { "not": argument.absent_schema() } });
        schema.insert("properties".to_owned(), properties);
    }
    schema
}

fn push(lists: &mut Map<String, Value>, key: &str, item: Value) {
    let list = lists.entry(key).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// Returns the arguments that clap misses, as it displays them.
fn missing_arguments(error: &clap::Error) -> Vec<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => missing.clone(),
        _ => Vec::new(),
    }
}

/// Returns a value that an argument takes, whatever else there is.
fn sample_value(argument: &ClapArgument) -> Value {
    let one = match &argument.kind {
        ValueKind::Text | ValueKind::Character => "x".into(),
        ValueKind::Boolean => true.into(),
        ValueKind::Number => 1.into(),
        // A number below zero would look like a flag where nothing stands before it.
        ValueKind::Integer { least, most } => i64::try_from(0.clamp(*least, *most)).unwrap_or(1).into(),
        ValueKind::Choice(choices) => choices.first().map_or(Value::Null, |(name, _)| name.clone().into()),
    };
    match argument.arity {
        ArgumentArity::Flag { value_if_present: there } => there.into(),
        ArgumentArity::Count => 1.into(),
        ArgumentArity::One | ArgumentArity::OptionalValue => one,
        ArgumentArity::Repeated | ArgumentArity::Delimited => json!([one]),
        ArgumentArity::Sequence { least, .. } => vec![one; least.max(1)].into(),
        ArgumentArity::Sequences { least, .. } => json!([vec![one; least.max(1)]]),
    }
}
