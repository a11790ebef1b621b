//! Errors that OAuth endpoints report ([RFC 6749 §5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2)).

use std::fmt;

use crate::json_document::JsonDocument;

/// The characters that are kept of an error's code and description.
pub const MAX_ERROR_CHARACTERS: usize = 512;

/// An error of an OAuth endpoint. Its texts are of the peer: they are shortened, and control characters are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthError {
    code: String,
    description: Option<String>,
}

impl OauthError {
    /// Makes an error of a code and a description of a peer.
    pub fn new(code: &str, description: Option<&str>) -> Self {
        Self { code: printable(code), description: description.map(printable) }
    }

    /// Reads the error of a JSON document that has one.
    pub(crate) fn read(document: &JsonDocument) -> Option<Self> {
        let code = document.text("error")?;
        Some(Self::new(&code, document.text("error_description").as_deref()))
    }

    /// Returns the code, such as `invalid_grant`.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the description for people.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
}

impl fmt::Display for OauthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        self.description.iter().try_for_each(|description| write!(f, " ({description})"))
    }
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_ERROR_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_errors_are_printable_and_bounded() {
        let long = "x".repeat(10_000);
        let error = OauthError::new("invalid\u{1b}[2J_grant", Some(&long));
        assert_eq!(error.code(), "invalid[2J_grant");
        assert_eq!(error.description().map(str::len), Some(MAX_ERROR_CHARACTERS));
        let document =
            JsonDocument::parse(br#"{"error":"invalid_grant","error_description":"gone"}"#).unwrap();
        assert_eq!(OauthError::read(&document).unwrap().to_string(), "invalid_grant (gone)");
        assert_eq!(OauthError::read(&JsonDocument::parse(b"{}").unwrap()), None);
    }
}
