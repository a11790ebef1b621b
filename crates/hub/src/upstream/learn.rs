//! Learning what an upstream lists for a caller, once for all callers of the same era and capabilities.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::Upstream;
use super::caller_profile::CallerProfile;
use super::listing_key::ListingKey;
use super::listing_store::ListingState;

impl Upstream {
    /// Returns how far it is known what the upstream lists for a caller.
    pub(crate) fn listing_state(&self, caller: ListingKey) -> ListingState {
        let config = self.config.load();
        let desk = self.lock();
        if !desk.is_offered() {
            return ListingState::Current;
        }
        match desk.listings.state(caller, desk.listing_key(caller, &config)) {
            // The registry, from which lists are answered, is about to have it.
            ListingState::Current if !desk.is_in_registry => ListingState::Missing,
            state => state,
        }
    }

    /// Begins to learn what the upstream lists for a caller, unless that is known or under way.
    pub(crate) fn begin_learning(self: &Arc<Self>, party: &CallerProfile) {
        let caller = party.listing_key();
        if self.listing_state(caller) == ListingState::Current || !self.lock().listings.begin_learning(caller)
        {
            return;
        }
        let (upstream, party) = (self.clone(), party.clone());
        let learning = tokio::spawn(async move {
            let _ = timeout(upstream.options.limits.listing_timeout, upstream.learn(&party)).await;
            upstream.update_state(|desk| desk.listings.end_learning(caller));
        });
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(learning.abort_handle());
    }

    /// Aborts the tasks that work for the upstream, some of which would keep it alive, when its hub is dropped.
    pub(crate) fn abort_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.iter().for_each(AbortHandle::abort);
    }

    /// Connects for a caller, and waits until the upstream has listed over that connection or it is gone.
    async fn learn(self: &Arc<Self>, party: &CallerProfile) {
        if self.lock().retry_after(Instant::now()).is_some() {
            return;
        }
        let mut pulse = self.change_counter.subscribe();
        let caller = party.listing_key();
        // With sessions each connection lists for itself, and this has no effect.
        self.lock().listings.request(caller);
        let Ok(lease) = self.lease(party).await else { return };
        lease.connection().wake_supervisor();
        let listed = pulse.wait_for(|_| self.listing_state(caller) == ListingState::Current);
        tokio::select! {
            // The sender is `self`, so that this waits and never fails.
            _ = listed => {}
            _ = lease.client().closed() => {}
        }
    }

    /// Waits until it is known what the upstream lists for a caller, or nothing is under way to learn it.
    pub(crate) async fn wait_learned(&self, caller: ListingKey) {
        let mut pulse = self.change_counter.subscribe();
        let is_done = |_: &u64| {
            self.listing_state(caller) == ListingState::Current || !self.lock().listings.is_learning(caller)
        };
        // The sender is `self`, so that this never fails.
        let _ = pulse.wait_for(is_done).await;
    }

    /// Notes that a list went out without what may be there for its caller.
    pub(crate) fn set_late(&self, caller: ListingKey) {
        self.lock().listings.set_late(caller);
    }
}
