//! Learning what an upstream lists for a caller's capabilities, once for all callers that have the same.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use trunkline_config::Share;

use super::Upstream;
use super::input::InputSet;
use super::listings::ListingState;
use super::party::Party;
use super::state::Known;

impl Upstream {
    /// Returns how far it is known what the upstream lists for a caller.
    pub(crate) fn listing_state(&self, caller: InputSet) -> ListingState {
        let share = self.config.load().share;
        let desk = self.lock();
        if !desk.offers() {
            return ListingState::Current;
        }
        let state = desk.listings.state(caller, shown_to(caller, share, desk.known.as_deref()));
        match state {
            // The registry, from which lists are answered, is about to have it.
            ListingState::Current if !desk.is_shown => ListingState::Missing,
            state => state,
        }
    }

    /// Begins to learn what the upstream lists for a caller, unless that is known or under way.
    pub(crate) fn begin_learning(self: &Arc<Self>, party: &Party) {
        let caller = party.input();
        if self.listing_state(caller) == ListingState::Current || !self.lock().listings.begin_learning(caller)
        {
            return;
        }
        let (upstream, party) = (self.clone(), party.clone());
        let learning = tokio::spawn(async move {
            let _ = timeout(upstream.options.limits.catalogue_within, upstream.learn(&party)).await;
            upstream.change(|desk| desk.listings.end_learning(caller));
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
    async fn learn(self: &Arc<Self>, party: &Party) {
        if self.lock().left_alone(Instant::now()).is_some() {
            return;
        }
        let mut pulse = self.pulse.subscribe();
        self.request_listing(party.input());
        let Ok(lease) = self.lease(party).await else { return };
        lease.connection().stir();
        let listed = pulse.wait_for(|_| self.listing_state(party.input()) == ListingState::Current);
        tokio::select! {
            // The sender is `self`, so that this waits and never fails.
            _ = listed => {}
            _ = lease.client().closed() => {}
        }
    }

    /// Has an upstream without sessions listed for a caller too, over the connection that all callers share. With sessions each
    /// connection lists for itself, and this has no effect.
    fn request_listing(&self, caller: InputSet) {
        let share = self.config.load().share;
        let mut desk = self.lock();
        let shown = shown_to(caller, share, desk.known.as_deref());
        desk.listings.request(shown);
    }

    /// Waits until it is known what the upstream lists for a caller, or nothing is under way to learn it.
    pub(crate) async fn learned(&self, caller: InputSet) {
        let mut pulse = self.pulse.subscribe();
        let is_done = |_: &u64| {
            self.listing_state(caller) == ListingState::Current || !self.lock().listings.is_learning(caller)
        };
        // The sender is `self`, so that this never fails.
        let _ = pulse.wait_for(is_done).await;
    }

    /// Notes that a list went out without what may be there for its caller.
    pub(crate) fn set_late(&self, caller: InputSet) {
        self.lock().listings.set_late(caller);
    }
}

/// Returns which of a caller's capabilities the upstream is shown, on which its listing depends.
pub(super) fn shown_to(caller: InputSet, share: Share, known: Option<&Known>) -> InputSet {
    match known {
        _ if share == Share::All => InputSet::default(),
        Some(known) => caller.usable_in(known.revision),
        None => caller,
    }
}
