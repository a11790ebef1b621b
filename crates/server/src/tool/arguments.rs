use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use trunkline_protocol::Raw;

use super::Check;
use crate::schema::SchemaCheck;
use trunkline_protocol::shorten;

/// What a tool's arguments must pass before its handler sees them.
pub(super) struct ArgumentCheck {
    schema: Value,
    /// Compiled at once if every call needs it, or by the first call that must be told what is wrong with it.
    compiled: OnceLock<Option<SchemaCheck>>,
    before: Before,
    validators: Vec<Check>,
}

/// What is checked before the arguments are read into their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: the type says all that the schema says.
    Nothing,
    /// The schema, which says more than the type.
    Schema,
    /// The schema, and that no two arguments have one name, since there may be no type that would notice.
    SchemaAndNames,
}

impl ArgumentCheck {
    /// # Errors
    /// The schema does not compile, and is needed.
    pub(super) fn new(schema: Value, before: Before, validators: Vec<Check>) -> Result<Self, String> {
        let compiled = match before {
            Before::Nothing => OnceLock::new(),
            Before::Schema | Before::SchemaAndNames => OnceLock::from(Some(SchemaCheck::compile(&schema)?)),
        };
        Ok(Self { schema, compiled, before, validators })
    }

    /// Returns what is wrong with the arguments, for the model to read, or nothing.
    pub(super) fn complaint(&self, arguments: &Raw) -> Option<String> {
        if self.before == Before::Nothing && self.validators.is_empty() {
            return None;
        }
        if self.before == Before::SchemaAndNames
            && let Err(error) = arguments.members()
        {
            return Some(invalid(&shorten(&error.to_string())));
        }
        let value = match arguments.get() {
            Ok(value) => value,
            Err(error) => return Some(invalid(&without_place(&error))),
        };
        if self.before != Before::Nothing
            && let Some(complaint) = self.schema_complaint(&value)
        {
            return Some(invalid(&complaint));
        }
        self.validators.iter().find_map(|check| check(&value).err())
    }

    /// Says why arguments could not be read, naming the field if the schema can.
    pub(super) fn explain(&self, arguments: &Raw, error: &serde_json::Error) -> String {
        let complaint = arguments.get().ok().and_then(|value| self.schema_complaint(&value));
        invalid(&complaint.unwrap_or_else(|| without_place(error)))
    }

    fn schema_complaint(&self, value: &Value) -> Option<String> {
        // A schema that does not compile here was made from a type; the reading then speaks for itself.
        let compiled = self.compiled.get_or_init(|| SchemaCheck::compile(&self.schema).ok());
        compiled.as_ref()?.complaint(value)
    }
}

fn invalid(complaint: &str) -> String {
    format!("Invalid arguments: {complaint}")
}

/// Drops the line and column from a message, which are places in a text that the model never saw, and the value that was
/// found, which is the caller's and may be something that must not be repeated.
fn without_place(error: &serde_json::Error) -> String {
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
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_not_repeated() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Side {
            Left,
            Right,
        }
        let error = serde_json::from_str::<u8>("\"secret, expected by nobody\"").unwrap_err();
        assert_eq!(without_place(&error), "invalid type, expected u8");
        let error = serde_json::from_str::<u8>("4711").unwrap_err();
        assert_eq!(without_place(&error), "invalid value, expected u8");
        let error = serde_json::from_str::<Side>("\"secret\"").unwrap_err();
        assert_eq!(without_place(&error), "unknown variant, expected `left` or `right`");
        assert!([Side::Left, Side::Right].iter().all(|side| format!("{side:?}").len() > 3));
    }
}
