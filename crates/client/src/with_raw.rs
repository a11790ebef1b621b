use std::ops::Deref;

use serde::de::DeserializeOwned;
use trunkline_protocol::RawJson;
use trunkline_protocol::model::{CallToolResult, Content};

use crate::error::Error;

/// A value with the JSON that it was parsed from.
#[derive(Clone, Debug, PartialEq)]
pub struct WithRaw<T> {
    value: T,
    raw: RawJson,
}

impl<T> WithRaw<T> {
    pub(crate) fn new(value: T, raw: RawJson) -> Self {
        Self { value, raw }
    }

    /// Returns the JSON exactly as the server wrote it.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Returns the value without the JSON.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the JSON without the value.
    pub fn into_raw(self) -> RawJson {
        self.raw
    }
}

impl<T> Deref for WithRaw<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl WithRaw<CallToolResult> {
    /// Returns the text blocks of the result, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Decodes the structured content, or the text as JSON if there is none.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the result does not have the type's shape, or is a failure.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.is_error {
            return Err(Error::Malformed(format!("the tool failed: {}", self.text())));
        }
        let decoded = match &self.structured {
            Some(structured) => structured.decode().or_else(|error| {
                // Before 2026-07-28 structured content is an object, and servers wrap other values in one.
                let wrapped = structured.members().ok().filter(|members| members.len() == 1);
                wrapped.and_then(|members| members.get("result")?.decode().ok()).ok_or(error)
            }),
            None => serde_json::from_str(&self.text()),
        };
        decoded.map_err(|error| {
            Error::Malformed(format!("the result does not have the expected shape: {error}"))
        })
    }
}
