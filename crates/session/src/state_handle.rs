//! The handle of a stored state: random, unguessable, and never logged in full.

use std::fmt;

use crate::SessionId;

/// The handle of a stored state: 128 bits, written as `st_` and 32 lowercase hexadecimal characters.
///
/// A handle passes through the model as an ordinary argument, so knowing one is never enough: a state also belongs to
/// a [`Principal`](crate::Principal).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateHandle(u128);

impl StateHandle {
    /// The prefix of every written handle.
    pub const PREFIX: &'static str = "st_";

    /// Creates a handle from the operating system's random numbers.
    ///
    /// # Panics
    /// The operating system has no random numbers. No handle is better than a guessable one.
    pub fn random() -> Self {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).expect("the operating system gives random numbers");
        Self(u128::from_ne_bytes(bits))
    }

    /// Creates a handle from the digest of an unguessable value, such as a session's id.
    pub const fn from_digest(digest: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(digest))
    }

    /// Reads the written form.
    pub fn parse(text: &str) -> Option<Self> {
        let bits = SessionId::parse(text.strip_prefix(Self::PREFIX)?.as_bytes())?;
        Some(Self(bits.bits()))
    }
}

impl fmt::Display for StateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:032x}", Self::PREFIX, self.0)
    }
}

impl fmt::Debug for StateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:08x}…", Self::PREFIX, self.0 >> 96)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_handle_reads_only_its_own_written_form() {
        for (text, accepted) in [
            ("st_0123456789abcdef0123456789abcdef", true),
            ("0123456789abcdef0123456789abcdef", false),
            ("st_0123456789ABCDEF0123456789abcdef", false),
            ("st_0123456789abcdef0123456789abcde", false),
            ("ST_0123456789abcdef0123456789abcdef", false),
            ("st_", false),
            ("", false),
        ] {
            let handle = StateHandle::parse(text).map(|handle| handle.to_string());
            assert_eq!(handle.as_deref(), accepted.then_some(text), "{text}");
        }
    }

    #[test]
    fn state_handle_debug_output_is_redacted() {
        let handle = StateHandle::parse("st_0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(format!("{handle:?}"), "st_01234567…");
        assert_ne!(StateHandle::random(), StateHandle::random());
    }
}
