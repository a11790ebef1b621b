//! Documents of peers: JSON objects of which only a few members are read, and unknown or odd ones are ignored.

use serde_json::{Map, Value};

/// The bytes that a document of a peer may have: metadata, a registration or a token response.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// The number of texts that are read from one array; further ones are ignored.
pub const MAX_LISTED_VALUES: usize = 256;

/// The reason why a body is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The body is larger than [`MAX_DOCUMENT_BYTES`].
    #[error("the document has {0} bytes, more than {MAX_DOCUMENT_BYTES}")]
    TooLarge(usize),
    /// The body is not a JSON object.
    #[error("the document is not a JSON object")]
    NotAnObject,
    /// A required member is missing, or is not a string.
    #[error("the document has no `{0}`")]
    Missing(&'static str),
}

/// A JSON object. It has no `Debug` output, since it may hold tokens.
pub(crate) struct JsonDocument {
    members: Map<String, Value>,
}

impl JsonDocument {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        if body.len() > MAX_DOCUMENT_BYTES {
            return Err(DocumentError::TooLarge(body.len()));
        }
        let members = serde_json::from_slice(body).map_err(|_| DocumentError::NotAnObject)?;
        Ok(Self { members })
    }

    pub(crate) fn required(&self, name: &'static str) -> Result<String, DocumentError> {
        self.text(name).ok_or(DocumentError::Missing(name))
    }

    /// Returns a member that is a text and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = self.members.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns the texts of a member that is an array.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let values = self.members.get(name)?.as_array()?;
        let texts = values.iter().filter_map(Value::as_str).take(MAX_LISTED_VALUES);
        Some(texts.map(str::to_owned).collect())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.members.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// Returns a number of seconds, which some servers send as a text.
    pub(crate) fn seconds(&self, name: &str) -> Option<u64> {
        match self.members.get(name)? {
            Value::String(text) => text.parse().ok(),
            // Fractions are cut; a negative time is none.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            value => value.as_u64().or_else(|| value.as_f64().map(|seconds| seconds as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_members_of_odd_types_are_ignored() {
        let body =
            br#"{"t":"x","e":"","n":1,"l":["a",1,null,"b"],"s":"3600","f":3.7,"m":-1,"b":true,"z":null}"#;
        let document = JsonDocument::parse(body).unwrap();
        assert_eq!(document.text("t").as_deref(), Some("x"));
        for name in ["e", "n", "l", "z", "none"] {
            assert_eq!(document.text(name), None, "{name}");
        }
        assert_eq!(document.texts("l"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((document.texts("t"), document.texts("z")), (None, None));
        assert_eq!(document.seconds("s"), Some(3600));
        assert_eq!(document.seconds("f"), Some(3));
        assert_eq!(document.seconds("m"), Some(0));
        assert!(document.is_true("b") && !document.is_true("n"));
        assert_eq!(document.required("none").unwrap_err(), DocumentError::Missing("none"));
    }

    #[test]
    fn bodies_that_are_no_object_are_rejected() {
        let large = vec![b' '; MAX_DOCUMENT_BYTES + 1];
        let deep = "[".repeat(5000);
        let table: [(&[u8], DocumentError); 5] = [
            (b"<html></html>", DocumentError::NotAnObject),
            (b"[]", DocumentError::NotAnObject),
            (b"", DocumentError::NotAnObject),
            (deep.as_bytes(), DocumentError::NotAnObject),
            (&large, DocumentError::TooLarge(large.len())),
        ];
        for (body, expected) in table {
            assert_eq!(JsonDocument::parse(body).err(), Some(expected));
        }
    }
}
