use std::ffi::OsString;

use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::spelling::OptionSpelling;
use super::value::ValueKind;

/// One argument of a command, as a member of a call's arguments.
#[derive(Clone, Debug)]
pub(super) struct ClapArgument {
    /// Its property name in calls.
    pub(super) property: String,
    /// Its clap id.
    pub(super) id: String,
    /// The depth of its command: 0 is the program itself.
    pub(super) level: usize,
    pub(super) placement: ArgumentPlacement,
    pub(super) arity: ArgumentArity,
    pub(super) kind: ValueKind,
    pub(super) required: bool,
    /// The character at which the program splits one value into several.
    pub(super) delimiter: Option<char>,
    /// The values that clap assumes if the option has no value; `None` if unknown.
    pub(super) default_missing_value: Option<Vec<OsString>>,
    default: Option<Value>,
    help: String,
}

/// The placement of an argument on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentPlacement {
    Named(OptionSpelling),
    /// A positional argument, by index; the last one may have to follow `--`.
    Positional {
        index: usize,
        last: bool,
    },
}

/// The number of values of an argument, and how they are passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentArity {
    /// No value. `value_if_present` is what the program reads if the flag is present.
    Flag {
        value_if_present: bool,
    },
    /// No value: the occurrences are counted.
    Count,
    One,
    /// One value, or none at all.
    OptionalValue,
    /// Several values, each in an occurrence of its own.
    Repeated,
    /// Several values in one occurrence, joined by the delimiter.
    Delimited,
    /// Several values in one occurrence, as separate words.
    Sequence {
        least: usize,
        most: usize,
    },
    /// Several occurrences of several values each.
    Sequences {
        least: usize,
        most: usize,
    },
}

impl ClapArgument {
    /// Converts a clap argument; `None` for one that prints help or the version.
    pub(super) fn from_arg(arg: &Arg, level: usize) -> Option<Self> {
        let placement = match OptionSpelling::from_arg(arg) {
            Some(spelling) => ArgumentPlacement::Named(spelling),
            None => ArgumentPlacement::Positional { index: arg.get_index()?, last: arg.is_last_set() },
        };
        let arity = ArgumentArity::from_arg(arg)?;
        let kind = if arity.takes_values() { ValueKind::from_arg(arg) } else { ValueKind::Boolean };
        // `true` would be ambiguous: a value, or no value.
        let arity = if arity == ArgumentArity::OptionalValue && kind == ValueKind::Boolean {
            ArgumentArity::One
        } else {
            arity
        };
        let mut argument = Self {
            property: arg.get_id().to_string(),
            id: arg.get_id().to_string(),
            level,
            placement,
            arity,
            kind,
            // Not required if the environment supplies the value.
            required: arg.is_required_set() && !has_env_value(arg),
            delimiter: arg.get_value_delimiter(),
            default_missing_value: None,
            default: None,
            help: arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default(),
        };
        argument.default = argument.default_value(arg);
        Some(argument)
    }

    fn default_value(&self, arg: &Arg) -> Option<Value> {
        let texts: Vec<&str> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        match &self.arity {
            ArgumentArity::Flag { .. } | ArgumentArity::Count | ArgumentArity::Sequences { .. } => None,
            ArgumentArity::One | ArgumentArity::OptionalValue => self.kind.value(texts.first()?),
            ArgumentArity::Repeated | ArgumentArity::Delimited | ArgumentArity::Sequence { .. } => {
                let values: Option<Vec<Value>> = texts.iter().map(|text| self.kind.value(text)).collect();
                values.filter(|values| !values.is_empty()).map(Value::Array)
            }
        }
    }

    /// Reports whether an empty string means that the argument is absent: older callers omit arguments so.
    pub(super) fn empty_is_absent(&self) -> bool {
        !self.required
            && matches!(self.arity, ArgumentArity::One | ArgumentArity::OptionalValue)
            && matches!(self.kind, ValueKind::Text)
    }

    /// Returns the JSON Schema of the argument, with notes in its description.
    pub(super) fn schema(&self, notes: &[String]) -> Value {
        let mut schema = self.arity_schema();
        let mut description: Vec<String> = Vec::new();
        description.extend((!self.help.is_empty()).then(|| self.help.trim().to_owned()));
        description.extend(self.kind.notes());
        if let ArgumentArity::Flag { value_if_present: false } = self.arity
            && let ArgumentPlacement::Named(spelling) = &self.placement
        {
            description.push(format!("False stands for `{spelling}`."));
        }
        description.extend(notes.iter().cloned());
        if !description.is_empty() {
            schema.insert("description".to_owned(), description.join("\n").into());
        }
        if let Some(default) = &self.default {
            schema.insert("default".to_owned(), default.clone());
        }
        Value::Object(schema)
    }

