//! How many calls each server had in the last hour, how they ended and how long they took, for the console.
//!
//! A call adds to the counters of its server, without a lock. The counts of ten seconds become one point of a bounded ring:
//! the first call after them moves them there, or a reader. There is no task, so that an idle hub does nothing.
//!
//! # Invariants
//!
//! - What is kept of a server is bounded at any rate: `points_of_a_server_are_bounded_at_any_rate`.
//! - Each call counts once: `every_call_counts_once_while_points_are_taken`.

mod call_figures;
mod latencies;
mod relay_timer;
mod report;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use trunkline_config::ServerName;

pub(crate) use self::call_figures::CallFigures;
pub(crate) use self::relay_timer::RelayTimer;
pub use self::report::{CallFigureReport, FigurePoint, RecentFigures, ServerFigures};

/// The seconds of a point.
const SLOT_SECONDS: u32 = 10;

/// The points that are kept: an hour.
const MAX_POINTS: u32 = 360;

/// The points that keep their latencies, for percentiles over all of them: five minutes.
const RECENT_POINTS: u32 = 30;

/// The figures of all servers of a hub.
#[derive(Debug)]
pub(crate) struct HubFigures {
    /// When the first slot began.
    started: Instant,
    servers: Mutex<HashMap<ServerName, Arc<CallFigures>>>,
    /// Of all servers together.
    all: Arc<CallFigures>,
}

impl Default for HubFigures {
    fn default() -> Self {
        let started = Instant::now();
        Self { started, servers: Mutex::default(), all: Arc::new(CallFigures::new(started)) }
    }
}

impl HubFigures {
    /// Returns the figures of a server, which it keeps when its connection settings change.
    pub(crate) fn of_server(&self, name: &ServerName) -> Arc<CallFigures> {
        let mut servers = self.servers.lock();
        let figures = servers.entry(name.clone());
        figures.or_insert_with(|| Arc::new(CallFigures::of_part(self.started, self.all.clone()))).clone()
    }

    /// Drops the figures of servers that were removed.
    pub(crate) fn retain(&self, is_configured: impl Fn(&ServerName) -> bool) {
        self.servers.lock().retain(|name, _| is_configured(name));
    }

    /// Returns the points after a slot, and what they add up to.
    pub(crate) fn report(&self, after: Option<u32>) -> CallFigureReport {
        let now = self.all.slot_at(Instant::now());
        let known: Vec<_> =
            self.servers.lock().iter().map(|(name, figures)| (name.clone(), figures.clone())).collect();
        let mut servers: Vec<_> =
            known.into_iter().map(|(name, figures)| (name, figures.report(now, after))).collect();
        servers.sort_by(|(one, _), (other, _)| one.cmp(other));
        CallFigureReport { slot: now, slot_seconds: SLOT_SECONDS, all: self.all.report(now, after), servers }
    }
}

#[cfg(test)]
mod tests;
