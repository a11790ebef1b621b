//! The times that calls bring.

use std::time::{Duration, SystemTime};

use trunkline_session::Timestamp;

/// The longest duration that scripts calculate with, about 30,000 years: a number in Lua is exact up to 2^53.
const LONGEST: u64 = 1 << 50;

/// Returns what the clock of this process shows, in milliseconds.
pub(crate) fn clock_reading() -> u64 {
    Timestamp::from_system(SystemTime::now()).0
}

/// Returns a duration in milliseconds, as scripts take it.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(LONGEST).min(LONGEST)
}

/// Returns how far ahead one written use counts, for a limit on idleness.
pub(crate) fn idle_slack(idle: Duration) -> Duration {
    idle / 16
}