    fn arity_schema(&self) -> Map<String, Value> {
        let mut one = self.kind.schema();
        if let (Some(delimiter), ValueKind::Text) = (self.delimiter, &self.kind) {
            one.insert("pattern".to_owned(), format!("^[^{}]*$", escape_for_char_class(delimiter)).into());
        }
        let schema = match &self.arity {
            ArgumentArity::Flag { value_if_present } => {
                json!({ "type": "boolean", "default": !value_if_present })
            }
            ArgumentArity::Count => {
                json!({ "type": "integer", "minimum": 0, "maximum": u8::MAX, "default": 0 })
            }
            ArgumentArity::One => Value::Object(one),
            ArgumentArity::OptionalValue if self.default_missing_value.is_none() => Value::Object(one),
            ArgumentArity::OptionalValue => {
                json!({ "anyOf": [one, { "const": true, "description": "without a value" }] })
            }
            ArgumentArity::Repeated | ArgumentArity::Delimited => {
                list(&one.into(), self.required.into(), usize::MAX)
            }
            // An empty list means that an optional argument is absent.
            ArgumentArity::Sequence { least: 1, most } => list(&one.into(), self.required.into(), *most),
            ArgumentArity::Sequence { least, most } => list(&one.into(), *least, *most),
            ArgumentArity::Sequences { least, most } => {
                list(&list(&one.into(), *least, *most), self.required.into(), usize::MAX)
            }
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// Returns the JSON Schema of values that mean that the argument is absent.
    pub(super) fn absent_schema(&self) -> Value {
        match &self.arity {
            ArgumentArity::Flag { value_if_present } => json!({ "const": !value_if_present }),
            ArgumentArity::Count => json!({ "const": 0 }),
            ArgumentArity::One | ArgumentArity::OptionalValue if self.empty_is_absent() => {
                json!({ "const": "" })
            }
            ArgumentArity::One | ArgumentArity::OptionalValue => false.into(),
            ArgumentArity::Repeated
            | ArgumentArity::Delimited
            | ArgumentArity::Sequence { .. }
            | ArgumentArity::Sequences { .. } => {
                json!({ "maxItems": 0 })
            }
        }
    }

    /// Reports whether the argument has a value that means that it is absent.
    pub(super) fn may_mean_absent(&self) -> bool {
        self.absent_schema() != Value::Bool(false)
    }
}

impl ArgumentArity {
    fn from_arg(arg: &Arg) -> Option<Self> {
        let range = arg.get_num_args().unwrap_or_else(|| 1.into());
        let (least, most) = (range.min_values(), range.max_values());
        let positional = arg.is_positional();
        let arity = match arg.get_action() {
            ArgAction::SetTrue => Self::Flag { value_if_present: true },
            ArgAction::SetFalse => Self::Flag { value_if_present: false },
            ArgAction::Count => Self::Count,
            ArgAction::Set | ArgAction::Append if most == 0 => Self::Flag { value_if_present: true },
            ArgAction::Set if arg.get_value_delimiter().is_some() && !positional => Self::Delimited,
            ArgAction::Set if most == 1 && least == 0 && !positional => Self::OptionalValue,
            ArgAction::Set if most == 1 => Self::One,
            ArgAction::Append if !positional && least <= 1 => Self::Repeated,
            ArgAction::Append if !positional => Self::Sequences { least, most },
            ArgAction::Set | ArgAction::Append => Self::Sequence { least, most },
            // Actions that print help or the version do not run the command.
            _ => return None,
        };
        Some(arity)
    }

    fn takes_values(&self) -> bool {
        !matches!(self, Self::Flag { .. } | Self::Count)
    }
}

fn has_env_value(arg: &Arg) -> bool {
    arg.get_env().is_some_and(|name| std::env::var_os(name).is_some())
}

fn list(items: &Value, least: usize, most: usize) -> Value {
    let mut schema = json!({ "type": "array", "items": items });
    if let Some(schema) = schema.as_object_mut() {
        schema.extend((least > 0).then(|| ("minItems".to_owned(), least.into())));
        schema.extend((most < usize::MAX).then(|| ("maxItems".to_owned(), most.into())));
    }
    schema
}

/// Escapes a character for a character class of a regular expression.
fn escape_for_char_class(character: char) -> String {
    match character {
        '\\' | ']' | '[' | '^' | '-' => format!("\\{character}"),
        plain => plain.to_string(),
    }
}
