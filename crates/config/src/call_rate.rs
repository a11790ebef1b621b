//! Rates of calls: `600/1m`, `10/s`.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use crate::duration::ConfigDuration;

/// A number of calls in a length of time: so many at once, and from then on as many on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRate {
    /// The calls that are allowed at once, and in each period.
    pub calls: NonZeroU32,
    /// The period.
    pub period: Duration,
}

/// The table `[limits]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// The calls of each caller, such as "600/1m". By default there is no limit.
    pub principal: Option<CallRate>,
}

/// The most calls of a rate.
const MAX_CALLS: u32 = 1_000_000;

impl CallRate {
    /// Reads a rate such as `600/1m`, `10/s` or `5/500ms`.
    pub fn parse(text: &str) -> Option<Self> {
        let (calls, period) = text.split_once('/')?;
        let calls: NonZeroU32 = calls.trim().parse().ok()?;
        let period = period.trim();
        let ConfigDuration(period) = match period.starts_with(|c: char| c.is_ascii_digit()) {
            true => ConfigDuration::parse(period)?,
            false => ConfigDuration::parse(&format!("1{period}"))?,
        };
        (calls.get() <= MAX_CALLS).then_some(Self { calls, period })
    }

    /// Returns the time in which one call becomes allowed again.
    pub fn interval(self) -> Duration {
        self.period / self.calls.get()
    }
}

impl fmt::Display for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.calls, ConfigDuration(self.period))
    }
}

impl<'de> Deserialize<'de> for CallRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RateVisitor;
        impl Visitor<'_> for RateVisitor {
            type Value = CallRate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of calls in a length of time, such as \"600/1m\" or \"10/s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CallRate, E> {
                CallRate::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(RateVisitor)
    }
}

impl JsonSchema for CallRate {
    fn schema_name() -> Cow<'static, str> {
        "CallRate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+ ?/ ?[0-9]* ?(ms|s|m|h)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_positive_number_of_calls_and_a_period() {
        let table = [
            ("600/1m", Some("600/1m")),
            ("10/s", Some("10/1s")),
            (" 5 / 500ms ", Some("5/500ms")),
            ("1000000/h", Some("1000000/1h")),
            ("1000001/h", None),
            ("0/s", None),
            ("-1/s", None),
            ("10", None),
            ("10/", None),
            ("10/0s", None),
            ("10/d", None),
            ("/s", None),
        ];
        for (text, expected) in table {
            assert_eq!(CallRate::parse(text).map(|rate| rate.to_string()).as_deref(), expected, "{text}");
        }
    }
}
