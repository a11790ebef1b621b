//! Fetches an upstream's lists for a caller, once for all callers of the same era and capabilities.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::Upstream;
use super::caller_profile::CallerProfile;
use super::listing_key::ListingKey;
use super::listing_store::ListingState;

impl Upstream {
    /// Returns the state of the upstream's listing for a caller.
    pub(crate) fn listing_state(&self, caller: ListingKey) -> ListingState {
        let config = self.config.load();
        let mut state = self.lock();
        if !state.is_offered() {
            return ListingState::Current;
        }
        let shown = state.listing_key(caller, &config);
        if state.listings.contains(shown) {
            state.listings.record_use(shown);
        }
        match state.listings.state(caller, shown) {
            // The registry, from which list requests are answered, does not have it yet.
            ListingState::Current if !state.is_in_registry => ListingState::Missing,
            state => state,
        }
    }

    /// Starts to fetch the listing for a caller, unless it is known or being fetched.
    pub(crate) fn begin_learning(self: &Arc<Self>, profile: &CallerProfile) {
        let caller = profile.listing_key();
        if self.listing_state(caller) == ListingState::Current || !self.lock().listings.begin_learning(caller)
        {
            return;
        }
        let (upstream, profile) = (self.clone(), profile.clone());
        self.spawn_task(async move {
            let _ = timeout(upstream.options.limits.listing_timeout, upstream.learn(&profile)).await;
            upstream.update_state(|state| state.listings.end_learning(caller));
        });
    }

    /// Aborts the tasks that work for the upstream, some of which would keep it alive, when its hub is dropped.
    pub(crate) fn abort_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.iter().for_each(AbortHandle::abort);
    }

    /// Connects for a caller, and waits until the upstream has listed over that connection or it is closed.
    async fn learn(self: &Arc<Self>, profile: &CallerProfile) {
        if self.lock().lifecycle().connect_block(Instant::now()).is_some() {
            return;
        }
        let mut state_changes = self.change_counter.subscribe();
        let caller = profile.listing_key();
        // With sessions each connection lists for itself, and this has no effect.
        self.lock().listings.request(caller);
        let Ok(lease) = self.lease(&profile.for_lists(&self.options)).await else { return };
        lease.connection().wake_supervisor();
        let listed = state_changes.wait_for(|_| self.listing_state(caller) == ListingState::Current);
        tokio::select! {
            // The sender is `self`, so that this waits and never fails.
            _ = listed => {}
            _ = lease.client().closed() => {}
            // Nothing is listed over it any more, and its end waits for this lease.
            () = lease.connection().close_requested() => {}
        }
    }

    pub(super) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(task).abort_handle();
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Waits until the listing for a caller is current, or is not being fetched.
    pub(crate) async fn wait_learned(&self, caller: ListingKey) {
        let mut state_changes = self.change_counter.subscribe();
        let is_done = |_: &u64| {
            self.listing_state(caller) == ListingState::Current || !self.lock().listings.is_learning(caller)
        };
        // The sender is `self`, so that this never fails.
        let _ = state_changes.wait_for(is_done).await;
    }

    /// Records that a list was returned without this upstream's items for the caller.
    pub(crate) fn set_late(&self, caller: ListingKey) {
        self.lock().listings.set_late(caller);
    }
}
