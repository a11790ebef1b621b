use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use trunkline_protocol::Raw;

use super::Check;
use crate::schema::SchemaCheck;
use crate::shorten::shorten;

/// What a tool's arguments must pass before its handler sees them.
pub(super) struct ArgumentCheck {
    schema: Value,
    /// Compiled at once if every call needs it, or by the first call that must be told what is wrong with it.
    compiled: OnceLock<Option<SchemaCheck>>,
    /// The schema is checked before the arguments are read into their type.
    first: bool,
    /// Nothing else would notice that two arguments have one name.
    refuse_duplicates: bool,
    validators: Vec<Check>,
}

impl ArgumentCheck {
    /// Checks a schema that the handler's own type does not enforce.
    pub(super) fn strict(schema: Value, validators: Vec<Check>) -> Result<Self, String> {
        let compiled = SchemaCheck::compile(&schema)?;
        Ok(Self {
            schema,
            compiled: OnceLock::from(Some(compiled)),
            first: true,
            refuse_duplicates: true,
            validators,
        })
    }

    /// Leaves the checking to the type that the arguments are read into.
    pub(super) fn by_type(schema: Value, validators: Vec<Check>) -> Self {
        Self { schema, compiled: OnceLock::new(), first: false, refuse_duplicates: false, validators }
    }

    /// Returns what is wrong with the arguments, for the model to read, or nothing.
    pub(super) fn complaint(&self, arguments: &Raw) -> Option<String> {
        if !self.first && self.validators.is_empty() {
            return None;
        }
        if self.refuse_duplicates
            && let Err(error) = arguments.members()
        {
            return Some(invalid(&error.to_string()));
        }
        let value = match arguments.get() {
            Ok(value) => value,
            Err(error) => return Some(invalid(&without_place(&error))),
        };
        if self.first
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

/// Drops the line and column from a message: they are places in a text that the model never saw.
fn without_place(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let (sentence, _) = sentence.rsplit_once(" at line ").unwrap_or((&sentence, ""));
    shorten(sentence)
}

impl fmt::Debug for ArgumentCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentCheck")
            .field("schema", &self.schema)
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}
