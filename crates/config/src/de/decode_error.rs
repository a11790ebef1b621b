use std::fmt;
use std::ops::Range;

use serde::de::{Error, Expected, Unexpected};

use crate::suggestion::nearest;

/// A mistake in a value: what is wrong, where in the text, and under which keys.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) message: String,
    pub(crate) span: Option<Range<usize>>,
    /// The keys from the value that was read down to the mistake, innermost first.
    keys: Vec<String>,
}

impl DecodeError {
    pub(crate) fn new(message: String) -> Self {
        Self { message, span: None, keys: Vec::new() }
    }

    /// Sets the position, unless it is set already: the innermost value sets it first.
    pub(crate) fn with_span(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// Prefixes the path with a key.
    pub(crate) fn within(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }

    /// Replaces the first key of the path.
    pub(crate) fn with_outermost_key(mut self, key: &str) -> Self {
        if let Some(outermost) = self.keys.last_mut() {
            key.clone_into(outermost);
        }
        self
    }

    /// Returns the keys down to it, with dots between.
    pub(crate) fn key(&self) -> String {
        self.keys.iter().rev().map(String::as_str).collect::<Vec<_>>().join(".")
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

impl Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    // Both omit the value itself: it may be a secret under the wrong key.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        // The words of serde for what every format here calls otherwise.
        let expected = expected.to_string().replace("a sequence", "a list").replace("a map", "a table");
        Self::new(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {} that is out of range", describe(found)))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {length} elements"))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::new(super::unknown_key(field, known.iter().copied()))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let list: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
        let near = nearest(variant, known.iter().copied());
        let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        Self::new(format!("expected one of {}{near}", list.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is set twice, under two spellings"))
    }
}

fn describe(found: Unexpected<'_>) -> &str {
    match found {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a table",
        Unexpected::Other(other) => other,
        _ => "something else",
    }
}
