use std::any::TypeId;
use std::num::{NonZeroI32, NonZeroI64, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize};

use clap::Arg;
use clap::builder::PossibleValue;
use serde_json::{Map, Value, json};

use super::probe::ParserProbe;

/// The kind of an argument's values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueKind {
    Text,
    /// Text of exactly one character.
    Character,
    Boolean,
    Number,
    Integer {
        least: i128,
        most: i128,
    },
    /// One of these names, each with its help.
    Choice(Vec<(String, Option<String>)>),
}

/// An integer type with its minimum and its maximum.
type IntegerType = (fn() -> TypeId, i128, i128);

/// The integer types that clap parses without a custom parser.
const INTEGERS: &[IntegerType] = &[
    (TypeId::of::<u8>, u8::MIN as i128, u8::MAX as i128),
    (TypeId::of::<u16>, u16::MIN as i128, u16::MAX as i128),
    (TypeId::of::<u32>, u32::MIN as i128, u32::MAX as i128),
    (TypeId::of::<u64>, u64::MIN as i128, u64::MAX as i128),
    (TypeId::of::<usize>, usize::MIN as i128, usize::MAX as i128),
    (TypeId::of::<i8>, i8::MIN as i128, i8::MAX as i128),
    (TypeId::of::<i16>, i16::MIN as i128, i16::MAX as i128),
    (TypeId::of::<i32>, i32::MIN as i128, i32::MAX as i128),
    (TypeId::of::<i64>, i64::MIN as i128, i64::MAX as i128),
    (TypeId::of::<isize>, isize::MIN as i128, isize::MAX as i128),
    (TypeId::of::<NonZeroU8>, 1, u8::MAX as i128),
    (TypeId::of::<NonZeroU16>, 1, u16::MAX as i128),
    (TypeId::of::<NonZeroU32>, 1, u32::MAX as i128),
    (TypeId::of::<NonZeroU64>, 1, u64::MAX as i128),
    (TypeId::of::<NonZeroUsize>, 1, usize::MAX as i128),
    (TypeId::of::<NonZeroI32>, i32::MIN as i128, i32::MAX as i128),
    (TypeId::of::<NonZeroI64>, i64::MIN as i128, i64::MAX as i128),
];

impl ValueKind {
    /// Determines the kind of an argument's values, by the type of its parser and by probing it.
    pub(super) fn from_arg(arg: &Arg) -> Self {
        let id = arg.get_value_parser().type_id();
        if id == TypeId::of::<bool>() {
            return Self::Boolean;
        }
        let choices = choices(&arg.get_possible_values());
        if !choices.is_empty() {
            return Self::Choice(choices);
        }
        if id == TypeId::of::<char>() {
            return Self::Character;
        }
        // A custom parser may return a number and still accept other text, such as `4MiB`.
        let mut probe = ParserProbe::new(arg);
        if let Some((_, least, most)) = INTEGERS.iter().find(|(of, ..)| id == of()) {
            return match probe.integers(*least, *most) {
                Some((least, most)) => Self::Integer { least, most },
                None => Self::Text,
            };
        }
        if (id == TypeId::of::<f32>() || id == TypeId::of::<f64>()) && probe.reads_decimals() {
            return Self::Number;
        }
        Self::Text
    }

    /// Returns the JSON Schema of one value.
    pub(super) fn schema(&self) -> Map<String, Value> {
        let schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::Character => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Number => json!({ "type": "number" }),
            Self::Integer { least, most } => {
                let mut schema = json!({ "type": "integer" });
                for (key, bound) in [("minimum", least), ("maximum", most)] {
                    if let (Some(number), Some(schema)) = (json_bound(*bound), schema.as_object_mut()) {
                        schema.insert(key.to_owned(), number);
                    }
                }
                schema
            }
            Self::Choice(choices) => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| name.as_str()).collect();
                json!({ "type": "string", "enum": names })
            }
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// Describes the choices that have help.
    pub(super) fn notes(&self) -> Vec<String> {
        let Self::Choice(choices) = self else { return Vec::new() };
        let notes = choices.iter().filter_map(|(name, help)| Some(format!("`{name}`: {}", help.as_ref()?)));
        notes.collect()
    }

    /// Returns the text that the program parses as this value.
    pub(super) fn text(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Text | Self::Character | Self::Choice(_), Value::String(text)) => Some(text.clone()),
            (Self::Boolean, Value::Bool(value)) => Some(value.to_string()),
            (Self::Number, Value::Number(number)) => Some(number.to_string()),
            (Self::Integer { .. }, Value::Number(number)) => integer_text(number),
            _ => None,
        }
    }

    /// Converts the text of a default to a value.
    pub(super) fn value(&self, text: &str) -> Option<Value> {
        match self {
            Self::Text | Self::Character | Self::Choice(_) => Some(text.into()),
            Self::Boolean => text.parse::<bool>().ok().map(Value::from),
            Self::Number => text.parse::<f64>().ok().map(Value::from).filter(Value::is_number),
            Self::Integer { .. } => text.parse::<i128>().ok().and_then(json_bound),
        }
    }
}

fn choices(values: &[PossibleValue]) -> Vec<(String, Option<String>)> {
    let shown = values.iter().filter(|value| !value.is_hide_set());
    shown.map(|value| (value.get_name().to_owned(), value.get_help().map(ToString::to_string))).collect()
}

/// Returns a bound as a JSON integer, if it fits into 64 bits.
fn json_bound(bound: i128) -> Option<Value> {
    let small = i64::try_from(bound).map(Value::from);
    small.or_else(|_| u64::try_from(bound).map(Value::from)).ok()
}

/// Formats an integer without a fraction, even if it was sent with one.
fn integer_text(number: &serde_json::Number) -> Option<String> {
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // Beyond 2^53, a float no longer identifies one integer.
    (float.abs() <= 9_007_199_254_740_992.0).then(|| format!("{float:.0}"))
}
