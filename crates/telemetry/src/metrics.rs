use std::collections::BTreeMap;

use crate::attribute::SpanAttributes;

/// The upper bounds of the buckets in seconds, as the conventions have them.
pub(crate) const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The most series of a metric; what is beyond them counts as one more, as OpenTelemetry has it.
const MAX_SERIES: usize = 2000;

/// A metric of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DurationMetric {
    ServerOperation,
    ClientOperation,
    ServerSession,
    ClientSession,
}

/// Why something is not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The collector refused it, or could not be reached.
    ExportFailed,
    /// Events of the hub were lost before they were read.
    EventsLost,
}

/// How long something took, by buckets.
#[derive(Clone, Debug)]
pub(crate) struct DurationHistogram {
    buckets: [u64; BOUNDS.len() + 1],
    sum: f64,
    min: f64,
    max: f64,
}

/// The metrics of a hub since the start.
#[derive(Clone, Debug)]
pub(crate) struct CallMetrics {
    started_at: i64,
    series: BTreeMap<DurationMetric, BTreeMap<SpanAttributes, DurationHistogram>>,
    dropped: [u64; 3],
}

impl DurationMetric {
    pub(crate) const ALL: [Self; 4] =
        [Self::ServerOperation, Self::ClientOperation, Self::ServerSession, Self::ClientSession];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ServerOperation => "mcp.server.operation.duration",
            Self::ClientOperation => "mcp.client.operation.duration",
            Self::ServerSession => "mcp.server.session.duration",
            Self::ClientSession => "mcp.client.session.duration",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::ServerOperation => "How long the hub took to answer requests of clients.",
            Self::ClientOperation => "How long servers took to answer requests of the hub.",
            Self::ServerSession => "How long clients had a session or connection with the hub.",
            Self::ClientSession => "How long the hub had a session or connection with servers.",
        }
    }
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self { buckets: [0; BOUNDS.len() + 1], sum: 0.0, min: f64::INFINITY, max: 0.0 }
    }
}

impl DurationHistogram {
    fn record(&mut self, seconds: f64) {
        let place = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += 1;
        }
        self.sum += seconds;
        self.min = self.min.min(seconds);
        self.max = self.max.max(seconds);
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    pub(crate) fn min(&self) -> f64 {
        self.min
    }

    pub(crate) fn max(&self) -> f64 {
        self.max
    }

    pub(crate) fn buckets(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().copied()
    }
}

impl CallMetrics {
    /// Begins to count at a time in microseconds since 1970.
    pub(crate) fn new(started_at: i64) -> Self {
        Self { started_at, series: BTreeMap::new(), dropped: [0; 3] }
    }

    pub(crate) fn started_at(&self) -> i64 {
        self.started_at
    }

    /// Records a duration.
    pub(crate) fn record(&mut self, metric: DurationMetric, with: SpanAttributes, seconds: f64) {
        let series = self.series.entry(metric).or_default();
        let with = if series.len() < MAX_SERIES || series.contains_key(&with) {
            with
        } else {
            let mut overflow = SpanAttributes::default();
            overflow.flag("otel.metric.overflow");
            overflow
        };
        series.entry(with).or_default().record(seconds);
    }

    pub(crate) fn count_dropped(&mut self, reason: DropReason, count: u64) {
        if let Some(dropped) = self.dropped.get_mut(reason as usize) {
            *dropped += count;
        }
    }

    pub(crate) fn series(
        &self,
        metric: DurationMetric,
    ) -> impl Iterator<Item = (&SpanAttributes, &DurationHistogram)> {
        self.series.get(&metric).into_iter().flatten()
    }

    /// Returns what was dropped, by reason.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ["queue_full", "export_failed", "events_lost"].into_iter().zip(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_has_a_bounded_number_of_series() {
        let mut metrics = CallMetrics::new(0);
        for number in 0..3000 {
            let mut with = SpanAttributes::default();
            with.integer("n", number);
            metrics.record(DurationMetric::ClientOperation, with, 0.02);
        }
        let series: Vec<_> = metrics.series(DurationMetric::ClientOperation).collect();
        assert_eq!(series.len(), MAX_SERIES + 1);
        let most = series.iter().map(|(_, found)| found.count()).max();
        assert_eq!(most, Some(1000), "the rest is one series");
        // A bound belongs to its bucket.
        assert_eq!(series[0].1.buckets().take(3).collect::<Vec<_>>(), [0, 1, 0]);
    }
}
