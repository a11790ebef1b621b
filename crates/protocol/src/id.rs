use std::fmt;

use crate::json::{JsonKind, Raw, Writer};

/// A JSON-RPC request identifier: the exact token that the peer sent.
///
/// Identifiers are compared by their text, so `1`, `1.0` and `"1"` are three different ones, and each is echoed as it
/// came, whatever its size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Raw);

impl Id {
    /// The most bytes that an identifier may have.
    pub const MAX_LEN: usize = 1024;

    /// Takes a token as an identifier, if it is a string or a number of reasonable length.
    pub fn from_raw(raw: Raw) -> Option<Self> {
        let fits = raw.as_str().len() <= Self::MAX_LEN;
        (fits && matches!(raw.kind(), JsonKind::String | JsonKind::Number)).then_some(Self(raw))
    }

    /// Makes a numeric identifier.
    pub fn from_number(number: u64) -> Self {
        Self(Raw::trusted(number.to_string().into()))
    }

    /// Makes a string identifier.
    pub fn from_text(text: &str) -> Self {
        Self(Raw::from_text(text))
    }

    /// Returns the identifier in memory of its own, for one that outlives its message by far: it would otherwise keep
    /// the whole message alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.detached())
    }

    /// Returns the JSON token.
    pub fn as_raw(&self) -> &Raw {
        &self.0
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.raw(&self.0);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
