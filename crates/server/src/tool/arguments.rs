use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use trunkline_protocol::RawJson;
use trunkline_protocol::json::JsonKind;

use super::ArgumentValidator;
use crate::schema::SchemaValidator;
use trunkline_protocol::shorten;

/// The checks of a tool's arguments before its handler runs.
pub(super) struct ArgumentCheck {
    schema: Value,
    /// Compiled at once if every call needs it, or by the first call that needs an explanation.
    compiled: OnceLock<Option<SchemaValidator>>,
    pre_check: PreCheck,
    /// The names in the schema in their order, if they are checked for.
    names: Box<[Box<str>]>,
    validators: Vec<ArgumentValidator>,
}

/// What is checked before the arguments are read into their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreCheck {
    /// Nothing: the type is as strict as the schema.
    Nothing,
    /// The names of the arguments: the type ignores unknown ones.
    Names,
    /// The schema, which is stricter than the type.
    Schema,
}

impl ArgumentCheck {
    /// # Errors
    /// The schema does not compile, and is needed.
    pub(super) fn new(
        schema: Value,
        before: PreCheck,
        validators: Vec<ArgumentValidator>,
    ) -> Result<Self, String> {
        let compiled = match before {
            PreCheck::Nothing | PreCheck::Names => OnceLock::new(),
            PreCheck::Schema => OnceLock::from(Some(SchemaValidator::compile(&schema)?)),
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.filter(|_| before == PreCheck::Names);
        let mut names: Vec<Box<str>> =
            properties.into_iter().flat_map(Map::keys).map(|name| name.as_str().into()).collect();
        names.sort_unstable();
        Ok(Self { schema, compiled, pre_check: before, names: names.into(), validators })
    }

    /// Returns the problem with the arguments, for the model to read, or nothing.
    pub(super) fn violation(&self, arguments: &RawJson) -> Option<String> {
        let is_checked = match self.pre_check {
            PreCheck::Nothing => true,
            PreCheck::Names => self.has_known_names(arguments),
            PreCheck::Schema => false,
        };
        if is_checked && self.validators.is_empty() {
            return None;
        }
        let value = match arguments.get() {
            Ok(value) => value,
            Err(error) => return Some(invalid_arguments(&without_position(&error))),
        };
        if !is_checked && let Some(complaint) = self.schema_violation(&value) {
            return Some(invalid_arguments(&complaint));
        }
        self.validators.iter().find_map(|check| check(&value).err())
    }

    /// Explains why arguments could not be read, naming the field: by the schema, or by the position where reading
    /// ended.
    pub(super) fn explain(&self, arguments: &RawJson, error: &serde_json::Error) -> String {
        let complaint = arguments.get().ok().and_then(|value| self.schema_violation(&value));
        invalid_arguments(&complaint.unwrap_or_else(|| {
            match field_at(arguments, error.line(), error.column()) {
                Some(field) => format!("`{}`: {}", shorten(&field), without_position(error)),
                None => without_position(error),
            }
        }))
    }

    /// Reports whether the schema names every argument.
    fn has_known_names(&self, arguments: &RawJson) -> bool {
        arguments.has_only_keys(|name| self.names.binary_search_by(|known| (**known).cmp(name)).is_ok())
    }

    fn schema_violation(&self, value: &Value) -> Option<String> {
        // A schema that does not compile here was made from a type; the read error is explanation enough.
        let compiled = self.compiled.get_or_init(|| SchemaValidator::compile(&self.schema).ok());
        compiled.as_ref()?.violation(value)
    }
}

/// Writes numbers such as `1.0` as integers: to a schema there is no difference, but to a type there is. `None` if
/// there are no such numbers.
pub(super) fn with_integers(arguments: &RawJson) -> Option<RawJson> {
    let mut value: Value = arguments.get().ok()?;
    make_integers(&mut value).then(|| RawJson::from(&value))
}

fn make_integers(value: &mut Value) -> bool {
    /// Up to here every integer is a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within what fits")]
            let whole = whole.map(|float| float as i64);
            *number = whole.map_or_else(|| number.clone(), Into::into);
            whole.is_some()
        }
        // Each of them, and not only as far as the first.
        Value::Array(items) => items.iter_mut().map(make_integers).fold(false, |any, made| any | made),
        Value::Object(members) => members.values_mut().map(make_integers).fold(false, |any, made| any | made),
        _ => false,
    }
}

/// Returns the path of the innermost value at a position in the text of arguments.
fn field_at(arguments: &RawJson, line: usize, column: usize) -> Option<String> {
    let text = arguments.as_str();
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let address = text.as_ptr().addr() + start + column;
    let mut path = Vec::new();
    let mut value = arguments.clone();
    let holds = |value: &RawJson| {
        let start = value.as_str().as_ptr().addr();
        (start..=start + value.as_str().len()).contains(&address)
    };
    loop {
        // What these give are parts of the same text, so that their places can be compared.
        let inner = match value.kind() {
            JsonKind::Object => value.members().ok().and_then(|members| {
                let (key, inner) = members.iter().find(|(_, inner)| holds(inner))?;
                Some((key.to_string(), inner.clone()))
            }),
            JsonKind::Array => value.elements().ok().and_then(|elements| {
                let (at, inner) = elements.into_iter().enumerate().find(|(_, inner)| holds(inner))?;
                Some((at.to_string(), inner))
            }),
            _ => None,
        };
        let Some((step, inner)) = inner else { break };
        path.push(step);
        value = inner;
    }
    (!path.is_empty()).then(|| path.join("/"))
}

fn invalid_arguments(complaint: &str) -> String {
    format!("Invalid arguments: {complaint}")
}

/// Drops the line and column from a message, which are positions in a text that the model never saw, and the value
/// that was found, which is the caller's and may be confidential.
fn without_position(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let (sentence, _) = sentence.rsplit_once(" at line ").unwrap_or((&sentence, ""));
    for found in ["invalid type", "invalid value", "unknown variant"] {
        if let Some((_, expected)) =
            sentence.strip_prefix(found).and_then(|rest| rest.rsplit_once(", expected "))
        {
            return shorten(&format!("{found}, expected {expected}"));
        }
    }
    shorten(sentence)
}

impl fmt::Debug for ArgumentCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentCheck")
            .field("schema", &self.schema)
            .field("before", &self.pre_check)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_errors_do_not_repeat_the_value() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum TestSide {
            Left,
            Right,
        }
        let error = serde_json::from_str::<u8>("\"secret, expected by nobody\"").unwrap_err();
        assert_eq!(without_position(&error), "invalid type, expected u8");
        let error = serde_json::from_str::<u8>("4711").unwrap_err();
        assert_eq!(without_position(&error), "invalid value, expected u8");
        let error = serde_json::from_str::<TestSide>("\"secret\"").unwrap_err();
        assert_eq!(without_position(&error), "unknown variant, expected `left` or `right`");
        assert!([TestSide::Left, TestSide::Right].iter().all(|side| format!("{side:?}").len() > 3));
    }
}
