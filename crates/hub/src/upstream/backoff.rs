use std::time::Duration;

use tokio::time::Instant;

use crate::limits::HubLimits;

/// The exponential backoff of a failing server.
///
/// A server has one for connecting, whatever the number of its connections, and each connection one for listing.
/// Retries never stop, and a server that fails right after the handshake backs off like one that never responds.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Records a failed attempt, and returns when the next one is due.
    pub(super) fn record_failure(&mut self, now: Instant, limits: &HubLimits) -> Instant {
        self.failures = self.failures.saturating_add(1);
        let doubled = limits.restart_delay.saturating_mul(1 << self.failures.saturating_sub(1).min(16));
        now + with_jitter(doubled.min(limits.max_restart_delay))
    }

    /// Records the unexpected loss of a connection that was opened at `began`, and returns when the next attempt is
    /// due.
    pub(super) fn record_lost(&mut self, began: Instant, now: Instant, limits: &HubLimits) -> Instant {
        self.record_closed(began, now, limits);
        self.record_failure(now, limits)
    }

    /// Records the orderly close of a connection that was opened at `began`.
    pub(super) fn record_closed(&mut self, began: Instant, now: Instant, limits: &HubLimits) {
        if now.saturating_duration_since(began) >= limits.backoff_reset_after {
            *self = Self::default();
        }
    }

    /// Forgets the failures, for a manual connect.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Subtracts up to a quarter, so that servers that failed together are not restarted together.
fn with_jitter(delay: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness there is no jitter, and nothing worse.
    let _ = getrandom::fill(&mut byte);
    delay.mul_f64(1.0 - f64::from(byte[0]) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_maximum_and_never_stops() {
        let limits = HubLimits::default();
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for expected in [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] {
            let remaining = backoff.record_failure(now, &limits) - now;
            let expected = Duration::from_millis(expected);
            assert!(
                remaining <= expected && remaining >= expected.mul_f64(0.75),
                "{remaining:?} of {expected:?}"
            );
        }
        for _ in 0..100_000 {
            assert!(backoff.record_failure(now, &limits) - now <= limits.max_restart_delay);
        }
    }

    #[test]
    fn backoff_resets_only_after_a_healthy_minute() {
        let limits = HubLimits::default();
        let began = Instant::now();
        for (lived, resets) in [(59, false), (60, true)] {
            let mut backoff = Backoff::default();
            for _ in 0..6 {
                backoff.record_lost(began, began, &limits);
            }
            let now = began + Duration::from_secs(lived);
            let remaining = backoff.record_lost(began, now, &limits) - now;
            assert_eq!(remaining < Duration::from_secs(1), resets, "{lived} s");
        }
    }

    #[test]
    fn backoff_resets_after_an_orderly_close_of_a_healthy_connection() {
        let limits = HubLimits::default();
        let began = Instant::now();
        for (lived, resets) in [(59, false), (60, true)] {
            let mut backoff = Backoff::default();
            for _ in 0..6 {
                backoff.record_failure(began, &limits);
            }
            let now = began + Duration::from_secs(lived);
            backoff.record_closed(began, now, &limits);
            let remaining = backoff.record_failure(now, &limits) - now;
            assert_eq!(remaining < Duration::from_secs(1), resets, "{lived} s");
        }
    }
}
