use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::metrics::{CallMetrics, DropReason};
use crate::span::SpanRecord;

/// What waits for its export: spans, and the metrics.
#[derive(Debug)]
pub(crate) struct SignalQueue {
    spans: Mutex<VecDeque<SpanRecord>>,
    max_spans: usize,
    batch_spans: usize,
    metrics: Mutex<CallMetrics>,
    /// Notified when there are as many spans as a request takes.
    pub(crate) is_batch_ready: Notify,
}

impl SignalQueue {
    pub(crate) fn new(max_spans: usize, batch_spans: usize, now: i64) -> Self {
        Self {
            spans: Mutex::default(),
            max_spans,
            batch_spans,
            metrics: Mutex::new(CallMetrics::new(now)),
            is_batch_ready: Notify::new(),
        }
    }

    /// Adds a span. With a full queue it is dropped and counted.
    pub(crate) fn push(&self, span: SpanRecord) {
        let count = {
            let mut spans = self.spans.lock();
            if spans.len() < self.max_spans {
                spans.push_back(span);
                Some(spans.len())
            } else {
                None
            }
        };
        match count {
            Some(count) if count % self.batch_spans.max(1) == 0 => self.is_batch_ready.notify_one(),
            Some(_) => {}
            None => self.metrics.lock().count_dropped(DropReason::QueueFull, 1),
        }
    }

    /// Takes the oldest spans, as many as a request takes.
    pub(crate) fn take_batch(&self) -> Vec<SpanRecord> {
        let mut spans = self.spans.lock();
        let count = spans.len().min(self.batch_spans.max(1));
        spans.drain(..count).collect()
    }

    /// Changes the metrics.
    pub(crate) fn with_metrics<T>(&self, change: impl FnOnce(&mut CallMetrics) -> T) -> T {
        change(&mut self.metrics.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::SpanAttributes;
    use crate::span::SpanRole;

    #[test]
    fn queue_drops_and_counts_spans_beyond_its_limit() {
        let queue = SignalQueue::new(10, 4, 0);
        for number in 0..25 {
            queue.push(SpanRecord {
                trace: 1,
                span: number,
                parent: None,
                state: None,
                role: SpanRole::Server,
                name: String::new(),
                started_at: 0,
                ended_at: 0,
                attributes: SpanAttributes::default(),
                events: Vec::new(),
                is_error: false,
            });
        }
        let batches: Vec<Vec<u64>> = std::iter::repeat_with(|| queue.take_batch())
            .take_while(|batch| !batch.is_empty())
            .map(|batch| batch.iter().map(|span| span.span).collect())
            .collect();
        assert_eq!(
            batches,
            [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]],
            "the oldest are kept, in their order"
        );
        let dropped = queue.with_metrics(|metrics| metrics.dropped().collect::<Vec<_>>());
        assert_eq!(dropped, [("queue_full", 15), ("export_failed", 0), ("events_lost", 0)]);
    }
}
