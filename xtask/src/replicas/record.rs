//! What all clients of a run saw, and how their requests ended.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::history::HistoryEvent;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestOutcome {
    Answered,
    /// An error as the response, such as that the process of the call has ended.
    CallFailed,
    /// 503 with a reason.
    Unavailable,
    /// 503 of a replica that drains: the call did not run.
    Draining,
    /// 502 or 504: the balancer reached no replica, or lost it.
    NoReplica,
    /// The connection broke, or the stream ended without a response and could not be resumed.
    Broken,
    /// Anything else, which no client should see.
    Unexpected,
}

impl RequestOutcome {
    pub(super) const ALL: [Self; 7] = [
        Self::Answered,
        Self::CallFailed,
        Self::Unavailable,
        Self::Draining,
        Self::NoReplica,
        Self::Broken,
        Self::Unexpected,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::CallFailed => "error of the call",
            Self::Unavailable => "503 with a reason",
            Self::Draining => "503 while draining",
            Self::NoReplica => "502 or 504 of the balancer",
            Self::Broken => "connection broken",
            Self::Unexpected => "unexpected",
        }
    }
}

/// Collects from all clients.
#[derive(Debug, Default)]
pub(super) struct RunRecord {
    history: Mutex<Vec<HistoryEvent>>,
    outcomes: Mutex<OutcomeCounts>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OutcomeCounts {
    /// By the kind of request and its end.
    pub(super) counts: BTreeMap<(&'static str, RequestOutcome), usize>,
    pub(super) slowest_unavailable: Duration,
    /// The first texts of unexpected responses.
    pub(super) unexpected: Vec<String>,
    pub(super) resumed: usize,
}

/// How many unexpected responses are kept.
const KEPT_TEXTS: usize = 10;

impl RunRecord {
    pub(super) fn add(&self, event: HistoryEvent) {
        self.history.lock().push(event);
    }

    pub(super) fn count(&self, kind: &'static str, outcome: RequestOutcome) {
        *self.outcomes.lock().counts.entry((kind, outcome)).or_default() += 1;
    }

    /// Notes how long a 503 took.
    pub(super) fn note_unavailable(&self, took: Duration) {
        let mut outcomes = self.outcomes.lock();
        outcomes.slowest_unavailable = outcomes.slowest_unavailable.max(took);
    }

    pub(super) fn count_resumed(&self) {
        self.outcomes.lock().resumed += 1;
    }

    pub(super) fn note_unexpected(&self, text: String) {
        let mut outcomes = self.outcomes.lock();
        if outcomes.unexpected.len() < KEPT_TEXTS {
            outcomes.unexpected.push(text);
        }
    }

    /// Returns how many notifications arrived so far, by session.
    pub(super) fn notified(&self) -> BTreeMap<u32, usize> {
        let mut notified = BTreeMap::new();
        for event in self.history.lock().iter() {
            if let HistoryEvent::Notified(session) = event {
                *notified.entry(*session).or_default() += 1;
            }
        }
        notified
    }

    pub(super) fn take_history(&self) -> Vec<HistoryEvent> {
        std::mem::take(&mut *self.history.lock())
    }

    pub(super) fn outcomes(&self) -> OutcomeCounts {
        self.outcomes.lock().clone()
    }
}
