use std::time::Duration;

use http::HeaderValue;
use trunkline_protocol::sse::SseEvent;

/// The reconnection delay, unless the server has set `retry`.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// The lower bound for the server's `retry`.
const MIN_DELAY: Duration = Duration::from_millis(50);

/// The upper bound for the server's `retry`.
const MAX_DELAY: Duration = Duration::from_secs(60 * 60);

/// The first backoff after a failure; it doubles with each.
const FAILURE_DELAY: Duration = Duration::from_millis(250);

/// The longest backoff.
const MAX_FAILURE_DELAY: Duration = Duration::from_secs(30);

/// The longest event id that is sent as `Last-Event-ID`.
const MAX_EVENT_ID_BYTES: usize = 4096;

/// Where and when an event stream can be resumed.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamResumption {
    last_event_id: Option<HeaderValue>,
    retry: Option<Duration>,
    failures: u32,
    /// Consecutive streams without any event.
    empty_streams: u32,
}

impl StreamResumption {
    /// Records the id and the `retry` of an event. The id is kept until another arrives, across streams.
    pub(super) fn record_event(&mut self, event: &SseEvent) {
        if let Some(id) = &event.id {
            self.last_event_id = Some(id)
                .filter(|id| !id.is_empty() && id.len() <= MAX_EVENT_ID_BYTES)
                .and_then(|id| HeaderValue::from_str(id).ok());
        }
        if let Some(retry) = event.retry_ms {
            self.retry = Some(Duration::from_millis(retry));
        }
        (self.failures, self.empty_streams) = (0, 0);
    }

    /// Counts a stream that has ended, and returns the number of consecutive ones without any event.
    pub(super) fn record_end(&mut self) -> u32 {
        let before = self.empty_streams;
        self.empty_streams = before.saturating_add(1);
        before
    }

    /// Returns the id of the last event, if the stream can be resumed.
    pub(super) fn last_event_id(&self) -> Option<&HeaderValue> {
        self.last_event_id.as_ref()
    }

    /// Counts a failed attempt, and returns the number of consecutive failures.
    pub(super) fn record_failure(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.failures
    }

    /// Returns the delay before the next attempt.
    pub(super) fn retry_delay(&self) -> Duration {
        let requested = self.retry.unwrap_or(DEFAULT_DELAY).clamp(MIN_DELAY, MAX_DELAY);
        let backoff = match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FAILURE_DELAY
                .checked_mul(1 << doublings.min(16))
                .map_or(MAX_FAILURE_DELAY, |delay| delay.min(MAX_FAILURE_DELAY)),
        };
        requested.max(backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, retry_ms: Option<u64>) -> SseEvent {
        SseEvent { id: id.map(str::to_owned), retry_ms, ..SseEvent::default() }
    }

    #[test]
    fn last_event_id_is_kept_until_replaced_and_cleared_by_an_empty_id() {
        let long = "x".repeat(MAX_EVENT_ID_BYTES + 1);
        let mut resumption = StreamResumption::default();
        for (id, expected) in [
            (None, None),
            (Some("a"), Some("a")),
            (None, Some("a")),
            (Some("b/1"), Some("b/1")),
            (Some(""), None),
            (Some("c"), Some("c")),
            (Some("not\u{1}legal"), None),
            (Some(&*long), None),
        ] {
            resumption.record_event(&event(id, None));
            assert_eq!(resumption.last_event_id().map(|id| id.to_str().unwrap()), expected, "{id:?}");
        }
    }

    #[test]
    fn retry_delay_clamps_the_servers_retry_and_backs_off_on_failures() {
        // The server's `retry`, the failed attempts, and the delay in milliseconds.
        for (retry, failures, expected) in [
            (None, 0, 1000),
            (Some(500), 0, 500),
            (Some(0), 0, 50),
            (Some(u64::MAX), 0, 3_600_000),
            (Some(500), 1, 500),
            (Some(0), 1, 250),
            (Some(0), 2, 500),
            (Some(0), 4, 2000),
            (Some(5000), 4, 5000),
            (Some(0), 1000, 30_000),
        ] {
            let mut resumption = StreamResumption::default();
            resumption.record_event(&event(None, retry));
            for number in 1..=failures {
                assert_eq!(resumption.record_failure(), number);
            }
            assert_eq!(resumption.retry_delay(), Duration::from_millis(expected), "{retry:?} {failures}");
        }
    }

    #[test]
    fn any_event_resets_the_failure_count() {
        let mut resumption = StreamResumption::default();
        resumption.record_failure();
        resumption.record_event(&event(None, None));
        assert_eq!(resumption.record_failure(), 1);
    }
}
