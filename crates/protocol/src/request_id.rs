use std::fmt;
use std::hash::{Hash, Hasher};

use crate::json::{JsonKind, JsonWriter, RawJson};

/// A JSON-RPC request identifier: the exact token that the peer sent.
///
/// Identifiers are compared by their text, so `1`, `1.0` and `"1"` are three different ones, and each is echoed as it
/// came, whatever its size.
///
/// See [Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#requests) and
/// [JSON-RPC 2.0, Request object](https://www.jsonrpc.org/specification#request_object).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(IdRepr);

/// A token in its only representation, so that equal representations are equal texts.
#[derive(Clone, PartialEq, Eq)]
enum IdRepr {
    /// A natural number in its usual notation, as nearly all identifiers are: it costs nothing to copy.
    Number(u64),
    /// Any other token.
    Other(RawJson),
}

/// Hashes without the variant, which for numbers, the common case, would be half of the work.
impl Hash for IdRepr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Number(number) => number.hash(state),
            Self::Other(raw) => raw.hash(state),
        }
    }
}

impl RequestId {
    /// The most bytes that an identifier may have.
    pub const MAX_LEN: usize = 1024;

    /// Takes a token as an identifier, if it is a string or an integer of reasonable length, however that is written.
    pub fn from_raw(raw: RawJson) -> Option<Self> {
        if let Some(number) = natural(raw.as_str()) {
            return Some(Self::from_number(number));
        }
        let fits = raw.as_str().len() <= Self::MAX_LEN;
        let is_id = match raw.kind() {
            JsonKind::String => fits,
            JsonKind::Number => fits && is_integer(raw.as_str()),
            _ => false,
        };
        is_id.then_some(Self(IdRepr::Other(raw)))
    }

    /// Creates a numeric identifier.
    pub const fn from_number(number: u64) -> Self {
        Self(IdRepr::Number(number))
    }

    /// Creates a string identifier.
    pub fn from_text(text: &str) -> Self {
        Self(IdRepr::Other(RawJson::from_text(text)))
    }

    /// Returns the identifier in memory of its own, for one that outlives its message by far: it would otherwise keep
    /// the whole message alive.
    #[must_use]
    pub fn to_owned_buffer(&self) -> Self {
        match &self.0 {
            IdRepr::Number(number) => Self::from_number(*number),
            IdRepr::Other(raw) => Self(IdRepr::Other(raw.to_owned_buffer())),
        }
    }

    /// Returns the number of an identifier that [`RequestId::from_number`] could have made.
    pub const fn number(&self) -> Option<u64> {
        match &self.0 {
            IdRepr::Number(number) => Some(*number),
            IdRepr::Other(_) => None,
        }
    }

    /// Returns the JSON token.
    pub fn to_raw(&self) -> RawJson {
        match &self.0 {
            IdRepr::Number(number) => RawJson::from_trusted(number.to_string().into()),
            IdRepr::Other(raw) => raw.clone(),
        }
    }

    pub(crate) fn write(&self, writer: &mut JsonWriter) {
        match &self.0 {
            IdRepr::Number(number) => writer.unsigned(*number),
            IdRepr::Other(raw) => writer.raw(raw),
        }
    }
}

/// Reports whether a JSON number is an integer: `1.0`, `10e-1` and `1.5e1` are.
fn is_integer(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let Ok(exponent) = exponent.parse::<i64>() else { return false };
    // How many places before the point end in zeros, or, counted below zero, how many are needed after it.
    let places = match fraction {
        "" if whole.trim_start_matches('-').bytes().all(|digit| digit == b'0') => return true,
        "" => whole.len() - whole.trim_end_matches('0').len(),
        fraction => return usize::try_from(exponent).is_ok_and(|exponent| exponent >= fraction.len()),
    };
    exponent >= 0 || usize::try_from(exponent.unsigned_abs()).is_ok_and(|needed| needed <= places)
}

/// Reads a natural number that has no other spelling than this one.
fn natural(text: &str) -> Option<u64> {
    let digits = text.as_bytes();
    let spelled_once = digits.first() != Some(&b'0') || digits.len() == 1;
    if digits.is_empty() || !spelled_once {
        return None;
    }
    digits.iter().try_fold(0, |number: u64, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdRepr::Number(number) => number.fmt(f),
            IdRepr::Other(raw) => fmt::Display::fmt(raw, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(token: &str) -> Option<RequestId> {
        RequestId::from_raw(RawJson::parse(token.to_owned()).unwrap())
    }

    #[test]
    fn request_id_is_echoed_verbatim_and_compared_by_text() {
        let tokens = [
            "0",
            "-0",
            "0.0",
            "1",
            "1.0",
            "1e0",
            "\"1\"",
            "\"\"",
            "9999999999999999999",
            "18446744073709551615",
            "18446744073709551616",
            "123456789012345678901234567890",
        ];
        for (at, token) in tokens.iter().enumerate() {
            let this = id(token).unwrap();
            assert_eq!(this.to_string(), *token);
            assert_eq!(this.to_raw().as_str(), *token);
            assert_eq!(this.to_owned_buffer(), this);
            for (other_at, other) in tokens.iter().enumerate() {
                assert_eq!(id(other).unwrap() == this, at == other_at, "{token} and {other}");
            }
        }
        for token in [
            "null",
            "true",
            "[]",
            "{}",
            "1.5",
            "-0.1",
            "1e-1",
            "15e-1",
            "1.25e1",
            "100e-3",
            "1e99999999999999999999",
        ] {
            assert_eq!(id(token), None, "{token}");
        }
        for token in ["-1", "1.0", "-0.0e5", "1e5", "1.5e1", "10e-1", "100E-2", "0e-9", "1.50e+1"] {
            assert!(id(token).is_some(), "{token}");
        }
    }

    proptest! {
        #[test]
        fn numeric_request_id_round_trips(number: u64) {
            prop_assert_eq!(id(&number.to_string()).unwrap(), RequestId::from_number(number));
        }
    }
}
