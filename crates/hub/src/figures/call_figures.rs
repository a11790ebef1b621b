use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::latencies::{LatencyCounters, LatencyCounts};
use super::report::{FigurePoint, RecentFigures, ServerFigures};
use super::{MAX_POINTS, RECENT_POINTS, SLOT_SECONDS};

/// How a call ended, for the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureOutcome {
    Ok,
    /// An error, or a result that is one.
    Error,
    /// The caller cancelled it, or is gone.
    Cancelled,
}

/// Counts the calls of a server, or of all.
#[derive(Debug)]
pub(crate) struct CallFigures {
    /// When the first slot began.
    started: Instant,
    /// The slot that the counters are of.
    slot: AtomicU32,
    /// The counters, since the first call.
    counters: OnceLock<Box<FigureCounters>>,
    history: Mutex<FigureHistory>,
    /// What this is a part of, which counts the same calls.
    whole: Option<Arc<Self>>,
}

/// What is counted in one slot. The calls that were not cancelled are the times.
#[derive(Debug, Default)]
struct FigureCounters {
    latencies: LatencyCounters,
    errors: AtomicU32,
    cancelled: AtomicU32,
    result_bytes: AtomicU64,
}

/// The slots that are over.
#[derive(Debug, Default)]
struct FigureHistory {
    /// Those with a call, the oldest first.
    points: VecDeque<FigurePoint>,
    /// The latencies of the newest, each with its slot.
    recent: VecDeque<(u32, LatencyCounts)>,
    /// Everything before.
    calls: u64,
    errors: u64,
    result_bytes: u64,
}

impl CallFigures {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            slot: AtomicU32::new(0),
            counters: OnceLock::new(),
            history: Mutex::default(),
            whole: None,
        }
    }

    /// Makes figures of a part: each call counts for the whole too.
    pub(super) fn of_part(started: Instant, whole: Arc<Self>) -> Self {
        Self { whole: Some(whole), ..Self::new(started) }
    }

    /// Returns the slot of a time.
    pub(super) fn slot_at(&self, now: Instant) -> u32 {
        let seconds = now.saturating_duration_since(self.started).as_secs();
        u32::try_from(seconds / u64::from(SLOT_SECONDS)).unwrap_or(u32::MAX)
    }

    /// Counts a call that took so long until now.
    pub(super) fn count(&self, now: Instant, took: Duration, outcome: FigureOutcome, result_bytes: usize) {
        let slot = self.slot_at(now);
        // Not by `as_micros`: its 128-bit arithmetic costs more than the rest.
        let micros = took.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(took.subsec_micros()));
        self.count_in(slot, micros, outcome, result_bytes);
        if let Some(whole) = &self.whole {
            whole.count_in(slot, micros, outcome, result_bytes);
        }
    }

    fn count_in(&self, slot: u32, micros: u64, outcome: FigureOutcome, result_bytes: usize) {
        if self.slot.load(Ordering::Relaxed) != slot {
            self.advance(slot);
        }
        let counters = self.counters.get_or_init(Box::default);
        match outcome {
            FigureOutcome::Ok => {}
            FigureOutcome::Error => {
                counters.errors.fetch_add(1, Ordering::Relaxed);
            }
            FigureOutcome::Cancelled => {
                counters.cancelled.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        counters.latencies.add(micros);
        if result_bytes > 0 {
            let bytes = u64::try_from(result_bytes).unwrap_or(u64::MAX);
            counters.result_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Makes a point of the counts, since their slot is over. A call that is counted at the same time may be in either.
    #[cold]
    fn advance(&self, slot: u32) {
        let mut history = self.history.lock();
        let counted = self.slot.load(Ordering::Relaxed);
        if slot <= counted {
            return;
        }
        self.slot.store(slot, Ordering::Relaxed);
        if let Some(counters) = self.counters.get() {
            history.push(counted, counters);
        }
        history.expire(slot);
    }

    /// Returns the points after a slot, and what they add up to.
    pub(super) fn report(&self, now: u32, after: Option<u32>) -> ServerFigures {
        if self.slot.load(Ordering::Relaxed) < now {
            self.advance(now);
        }
        let history = self.history.lock();
        let is_new = |point: &&FigurePoint| after.is_none_or(|after| point.slot > after);
        ServerFigures {
            calls: history.calls,
            errors: history.errors,
            result_bytes: history.result_bytes,
            recent: history.recent(now),
            points: history.points.iter().filter(is_new).cloned().collect(),
        }
    }
}

impl FigureHistory {
    fn push(&mut self, slot: u32, counters: &FigureCounters) {
        let latencies = counters.latencies.take();
        let point = FigurePoint {
            slot,
            calls: latencies.total(),
            errors: counters.errors.swap(0, Ordering::Relaxed).into(),
            cancelled: counters.cancelled.swap(0, Ordering::Relaxed).into(),
            p50_micros: latencies.percentile(50),
            p95_micros: latencies.percentile(95),
            p99_micros: latencies.percentile(99),
            result_bytes: counters.result_bytes.swap(0, Ordering::Relaxed),
        };
        if point.calls == 0 && point.cancelled == 0 {
            return;
        }
        self.calls += point.calls;
        self.errors += point.errors;
        self.result_bytes = self.result_bytes.saturating_add(point.result_bytes);
        self.points.push_back(point);
        self.recent.push_back((slot, latencies));
    }

    /// Drops what is too old.
    fn expire(&mut self, now: u32) {
        while self.points.front().is_some_and(|point| point.slot.saturating_add(MAX_POINTS) < now) {
            self.points.pop_front();
        }
        while self.recent.front().is_some_and(|(slot, _)| slot.saturating_add(RECENT_POINTS) < now) {
            self.recent.pop_front();
        }
    }

    /// Adds up the last five minutes.
    fn recent(&self, now: u32) -> RecentFigures {
        let first = now.saturating_sub(RECENT_POINTS);
        let mut latencies = LatencyCounts::default();
        self.recent.iter().filter(|(slot, _)| *slot >= first).for_each(|(_, counts)| latencies.add(counts));
        let points = self.points.iter().filter(|point| point.slot >= first);
        RecentFigures {
            seconds: now.min(RECENT_POINTS) * SLOT_SECONDS,
            calls: latencies.total(),
            errors: points.map(|point| point.errors).sum(),
            p50_micros: latencies.percentile(50),
            p95_micros: latencies.percentile(95),
            p99_micros: latencies.percentile(99),
        }
    }
}
