//! Manual connecting.

use std::sync::Arc;

use tokio::time::Instant;

use super::Upstream;
use super::lifecycle::LifecycleEvent;

impl Upstream {
    /// Connects now, without waiting for the backoff of earlier failures.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_manually(self: &Arc<Self>) -> Result<(), String> {
        self.forget_eras();
        self.update_state(|state| {
            state.apply(LifecycleEvent::Reconnect(Instant::now()));
            state.backoff.reset();
            state.listings.forget_late();
        });
        self.connect_now().await
    }

    /// Forgets the eras that the server does not support, so that they are tried again.
    pub(super) fn forget_eras(&self) {
        self.options.connector.forget_eras();
        self.lock().forget_unsupported_eras();
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
                let failure = state.lifecycle().failure().filter(|_| state.usable().next().is_none());
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
