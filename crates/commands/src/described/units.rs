use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A duration in a file: `500ms`, `30s`, `2m` or `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DurationText(pub(super) Duration);

/// A byte size in a file: `65536`, `512KiB` or `4MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteSizeText(pub(super) usize);

/// The longest duration; adding it to an instant cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(8_760 * 3_600);

/// The largest output limit of one run.
const MAX_SIZE: usize = 64 << 20;

impl DurationText {
    /// The pattern of the text.
    pub(super) const PATTERN: &'static str = "^[0-9]+(ms|s|m|h)$";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text);
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let time = Duration::from_millis(number?.checked_mul(millis)?);
        (!time.is_zero() && time <= MAX_DURATION).then_some(Self(time))
    }
}

impl ByteSizeText {
    /// The pattern of the text.
    pub(super) const PATTERN: &'static str = "^[0-9]+(B|KiB|MiB)?$";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text);
        let bytes = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => return None,
        };
        let size = usize::try_from(number?).ok()?.checked_mul(bytes)?;
        (1..=MAX_SIZE).contains(&size).then_some(Self(size))
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(UnitVisitor {
            expected: "a duration with a unit, such as \"500ms\", \"30s\", \"2m\" or \"1h\", at most a year",
            parse: Self::parse,
        })
    }
}

impl<'de> Deserialize<'de> for ByteSizeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(UnitVisitor {
            expected: "a size in quotes, such as \"65536\", \"512KiB\" or \"4MiB\", at most 64MiB",
            parse: Self::parse,
        })
    }
}

/// Reads a text with a unit, and describes the expected form where the value is something else.
struct UnitVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for UnitVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn split(text: &str) -> (Option<u64>, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number.parse().ok(), unit)
}
