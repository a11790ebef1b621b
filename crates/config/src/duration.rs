//! Lengths of time, written with their unit: `500ms`, `30s`, `2m`, `1h`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A length of time as a configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDuration(pub Duration);

/// The longest duration: a year. A longer one is a mistake in the unit.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl ConfigDuration {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let unit = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(unit);
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
        let length = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(factor)?);
        (!length.is_zero() && length <= MAX_DURATION).then_some(Self(length))
    }
}

/// Prints it in the largest unit that it has a whole number of.
impl fmt::Display for ConfigDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.as_millis();
        let (unit, factor) = UNITS
            .into_iter()
            .rev()
            .find(|(_, factor)| whole.is_multiple_of(u128::from(*factor)))
            .unwrap_or(("ms", 1));
        write!(f, "{}{unit}", whole / u128::from(factor))
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationVisitor;
        impl Visitor<'_> for DurationVisitor {
            type Value = ConfigDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with a unit, such as \"500ms\", \"30s\", \"2m\" or \"1h\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ConfigDuration, E> {
                ConfigDuration::parse(text)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(DurationVisitor)
    }
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+ ?(ms|s|m|h)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_a_finite_positive_value() {
        let table = [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            (" 2 m ", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", None),
            ("30", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("1d", None),
            ("99999h", None),
            ("99999999999999999999s", None),
        ];
        for (text, millis) in table {
            assert_eq!(
                ConfigDuration::parse(text),
                millis.map(Duration::from_millis).map(ConfigDuration),
                "{text}"
            );
        }
    }

    #[test]
    fn duration_display_round_trips() {
        for text in ["500ms", "30s", "90s", "2m", "1h", "61m"] {
            assert_eq!(ConfigDuration::parse(text).unwrap().to_string(), text);
        }
    }
}
