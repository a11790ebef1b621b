use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a server within its configuration.
///
/// It is what people call it: any text of 1 to 64 characters without control characters and without blanks at its ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a server name must have 1 to 64 characters, no control characters, and no leading or trailing spaces"
)]
pub struct ServerNameError;

impl ServerName {
    /// The most characters that a name may have.
    pub const MAX_CHARACTERS: usize = 64;

    /// Reads a name.
    ///
    /// # Errors
    /// The text is empty, too long, or has characters that would not print.
    pub fn parse(text: &str) -> Result<Self, ServerNameError> {
        let fits = (1..=Self::MAX_CHARACTERS).contains(&text.chars().count());
        let prints = text.trim() == text && !text.chars().any(char::is_control);
        if fits && prints { Ok(Self(text.into())) } else { Err(ServerNameError) }
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for ServerName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for ServerName {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for ServerName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_are_validated() {
        let (longest, longer) = ("é".repeat(64), "é".repeat(65));
        for (text, valid) in [
            ("github", true),
            ("Figma Dev Mode", true),
            ("@scope/server.name", true),
            (&*longest, true),
            (&*longer, false),
            ("", false),
            (" x", false),
            ("a\nb", false),
        ] {
            assert_eq!(ServerName::parse(text).is_ok(), valid, "{text:?}");
        }
    }
}
