use std::time::Duration;

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
}

impl ByteSizeText {
    /// The pattern of the text.
    pub(super) const PATTERN: &'static str = "^[0-9]+(B|KiB|MiB)?$";
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (number, unit) = split(&text);
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => 0,
        };
        let time = number.and_then(|number| number.checked_mul(millis)).map(Duration::from_millis);
        let time = time.filter(|time| !time.is_zero() && *time <= MAX_DURATION);
        time.map(Self).ok_or_else(|| {
            serde::de::Error::custom(
                "expected a duration such as \"500ms\", \"30s\", \"2m\" or \"1h\", at most a year",
            )
        })
    }
}

impl<'de> Deserialize<'de> for ByteSizeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (number, unit) = split(&text);
        let bytes = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => 0,
        };
        let size = number
            .and_then(|number| usize::try_from(number).ok())
            .and_then(|number| number.checked_mul(bytes));
        let size = size.filter(|size| (1..=MAX_SIZE).contains(size));
        size.map(Self).ok_or_else(|| {
            serde::de::Error::custom(
                "expected a size such as \"65536\", \"512KiB\" or \"4MiB\", at most 64MiB",
            )
        })
    }
}

fn split(text: &str) -> (Option<u64>, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number.parse().ok(), unit)
}
