//! Ending the connections of a server, for a while or for good.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Upstream;
use super::connection::UpstreamConnection;
use super::upstream_state::UpstreamPhase;

/// How long a program that is to end is waited for, beyond the calls that it may finish.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Upstream {
    /// Ends every connection; calls may finish within a bound. `phase` says whether it may be connected again.
    fn close_connections(&self, phase: UpstreamPhase) -> Vec<Arc<UpstreamConnection>> {
        let ended = self.update_state(|desk| {
            desk.phase = phase;
            desk.take_all()
        });
        for attempt in ended.attempts {
            attempt.abort();
        }
        for connection in &ended.connections {
            connection.request_close();
        }
        ended.connections
    }

    /// Ends every connection until it is connected to by hand.
    pub(crate) fn disconnect(&self) {
        self.close_connections(UpstreamPhase::Disconnected);
    }

    /// Removes the server for good.
    pub(crate) fn remove(&self) {
        self.close_connections(UpstreamPhase::Removed);
    }

    /// Waits until every connection of a server that was disconnected or removed has ended.
    pub(crate) async fn wait_disconnected(&self) {
        // Whoever connects it again meanwhile has something else in mind.
        self.wait_until(|| self.lock().is_drained()).await;
    }

    /// Waits until nothing is left of a server that is about to be removed, at most for as long as that may take.
    pub(super) async fn wait_removed(&self) {
        let within = self.options.limits.drain_timeout + CLOSE_TIMEOUT;
        let gone = self.wait_until(|| {
            let desk = self.lock();
            desk.phase == UpstreamPhase::Removed && desk.is_drained()
        });
        let _ = timeout(within, gone).await;
    }

    /// Ends every connection, and waits until they have ended; whoever needs one gets another, even meanwhile.
    pub(crate) async fn restart_connections(&self) {
        let ended = self.close_connections(UpstreamPhase::Active);
        self.wait_until(|| ended.iter().all(|connection| connection.is_closed())).await;
    }

    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        // The sender is `self`, so that this waits and never fails.
        let _ = self.change_counter.subscribe().wait_for(|_| is_so()).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        tasks.drain(..).for_each(|task| task.abort());
        let ended = self.state.get_mut().take_all();
        ended.attempts.into_iter().for_each(|attempt| attempt.abort());
        // Whoever still uses a connection keeps it; nobody minds it any more.
        ended.connections.into_iter().for_each(|connection| connection.abort_supervisor());
    }
}
