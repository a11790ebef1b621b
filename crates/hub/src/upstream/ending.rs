//! Closes the connections of a server, temporarily or for good.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Upstream;
use super::connection::UpstreamConnection;
use super::lifecycle::{LifecycleEvent, UpstreamLifecycle};

/// How long a program may take to exit, after the drain timeout of its calls.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Upstream {
    /// Closes every connection; running calls may finish within the drain timeout. `event` decides whether it may be
    /// connected again.
    fn close_connections(&self, event: LifecycleEvent) -> Vec<Arc<UpstreamConnection>> {
        let ended = self.update_state(|state| {
            let ended = state.take_all();
            ended.connections.iter().for_each(|connection| connection.request_close());
            state.apply(event);
            ended
        });
        for attempt in ended.attempts {
            attempt.abort();
        }
        ended.connections
    }

    /// Closes every connection until a manual connect.
    pub(crate) fn disconnect(&self) {
        self.close_connections(LifecycleEvent::Disconnect);
    }

    /// Removes the server for good.
    pub(crate) fn remove(&self) {
        self.close_connections(LifecycleEvent::Remove);
    }

    /// Waits until every connection of a disconnected or removed server is closed.
    pub(crate) async fn wait_disconnected(&self) {
        // A reconnect meanwhile ends the wait too.
        self.wait_until(|| self.lock().is_drained()).await;
    }

    /// Waits until a server is removed and all of its connections are closed, at most for the drain and close
    /// timeouts.
    pub(super) async fn wait_removed(&self) {
        let within = self.options.limits.drain_timeout + CLOSE_TIMEOUT;
        let gone = self.wait_until(|| {
            let state = self.lock();
            *state.lifecycle() == UpstreamLifecycle::Removed && state.is_drained()
        });
        let _ = timeout(within, gone).await;
    }

    /// Closes every connection and waits for that; calls meanwhile get new connections.
    pub(crate) async fn restart_connections(&self) {
        self.forget_eras();
        let ended = self.close_connections(LifecycleEvent::Restart);
        self.wait_until(|| ended.iter().all(|connection| connection.is_closed())).await;
    }

    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        // The sender is `self`, so that this waits and never fails.
        let _ = self.change_counter.subscribe().wait_for(|_| is_so()).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // A lease keeps its connection alive; only the supervisor is aborted.
        let tasks = self.tasks.get_mut();
        tasks.drain(..).for_each(|task| task.abort());
        let ended = self.state.get_mut().take_all();
        ended.attempts.into_iter().for_each(|attempt| attempt.abort());
    }
}
