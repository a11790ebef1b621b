//! The reconnect loop of a server, and manual connecting.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use trunkline_config::StartMode;

use super::Upstream;
use super::caller_profile::PoolKey;
use super::upstream_state::{UpstreamPhase, UpstreamState};

pub(super) fn spawn(upstream: &Arc<Upstream>) -> AbortHandle {
    let reconnecting = reconnect_loop(Arc::downgrade(upstream), upstream.change_counter.subscribe());
    tokio::spawn(reconnecting).abort_handle()
}

async fn reconnect_loop(upstream: Weak<Upstream>, mut state_changes: watch::Receiver<u64>) {
    loop {
        let Some(due) = upstream.upgrade().map(|upstream| upstream.connect_if_due()) else { return };
        let again = async {
            match due {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = again => {}
            changed = state_changes.changed() => if changed.is_err() { return },
        }
    }
}

impl Upstream {
    /// Connects if it is due, and returns the remaining backoff if not.
    fn connect_if_due(self: &Arc<Self>) -> Option<Duration> {
        let mut state = self.lock();
        if !self.should_be_connected(&state) || state.usable().next().is_some() || !state.attempts.is_empty()
        {
            return None;
        }
        let wait = state.backoff.remaining(Instant::now());
        if !wait.is_zero() {
            return Some(wait);
        }
        drop(self.start_attempt(&mut state, PoolKey::unassigned(), None));
        drop(state);
        self.notify_changed();
        None
    }

    /// Reports whether a server should be connected without a call: because it is eager, or because its lists were
    /// requested and are not known yet. Subscription tasks connect by themselves.
    fn should_be_connected(&self, state: &UpstreamState) -> bool {
        let is_eager = self.config.load().start == StartMode::Eager && !state.is_idle_stopped;
        let is_unknown = state.is_list_requested && state.listings.is_empty();
        state.is_offered() && (is_eager || is_unknown)
    }

    // Manual connecting.

    /// Connects now, without waiting for the backoff of earlier failures.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_manually(self: &Arc<Self>) -> Result<(), String> {
        self.update_state(|state| {
            if state.phase == UpstreamPhase::Disconnected {
                state.phase = UpstreamPhase::Active;
            }
            state.backoff.reset();
            state.eras.forget_unsupported();
            state.listings.forget_late();
        });
        self.connect_now().await
    }

    /// Connects and waits for the first lists.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_now(self: &Arc<Self>) -> Result<(), String> {
        self.update_state(|state| state.is_list_requested = true);
        match self.lease_for_hub().await {
            Ok(_) => {
                self.wait_listed().await;
                // The connection may have been discarded or lost already.
                let state = self.lock();
                let failure = state.failure.as_ref().filter(|_| state.usable().next().is_none());
                failure.map_or(Ok(()), |failure| Err(failure.reason.clone()))
            }
            // A disabled server is not connected, and that is not a failure.
            Err(super::UpstreamUnavailable::Disabled) => Ok(()),
            Err(unavailable) => Err(unavailable.to_string()),
        }
    }

    /// Waits until a connected server has listed its items.
    async fn wait_listed(&self) {
        let mut state_changes = self.change_counter.subscribe();
        let listed = state_changes.wait_for(|_| {
            let state = self.lock();
            (state.is_in_registry && !state.listings.is_empty()) || state.usable().next().is_none()
        });
        let _ = tokio::time::timeout(self.options.limits.listing_timeout, listed).await;
    }
}
