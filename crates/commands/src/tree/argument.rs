use std::ffi::OsString;

use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::spelling::OptionSpelling;
use super::value::ValueKind;

/// One argument of a command, as a member of a call's arguments.
#[derive(Clone, Debug)]
pub(super) struct ClapArgument {
    /// What callers call it.
    pub(super) property: String,
    /// What clap calls it.
    pub(super) id: String,
    /// How deep the command that has it lies: 0 is the program itself.
    pub(super) level: usize,
    pub(super) placement: ArgumentPlacement,
    pub(super) arity: ArgumentArity,
    pub(super) kind: ValueKind,
    pub(super) required: bool,
    /// The character at which the program splits one value into several.
    pub(super) delimiter: Option<char>,
    /// What the program takes where the argument is there without a value; `None` if that is not known.
    pub(super) default_missing_value: Option<Vec<OsString>>,
    default: Option<Value>,
    help: String,
}

/// Where an argument stands on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentPlacement {
    Named(OptionSpelling),
    /// By its number among those without a name; the last one may have to stand behind `--`.
    Positional {
        index: usize,
        last: bool,
    },
}

/// How many values an argument has, and how it takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentArity {
    /// None: it is there or not. The value is what the program sees if it is there.
    Flag {
        value_if_present: bool,
    },
    /// None: it counts how often it is there.
    Count,
    One,
    /// One, or none at all.
    OptionalValue,
    /// Several, each in an occurrence of its own.
    Repeated,
    /// Several in one occurrence, joined by the delimiter.
    Delimited,
    /// Several in one occurrence, one after the other.
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
    /// Takes over an argument of clap; `None` is one that shows something instead of running the command.
    pub(super) fn from_arg(arg: &Arg, level: usize) -> Option<Self> {
        let place = match OptionSpelling::from_arg(arg) {
            Some(spelling) => ArgumentPlacement::Named(spelling),
            None => ArgumentPlacement::Positional { index: arg.get_index()?, last: arg.is_last_set() },
        };
        let shape = ArgumentArity::from_arg(arg)?;
        let kind = if shape.takes_values() { ValueKind::from_arg(arg) } else { ValueKind::Boolean };
        // `true` cannot mean a value and no value at once.
        let shape = if shape == ArgumentArity::OptionalValue && kind == ValueKind::Boolean {
            ArgumentArity::One
        } else {
            shape
        };
        let mut argument = Self {
            property: arg.get_id().to_string(),
            id: arg.get_id().to_string(),
            level,
            placement: place,
            arity: shape,
            kind,
            // What the environment gives need not be said.
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

    /// Reports whether an empty text means that the argument is not given: so old callers leave one out.
    pub(super) fn empty_is_absent(&self) -> bool {
        !self.required
            && matches!(self.arity, ArgumentArity::One | ArgumentArity::OptionalValue)
            && matches!(self.kind, ValueKind::Text)
    }

    /// Returns the JSON Schema of the argument, with what is to be known beside it in its description.
    pub(super) fn schema(&self, notes: &[String]) -> Value {
        let mut schema = self.arity_schema();
        let mut told: Vec<String> = Vec::new();
        told.extend((!self.help.is_empty()).then(|| self.help.trim().to_owned()));
        told.extend(self.kind.notes());
        if let ArgumentArity::Flag { value_if_present: false } = self.arity
            && let ArgumentPlacement::Named(spelling) = &self.placement
        {
            told.push(format!("False stands for `{spelling}`."));
        }
        told.extend(notes.iter().cloned());
        if !told.is_empty() {
            schema.insert("description".to_owned(), told.join("\n").into());
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
            ArgumentArity::Flag { value_if_present: there } => {
                json!({ "type": "boolean", "default": !there })
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

    /// Returns the JSON Schema of the values that mean that the argument is not given.
    pub(super) fn absent_schema(&self) -> Value {
        match &self.arity {
            ArgumentArity::Flag { value_if_present: there } => json!({ "const": !there }),
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

    /// Reports whether the argument can be there in a call and still mean that it is not given.
    pub(super) fn may_mean_absent(&self) -> bool {
        self.absent_schema() != Value::Bool(false)
    }
}

impl ArgumentArity {
    fn from_arg(arg: &Arg) -> Option<Self> {
        let range = arg.get_num_args().unwrap_or_else(|| 1.into());
        let (least, most) = (range.min_values(), range.max_values());
        let positional = arg.is_positional();
        let shape = match arg.get_action() {
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
            // What shows help or the version does not run the command.
            _ => return None,
        };
        Some(shape)
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

/// Writes a character for use within the brackets of a regular expression.
fn escape_for_char_class(character: char) -> String {
    match character {
        '\\' | ']' | '[' | '^' | '-' => format!("\\{character}"),
        plain => plain.to_string(),
    }
}
