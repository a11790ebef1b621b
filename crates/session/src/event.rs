//! Events of a stream and the ids by which a client resumes it.

use std::fmt;

use bytes::Bytes;

/// The number of a stream within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// The id of an event: its stream, and its position in that stream.
///
/// The written form is the stream in lowercase hexadecimal, a hyphen, and the position in decimal, such as `1f-12`.
/// Every id has exactly one written form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The stream that the event was sent on.
    pub stream: StreamId,
    /// The event's position in the stream; later events have larger ones, and gaps have no meaning.
    pub seq: u64,
}

/// One event as it was sent on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    /// The event's id.
    pub id: EventId,
    /// The event's data; empty for the event that only gives a client a position to resume from.
    ///
    /// A store holds it by reference: a slice of a larger buffer keeps that buffer alive.
    pub data: Bytes,
}

impl EventId {
    /// Parses the written form strictly: not even a leading zero is accepted.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, seq) = text.split_once('-')?;
        Some(Self { stream: StreamId(canonical_number(stream, 16)?), seq: canonical_number(seq, 10)? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.stream.0, self.seq)
    }
}

/// Parses a number without sign, leading zeros or uppercase digits, which the standard library would accept.
fn canonical_number(text: &str, radix: u32) -> Option<u64> {
    let lowercase_digits = text.chars().all(|c| c.is_digit(radix) && !c.is_ascii_uppercase());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if !lowercase_digits || leading_zero {
        return None;
    }
    u64::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn event_id_parse_accepts_only_the_one_written_form() {
        for (text, expected) in [
            ("0-0", Some((0, 0))),
            ("1f-12", Some((0x1f, 12))),
            ("ffffffffffffffff-18446744073709551615", Some((u64::MAX, u64::MAX))),
            ("10000000000000000-0", None),
            ("0-18446744073709551616", None),
            ("1F-12", None),
            ("01f-12", None),
            ("1f-012", None),
            ("1f-1f", None),
            ("+1-1", None),
            ("1-+1", None),
            ("1--1", None),
            ("1-1-1", None),
            ("1_1", None),
            ("1-", None),
            ("-1", None),
            ("-", None),
            ("", None),
            (" 1-1", None),
            ("1-1\n", None),
            ("\u{0661}-1", None),
        ] {
            let expected = expected.map(|(stream, seq)| EventId { stream: StreamId(stream), seq });
            assert_eq!(EventId::parse(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn event_id_is_read_back_from_its_written_form(stream: u64, seq: u64) {
            let id = EventId { stream: StreamId(stream), seq };
            prop_assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }

        #[test]
        fn event_id_text_that_is_accepted_is_the_written_form(text in "[0-9a-f+A]{0,4}-[0-9+]{0,4}") {
            if let Some(id) = EventId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
