use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use serde_json::{Map, Value, json};

use super::argument::{ArgumentArity, ArgumentPlacement, ClapArgument};
use super::value::ValueKind;

/// The relations between the arguments of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArgumentRelations {
    /// Pairs of conflicting arguments, by their indices in the list of arguments.
    pub(super) conflicts: Vec<(usize, usize)>,
    /// Pairs in which the first argument requires the second.
    pub(super) requires: Vec<(usize, usize)>,
    /// Groups that require at least one of their members.
    pub(super) any_of: Vec<Vec<usize>>,
}

impl ArgumentRelations {
    /// Returns the relations that clap exposes for a built command.
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
            // A copy, since clap's getter takes `&mut self`.
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

    /// Makes a positional require those before it, since it would otherwise be parsed as one of them.
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

    /// Returns a call with the required arguments only.
    pub(super) fn minimal_call(&self, arguments: &[ClapArgument]) -> Map<String, Value> {
        let required = arguments.iter().filter(|argument| argument.required);
        let first = self.any_of.iter().filter_map(|group| arguments.get(*group.first()?));
        required.chain(first).map(|argument| (argument.property.clone(), sample_value(argument))).collect()
    }

    /// Probes which argument requires which, since clap does not expose it.
    ///
    /// `parse_error` parses a call with these arguments as the program would, and returns its error.
    pub(super) fn probe_requirements(
        &mut self,
        command: &Command,
        arguments: &[ClapArgument],
        mut parse_error: impl FnMut(&Map<String, Value>) -> Option<clap::Error>,
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
            let Some(error) = parse_error(&call) else { continue };
            for missing in missing_arguments(&error) {
                let by_display = |arg: &&Arg| arg.to_string() == missing;
                let Some(arg) = command.get_arguments().find(by_display) else { continue };
                let other = arguments.iter().position(|other| other.id == arg.get_id().as_str());
                self.requires
                    .extend(other.map(|other| (at, other)).filter(|pair| !self.requires.contains(pair)));
            }
        }
    }

    /// Adds the relations to the JSON Schema of a command's arguments, as far as it can express them.
    ///
    /// `anyOf`, `oneOf` and `allOf` are used only below the top level, since some model APIs reject them there.
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

    /// Describes the relations of one argument.
    pub(super) fn notes(&self, at: usize, arguments: &[ClapArgument]) -> Vec<String> {
        let name = |at: usize| arguments.get(at).map(|argument| format!("`{}`", argument.property));
        let listed = |names: Vec<String>| names.join(", ");
        let conflicts = self.conflicts.iter().filter_map(|(first, second)| match (*first, *second) {
            (first, second) if first == at => name(second),
            (first, second) if second == at => name(first),
            _ => None,
        });
        let conflicts: Vec<String> = conflicts.collect();
        let requirements = self.requires.iter().filter(|(first, _)| *first == at);
        let requirements: Vec<String> = requirements.filter_map(|(_, second)| name(*second)).collect();
        let mut notes = Vec::new();
        notes.extend((!conflicts.is_empty()).then(|| format!("Not together with {}.", listed(conflicts))));
        notes.extend(
            (!requirements.is_empty()).then(|| format!("Only together with {}.", listed(requirements))),
        );
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

/// Returns the missing arguments of a clap error, as clap displays them.
fn missing_arguments(error: &clap::Error) -> Vec<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => missing.clone(),
        _ => Vec::new(),
    }
}

/// Returns a value that an argument accepts.
fn sample_value(argument: &ClapArgument) -> Value {
    let one = match &argument.kind {
        ValueKind::Text | ValueKind::Character => "x".into(),
        ValueKind::Boolean => true.into(),
        ValueKind::Number => 1.into(),
        // A negative number could be parsed as an option.
        ValueKind::Integer { least, most } => i64::try_from(0.clamp(*least, *most)).unwrap_or(1).into(),
        ValueKind::Choice(choices) => choices.first().map_or(Value::Null, |(name, _)| name.clone().into()),
    };
    match argument.arity {
        ArgumentArity::Flag { value_if_present } => value_if_present.into(),
        ArgumentArity::Count => 1.into(),
        ArgumentArity::One | ArgumentArity::OptionalValue => one,
        ArgumentArity::Repeated | ArgumentArity::Delimited => json!([one]),
        ArgumentArity::Sequence { least, .. } => vec![one; least.max(1)].into(),
        ArgumentArity::Sequences { least, .. } => json!([vec![one; least.max(1)]]),
    }
}
