use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::Value;

use super::body::EventBody;

/// One event, with its place in the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct HubEvent {
    /// Its number, one more than that of the event before it.
    pub seq: u64,
    /// When it happened.
    pub time: EventTime,
    /// What happened.
    pub body: EventBody,
}

/// The time of an event, in microseconds since 1970 in UTC. It is shown as in RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTime(i64);

/// Why a line is not an event.
#[derive(Debug, thiserror::Error)]
pub enum EventParseError {
    /// It is not a JSON object of a known form.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A member is missing or has the wrong type.
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
}

impl EventTime {
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Returns the microseconds since 1970 in UTC.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.parse::<Timestamp>().ok()?.as_microsecond()))
    }
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.6}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000000Z"),
        }
    }
}

impl HubEvent {
    /// Writes the event as one line of JSON, without the end of the line.
    pub fn to_line(&self) -> String {
        let members = serde_json::to_string(&self.body).unwrap_or_default();
        let members = members.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        let mut line = format!(r#"{{"seq":{},"time":"{}",{members}"#, self.seq, self.time);
        // A message is JSON already, and is not parsed again.
        if let EventBody::Message(message) = &self.body
            && let Some(raw) = &message.message
        {
            line.push_str(r#","message":"#);
            line.push_str(raw.as_str());
        }
        line.push('}');
        line
    }

    /// Reads a line. Unknown members are ignored, and an unknown kind becomes [`EventBody::Unknown`].
    ///
    /// # Errors
    /// The line is no event.
    pub fn parse(line: &str) -> Result<Self, EventParseError> {
        let value: Value = serde_json::from_str(line)?;
        let seq = value.get("seq").and_then(Value::as_u64).ok_or(EventParseError::Member("seq"))?;
        let time = value.get("time").and_then(Value::as_str).and_then(EventTime::parse);
        let time = time.ok_or(EventParseError::Member("time"))?;
        Ok(Self { seq, time, body: serde_json::from_value(value)? })
    }
}
