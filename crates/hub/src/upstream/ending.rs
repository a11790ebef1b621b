//! Ending the connections of a server, for a while or for good.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Upstream;
use super::connection::Connection;
use super::desk::Phase;

/// How long a program that is to end is waited for, beyond the calls that it may finish.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);

impl Upstream {
    /// Ends every connection; calls may finish within a bound. `phase` says whether it may be connected again.
    fn end(&self, phase: Phase) -> Vec<Arc<Connection>> {
        let ended = self.change(|desk| {
            desk.phase = phase;
            desk.take_slots()
        });
        for attempt in ended.attempts {
            attempt.abort();
        }
        for connection in &ended.connections {
            connection.end();
        }
        ended.connections
    }

    /// Ends every connection until it is connected to by hand.
    pub(crate) fn disconnect(&self) {
        self.end(Phase::Disconnected);
    }

    /// Removes the server for good.
    pub(crate) fn remove(&self) {
        self.end(Phase::Removed);
    }

    /// Waits until every connection of a server that was disconnected or removed has ended.
    pub(crate) async fn ended(&self) {
        // Whoever connects it again meanwhile has something else in mind.
        self.until(|| self.lock().is_settled_down()).await;
    }

    /// Waits until nothing is left of a server that is about to be removed, at most for as long as that may take.
    pub(super) async fn gone(&self) {
        let within = self.options.limits.drain_within + CLOSES_WITHIN;
        let gone = self.until(|| {
            let desk = self.lock();
            desk.phase == Phase::Removed && desk.is_settled_down()
        });
        let _ = timeout(within, gone).await;
    }

    /// Ends every connection, and waits until they have ended; whoever needs one gets another, even meanwhile.
    pub(crate) async fn drop_connections(&self) {
        let ended = self.end(Phase::Open);
        self.until(|| ended.iter().all(|connection| connection.is_over())).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        // The sender is `self`, so that this waits and never fails.
        let _ = self.pulse.subscribe().wait_for(|_| is_so()).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        tasks.drain(..).for_each(|task| task.abort());
        let ended = self.desk.get_mut().take_slots();
        ended.attempts.into_iter().for_each(|attempt| attempt.abort());
        // Whoever still uses a connection keeps it; nobody minds it any more.
        ended.connections.into_iter().for_each(|connection| connection.abort_minder());
    }
}
