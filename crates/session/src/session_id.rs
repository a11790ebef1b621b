//! The id of a session: random, unguessable, and never logged in full.

use std::fmt;

/// The id of a session: 128 random bits, written as 32 lowercase hexadecimal characters.
///
/// A new id cannot be created from chosen bits: [`random`](Self::random) uses the operating system's generator, and
/// [`parse`](Self::parse) reads one that a client or a store returned. Knowing an id is never enough to use the
/// session, which also belongs to a [`Principal`](crate::Principal).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u128);

impl SessionId {
    /// The length of the written form, in bytes.
    pub const TEXT_LEN: usize = 32;

    /// Creates an id from the operating system's random numbers.
    ///
    /// # Panics
    /// The operating system has no random numbers. No id is better than a guessable one.
    pub fn random() -> Self {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).expect("the operating system gives random numbers");
        Self(u128::from_ne_bytes(bits))
    }

    /// Reads the written form: exactly 32 lowercase hexadecimal characters.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != Self::TEXT_LEN {
            return None;
        }
        let (high, low) = text.split_at_checked(Self::TEXT_LEN / 2)?;
        Some(Self(u128::from(hexadecimal(high)?) << 64 | u128::from(hexadecimal(low)?)))
    }

    pub(crate) const fn bits(self) -> u128 {
        self.0
    }

    /// Returns the first eight characters, which are enough to follow a session through a log and too few to use it.
    pub fn short(self) -> ShortSessionId {
        ShortSessionId((self.0 >> 96) as u32)
    }
}

/// Reads up to 16 lowercase hexadecimal characters.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    // Runs for every request of a session, so there is one check at the end in place of one per character.
    let (mut bits, mut all) = (0, 0);
    for byte in text {
        let digit = DIGITS.get(usize::from(*byte)).copied().unwrap_or(NONE);
        all |= digit;
        bits = bits << 4 | u64::from(digit & 0x0f);
    }
    (all != NONE).then_some(bits)
}

/// Marks a byte that is not a digit; all bits set, so that it survives the bitwise or.
const NONE: u8 = 0xff;

/// The value of each byte as a lowercase hexadecimal digit.
#[expect(clippy::indexing_slicing, reason = "an index beyond the end would not compile")]
static DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let mut digit: u8 = 0;
    while digit < 16 {
        let character = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        digits[character as usize] = digit;
        digit += 1;
    }
    digits
};

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.short(), f)
    }
}

/// The beginning of a [`SessionId`], for logs: eight characters and an ellipsis.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortSessionId(u32);

impl fmt::Display for ShortSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}…", self.0)
    }
}

impl fmt::Debug for ShortSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn session_id_parse_accepts_only_its_own_written_form() {
        for (text, accepted) in [
            ("0123456789abcdef0123456789abcdef", true),
            ("00000000000000000000000000000000", true),
            ("ffffffffffffffffffffffffffffffff", true),
            ("0123456789ABCDEF0123456789abcdef", false),
            ("0123456789abcdef0123456789abcde", false),
            ("0123456789abcdef0123456789abcdef0", false),
            ("+123456789abcdef0123456789abcdef", false),
            ("0123456789abcdef 123456789abcdef", false),
            ("0123456789abcdeg0123456789abcdef", false),
            ("", false),
        ] {
            let id = SessionId::parse(text.as_bytes());
            assert_eq!(id.map(|id| id.to_string()).as_deref(), accepted.then_some(text), "{text}");
        }
    }

    #[test]
    fn session_id_debug_output_is_redacted() {
        let id = SessionId::parse(b"0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(format!("{id:?} {:?} {}", Some(id), id.short()), "01234567… Some(01234567…) 01234567…");
    }

    #[test]
    fn session_ids_are_unique_and_use_every_bit() {
        let ids: Vec<_> = (0..10_000).map(|_| SessionId::random()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        for bit in 0..128 {
            // With 10,000 fair coins the chance to leave this range is below 1 in 10^9 for each bit.
            let ones = ids.iter().filter(|id| id.0 >> bit & 1 == 1).count();
            assert!((4_650..=5_350).contains(&ones), "bit {bit} was set {ones} times in 10,000");
        }
    }
}
