use std::ffi::OsString;

use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::spelling::Spelling;
use super::value::ValueKind;

/// One argument of a command, as a member of a call's arguments.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    /// What callers call it.
    pub(super) property: String,
    /// What clap calls it.
    pub(super) id: String,
    /// How deep the command that has it lies: 0 is the program itself.
    pub(super) level: usize,
    pub(super) place: Place,
    pub(super) shape: Shape,
    pub(super) kind: ValueKind,
    pub(super) required: bool,
    /// The character at which the program splits one value into several.
    pub(super) delimiter: Option<char>,
    /// What the program takes where the argument is there without a value; `None` if that is not known.
    pub(super) missing: Option<Vec<OsString>>,
    default: Option<Value>,
    help: String,
}

/// Where an argument stands on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Option(Spelling),
    /// By its number among those without a name; the last one may have to stand behind `--`.
    Position {
        index: usize,
        last: bool,
    },
}

/// How many values an argument has, and how it takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// None: it is there or not. The value is what the program sees if it is there.
    Flag {
        there: bool,
    },
    /// None: it counts how often it is there.
    Count,
    One,
    /// One, or none at all.
    Maybe,
    /// Several, each in an occurrence of its own.
    Repeated,
    /// Several in one occurrence, joined by the delimiter.
    Joined,
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

impl Argument {
    /// Takes over an argument of clap; `None` is one that shows something instead of running the command.
    pub(super) fn of(arg: &Arg, level: usize) -> Option<Self> {
        let place = match Spelling::of(arg) {
            Some(spelling) => Place::Option(spelling),
            None => Place::Position { index: arg.get_index()?, last: arg.is_last_set() },
        };
        let shape = Shape::of(arg)?;
        let kind = if shape.takes_values() { ValueKind::of(arg) } else { ValueKind::Boolean };
        // `true` cannot mean a value and no value at once.
        let shape = if shape == Shape::Maybe && kind == ValueKind::Boolean { Shape::One } else { shape };
        let mut argument = Self {
            property: arg.get_id().to_string(),
            id: arg.get_id().to_string(),
            level,
            place,
            shape,
            kind,
            // What the environment gives need not be said.
            required: arg.is_required_set() && !has_env_value(arg),
            delimiter: arg.get_value_delimiter(),
            missing: None,
            default: None,
            help: arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default(),
        };
        argument.default = argument.default_of(arg);
        Some(argument)
    }

    fn default_of(&self, arg: &Arg) -> Option<Value> {
        let texts: Vec<&str> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        match &self.shape {
            Shape::Flag { .. } | Shape::Count | Shape::Sequences { .. } => None,
            Shape::One | Shape::Maybe => self.kind.value(texts.first()?),
            Shape::Repeated | Shape::Joined | Shape::Sequence { .. } => {
                let values: Option<Vec<Value>> = texts.iter().map(|text| self.kind.value(text)).collect();
                values.filter(|values| !values.is_empty()).map(Value::Array)
            }
        }
    }

    /// Reports whether an empty text means that the argument is not given: so old callers leave one out.
    pub(super) fn empty_is_absent(&self) -> bool {
        !self.required
            && matches!(self.shape, Shape::One | Shape::Maybe)
            && matches!(self.kind, ValueKind::Text)
    }

    /// Returns the JSON Schema of the argument, with what is to be known beside it in its description.
    pub(super) fn schema(&self, notes: &[String]) -> Value {
        let mut schema = self.shape_schema();
        let mut told: Vec<String> = Vec::new();
        told.extend((!self.help.is_empty()).then(|| self.help.trim().to_owned()));
        told.extend(self.kind.notes());
        if let Shape::Flag { there: false } = self.shape
            && let Place::Option(spelling) = &self.place
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

    fn shape_schema(&self) -> Map<String, Value> {
        let mut one = self.kind.schema();
        if let (Some(delimiter), ValueKind::Text) = (self.delimiter, &self.kind) {
            one.insert("pattern".to_owned(), format!("^[^{}]*$", in_class(delimiter)).into());
        }
        let schema = match &self.shape {
            Shape::Flag { there } => json!({ "type": "boolean", "default": !there }),
            Shape::Count => json!({ "type": "integer", "minimum": 0, "maximum": u8::MAX, "default": 0 }),
            Shape::One => Value::Object(one),
            Shape::Maybe if self.missing.is_none() => Value::Object(one),
            Shape::Maybe => json!({ "anyOf": [one, { "const": true, "description": "without a value" }] }),
            Shape::Repeated | Shape::Joined => list(&one.into(), self.required.into(), usize::MAX),
            Shape::Sequence { least, most } => list(&one.into(), *least, *most),
            Shape::Sequences { least, most } => {
                list(&list(&one.into(), *least, *most), self.required.into(), usize::MAX)
            }
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// Returns the JSON Schema of the values that mean that the argument is not given.
    pub(super) fn absence(&self) -> Value {
        match &self.shape {
            Shape::Flag { there } => json!({ "const": !there }),
            Shape::Count => json!({ "const": 0 }),
            Shape::One | Shape::Maybe if self.empty_is_absent() => json!({ "const": "" }),
            Shape::One | Shape::Maybe => false.into(),
            Shape::Repeated | Shape::Joined | Shape::Sequence { .. } | Shape::Sequences { .. } => {
                json!({ "maxItems": 0 })
            }
        }
    }

    /// Reports whether the argument can be there in a call and still mean that it is not given.
    pub(super) fn may_be_idle(&self) -> bool {
        self.absence() != Value::Bool(false)
    }
}

impl Shape {
    fn of(arg: &Arg) -> Option<Self> {
        let range = arg.get_num_args().unwrap_or_else(|| 1.into());
        let (least, most) = (range.min_values(), range.max_values());
        let positional = arg.is_positional();
        let shape = match arg.get_action() {
            ArgAction::SetTrue => Self::Flag { there: true },
            ArgAction::SetFalse => Self::Flag { there: false },
            ArgAction::Count => Self::Count,
            ArgAction::Set | ArgAction::Append if most == 0 => Self::Flag { there: true },
            ArgAction::Set if arg.get_value_delimiter().is_some() && !positional => Self::Joined,
            ArgAction::Set if most == 1 && least == 0 && !positional => Self::Maybe,
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
fn in_class(character: char) -> String {
    match character {
        '\\' | ']' | '[' | '^' | '-' => format!("\\{character}"),
        plain => plain.to_string(),
    }
}
