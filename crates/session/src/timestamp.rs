//! Timestamps that are comparable across nodes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, in milliseconds since the Unix epoch.
///
/// Sessions in a remote store outlive the process, so its monotonic clock cannot date them. The system clock can step
/// back; every comparison here saturates instead of failing when it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Converts a reading of the system clock; a time before 1970 becomes the epoch.
    pub fn from_system(time: SystemTime) -> Self {
        Self(whole_milliseconds(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
    }

    /// Returns the point that is `duration` later, or the last representable one.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(whole_milliseconds(duration)))
    }

    /// Returns the time that has passed since `earlier`, or zero if that point is still to come.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp(5).plus(Duration::from_millis(7)), Timestamp(12));
        assert_eq!(Timestamp(5).plus(Duration::MAX), Timestamp(u64::MAX));
        assert_eq!(Timestamp(12).since(Timestamp(5)), Duration::from_millis(7));
        assert_eq!(Timestamp(5).since(Timestamp(12)), Duration::ZERO);
    }

    #[test]
    fn timestamp_is_read_from_the_system_clock() {
        let second = Duration::from_secs(1);
        assert_eq!(Timestamp::from_system(UNIX_EPOCH + second), Timestamp(1000));
        assert_eq!(Timestamp::from_system(UNIX_EPOCH - second), Timestamp(0));
    }
}
