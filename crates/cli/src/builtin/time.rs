use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trunkline_server::{Json, Resource, Tool, ToolError};

pub(super) fn parts() -> (Tool, Tool, Resource) {
    let now = Tool::new("now")
        .title("Current time")
        .description("Returns the current date and time, in UTC unless a time zone is given.")
        .read_only()
        .open_world(false)
        .run(|asked: TimeNowInput| async move { asked.respond(Timestamp::now()).map(Json) });
    let convert = Tool::new("convert")
        .title("Convert a time")
        .description(
            "Converts a time from one time zone to another. When clocks go back, a time that occurs twice means the \
             first; when they go forward, a skipped time is moved forward too.",
        )
        .read_only()
        .idempotent()
        .open_world(false)
        .run(|asked: TimeConvertInput| async move { asked.respond(Timestamp::now()).map(Json) });
    let resource = Resource::new("time://now", "now")
        .title("Current time")
        .description("The current date and time in UTC (RFC 3339).")
        .mime("text/plain")
        .read(|| async { rfc3339(&Timestamp::now().to_zoned(TimeZone::UTC)) });
    (now, convert, resource)
}

#[derive(Deserialize, JsonSchema)]
struct TimeNowInput {
    /// An IANA name such as Europe/Berlin, or an offset such as +02:00.
    timezone: Option<String>,
}

impl TimeNowInput {
    fn respond(&self, now: Timestamp) -> Result<Moment, ToolError> {
        let name = self.timezone.as_deref().unwrap_or("UTC");
        Ok(Moment::new(&now.to_zoned(zone(name)?), name))
    }
}

#[derive(Deserialize, JsonSchema)]
struct TimeConvertInput {
    /// A time of today such as 14:30, or a date and time such as 2026-07-28T14:30.
    time: String,
    /// The zone that the time is in: an IANA name or an offset.
    from: String,
    /// The time zone: an IANA name or an offset.
    to: String,
}

impl TimeConvertInput {
    fn respond(&self, now: Timestamp) -> Result<ConvertedTime, ToolError> {
        let (from, to) = (zone(&self.from)?, zone(&self.to)?);
        let today = now.to_zoned(from.clone()).date();
        let there = self.local(|time| today.to_datetime(time))?.to_zoned(from)?;
        Ok(ConvertedTime {
            to: Moment::new(&there.with_time_zone(to), &self.to),
            from: Moment::new(&there, &self.from),
        })
    }

    fn local(&self, on_this_day: impl FnOnce(Time) -> DateTime) -> Result<DateTime, ToolError> {
        let text = self.time.trim();
        if text.parse::<Timestamp>().is_ok() {
            let sentence =
                format!("`{text}` has its own UTC offset, which may conflict with `from`; remove it");
            return Err(ToolError::new(sentence));
        }
        // A date and time first: it would be read as a time too, with its date ignored.
        let read = text.parse::<DateTime>().or_else(|_| text.parse().map(on_this_day));
        read.map_err(|_| {
            ToolError::new(format!("`{text}` is not a time; use a format such as 14:30 or 2026-07-28T14:30"))
        })
    }
}

/// A moment as a clock in one zone shows it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Moment {
    /// The date and time with its offset, as in RFC 3339.
    time: String,
    /// The time zone, as requested.
    timezone: String,
    /// The day of the week, in English.
    weekday: String,
}

impl Moment {
    fn new(zoned: &Zoned, timezone: &str) -> Self {
        let weekday = zoned.strftime("%A").to_string();
        Self { time: rfc3339(zoned), timezone: timezone.to_owned(), weekday }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConvertedTime {
    /// The moment in the zone that it was given in.
    from: Moment,
    /// The same moment in the other zone.
    to: Moment,
}

fn zone(name: &str) -> Result<TimeZone, ToolError> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_time_zone(name).map_err(|_| {
        ToolError::new(format!(
            "`{name}` is not a time zone; use an IANA name such as Europe/Berlin or an offset such as +02:00"
        ))
    })
}

fn rfc3339(zoned: &Zoned) -> String {
    zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In winter in Berlin, in summer in Auckland.
    const NOW: &str = "2026-01-15T23:30:00Z";

    fn now(timezone: Option<&str>) -> String {
        let asked = TimeNowInput { timezone: timezone.map(str::to_owned) };
        asked.respond(NOW.parse().unwrap()).map_or_else(|error| error.to_string(), |moment| moment.time)
    }

    fn convert(time: &str, from: &str, to: &str) -> String {
        let asked = TimeConvertInput { time: time.into(), from: from.into(), to: to.into() };
        asked
            .respond(NOW.parse().unwrap())
            .map_or_else(|error| error.to_string(), |converted| converted.to.time)
    }

    #[test]
    fn now_is_in_utc_or_in_the_requested_zone() {
        for (timezone, expected) in [
            (None, "2026-01-15T23:30:00+00:00"),
            (Some("UTC"), "2026-01-15T23:30:00+00:00"),
            (Some("Europe/Berlin"), "2026-01-16T00:30:00+01:00"),
            (Some("europe/berlin"), "2026-01-16T00:30:00+01:00"),
            (Some("Pacific/Auckland"), "2026-01-16T12:30:00+13:00"),
            (Some("-05:30"), "2026-01-15T18:00:00-05:30"),
            (Some("+02"), "2026-01-16T01:30:00+02:00"),
        ] {
            assert_eq!(now(timezone), expected, "{timezone:?}");
        }
    }

    #[test]
    fn time_has_weekday_and_zone_name() {
        let asked = TimeNowInput { timezone: Some("Asia/Tokyo".into()) };
        let moment = asked.respond(NOW.parse().unwrap()).unwrap();
        assert_eq!((moment.weekday.as_str(), moment.timezone.as_str()), ("Friday", "Asia/Tokyo"));
    }

    #[test]
    fn times_are_converted_on_the_day_that_it_is_in_the_zone_they_are_given_in() {
        for (time, from, to, expected) in [
            ("14:30", "UTC", "Europe/Berlin", "2026-01-15T15:30:00+01:00"),
            ("14:30", "Europe/Berlin", "UTC", "2026-01-16T13:30:00+00:00"),
            ("08:00:30", "Asia/Tokyo", "America/New_York", "2026-01-15T18:00:30-05:00"),
            ("2026-07-28T14:30", "UTC", "Europe/Berlin", "2026-07-28T16:30:00+02:00"),
            ("2026-07-28 14:30", "+00:00", "+05:45", "2026-07-28T20:15:00+05:45"),
            ("2026-03-29T02:30", "Europe/Berlin", "UTC", "2026-03-29T01:30:00+00:00"),
            ("2026-10-25T02:30", "Europe/Berlin", "UTC", "2026-10-25T00:30:00+00:00"),
        ] {
            assert_eq!(convert(time, from, to), expected, "{time} {from} {to}");
        }
    }

    #[test]
    fn invalid_time_input_is_reported_with_the_format() {
        for (said, part) in [
            (now(Some("Mars/Phobos")), "`Mars/Phobos` is not a time zone; use an IANA name"),
            (now(Some("")), "`` is not a time zone"),
            (convert("noon", "UTC", "UTC"), "`noon` is not a time; use a format such as 14:30"),
            (convert("25:00", "UTC", "UTC"), "`25:00` is not a time"),
            (convert("2026-07-28T14:30Z", "UTC", "UTC"), "has its own UTC offset"),
            (convert("2026-07-28T14:30+02:00", "UTC", "UTC"), "has its own UTC offset"),
            (convert("14:30", "UTC", "nowhere"), "`nowhere` is not a time zone"),
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
