use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trunkline_protocol::Refusal;

use crate::call::HandlerOutcome;

/// The upper bounds of the buckets, in nanoseconds; after the last comes one without a bound.
pub(super) const BUCKET_BOUNDS: [u64; 15] = [
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
    60_000_000_000,
    300_000_000_000,
];

/// The outcome of a call, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricOutcome {
    Ok,
    /// The tool returned an error result.
    ToolError,
    /// The request ended with an input request; another request continues the call.
    InputRequired,
    Refused,
    Panicked,
    /// The caller cancelled it.
    Cancelled,
}

impl MetricOutcome {
    pub(super) const ALL: [Self; 6] =
        [Self::Ok, Self::ToolError, Self::InputRequired, Self::Refused, Self::Panicked, Self::Cancelled];

    pub(crate) fn from_result(outcome: &Result<HandlerOutcome, Refusal>) -> Self {
        match outcome {
            Ok(HandlerOutcome::Done(reply)) if reply.is_tool_error() => Self::ToolError,
            Ok(HandlerOutcome::Done(_)) => Self::Ok,
            Ok(HandlerOutcome::InputRequired(_)) => Self::InputRequired,
            Err(refusal) if refusal.is_same_kind(&Refusal::PANICKED) => Self::Panicked,
            Err(_) => Self::Refused,
        }
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::InputRequired => "input_required",
            Self::Refused => "refused",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The counters of the calls of one method or tool.
#[derive(Debug, Default)]
pub(super) struct CallSeries {
    buckets: [AtomicU64; BUCKET_BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
    outcomes: [AtomicU64; MetricOutcome::ALL.len()],
}

impl CallSeries {
    /// Counts one call; three additions and no lock.
    pub(super) fn record(&self, took: Duration, ended: MetricOutcome) {
        // Not by `as_nanos`: its 128-bit arithmetic costs more than the rest.
        let nanoseconds =
            took.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(took.subsec_nanos()));
        let bucket =
            BUCKET_BOUNDS.iter().position(|bound| nanoseconds <= *bound).unwrap_or(BUCKET_BOUNDS.len());
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        for (counters, at) in [(&self.buckets[..], bucket), (&self.outcomes[..], ended as usize)] {
            if let Some(counter) = counters.get(at) {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the buckets with their upper bounds in seconds, and the sum of all times.
    pub(super) fn histogram(&self) -> (Vec<(f64, u64)>, f64) {
        let ends = BUCKET_BOUNDS.iter().map(|bound| Duration::from_nanos(*bound).as_secs_f64());
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets = ends.chain([f64::MAX]).zip(counts).collect();
        (buckets, Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64())
    }

    pub(super) fn outcome_count(&self, ended: MetricOutcome) -> u64 {
        self.outcomes.get(ended as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(super) fn is_unused(&self) -> bool {
        MetricOutcome::ALL.iter().all(|ended| self.outcome_count(*ended) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_duration_is_counted_in_its_bucket() {
        for (microseconds, seconds) in [
            (0, 0.0001),
            (100, 0.0001),
            (101, 0.0005),
            (999_999, 1.0),
            (300_000_000, 300.0),
            (u64::MAX, f64::MAX),
        ] {
            let series = CallSeries::default();
            assert!(series.is_unused());
            series.record(Duration::from_micros(microseconds), MetricOutcome::InputRequired);
            let (buckets, _) = series.histogram();
            let counted: Vec<_> =
                buckets.iter().filter(|(_, count)| *count == 1).map(|(end, _)| *end).collect();
            assert_eq!(counted, [seconds], "{microseconds}");
            assert_eq!(series.outcome_count(MetricOutcome::InputRequired), 1);
        }
    }

    #[test]
    fn every_call_outcome_has_its_own_counter_and_label() {
        let labels: std::collections::BTreeSet<_> =
            MetricOutcome::ALL.iter().map(|ended| ended.label()).collect();
        assert_eq!(labels.len(), MetricOutcome::ALL.len());
        assert!(MetricOutcome::ALL.iter().enumerate().all(|(at, ended)| *ended as usize == at));
    }
}
