use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use trunkline_protocol::Refusal;

use super::filter::{ChangeSubscriber, ServerChange, SubscriptionFilter, watched_uri_bytes};
use super::{ChangePublisher, lock};
use crate::access_grant::AccessGrant;
use crate::admission::{ByteBudget, BytePermit};
use crate::bus::OutboxMessages;
use crate::party::ClientParty;

/// The most tasks that may wait on one subscription.
const MAX_POLLERS: usize = 16;

/// The most messages that wait for one subscriber alone; beyond it the oldest is dropped.
pub(super) const MAX_DIRECT_MESSAGES: usize = 64;

/// A subscription to change notifications; dropping it ends it.
#[derive(Debug)]
pub struct ChangeSubscription {
    pub(super) queue: Arc<SubscriptionQueue>,
    pub(super) number: u64,
    pub(super) publisher: ChangePublisher,
}

impl ChangeSubscription {
    /// Polls for the next change.
    pub(crate) fn poll_change(&self, cx: &mut Context<'_>) -> Poll<ServerChange> {
        let mut state = lock(&self.queue.state);
        if let Some(change) = state.pending.pop_first() {
            return Poll::Ready(change);
        }
        let evicted = state.register_waker(cx.waker());
        drop(state);
        evicted.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    /// Polls for the next message to a legacy client: a message for it alone, or a change.
    pub(crate) fn poll_message(&self, cx: &mut Context<'_>) -> Poll<String> {
        if let Some(own) = lock(&self.queue.state).direct.pop_front() {
            return Poll::Ready(own);
        }
        match self.poll_change(cx) {
            Poll::Ready(change) => Poll::Ready(change.legacy_message()),
            // A message that was pushed before the waker was registered has woken no task.
            Poll::Pending => lock(&self.queue.state).direct.pop_front().map_or(Poll::Pending, Poll::Ready),
        }
    }

    /// Sends a message to this subscriber alone.
    pub(crate) fn send_direct(&self, message: String) {
        let mut state = lock(&self.queue.state);
        if state.direct.len() >= MAX_DIRECT_MESSAGES {
            state.direct.pop_front();
        }
        state.direct.push_back(message);
        drop(state);
        self.wake();
    }

    /// Takes everything that waits for the subscriber.
    pub(crate) fn take_all(&self) -> OutboxMessages {
        let mut state = lock(&self.queue.state);
        let changes = std::mem::take(&mut state.pending);
        let messages = std::mem::take(&mut state.direct);
        OutboxMessages { changes: changes.into_iter().collect(), messages: messages.into() }
    }

    /// Adds what waited for the subscriber elsewhere, before what waits here. A change that is pending already, or that the
    /// subscriber does not want any more, is not added.
    pub(crate) fn add_all(&self, waiting: OutboxMessages) {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        state.pending.extend(waiting.changes.into_iter().filter(|change| state.filter.matches(change)));
        for message in waiting.messages.into_iter().rev() {
            state.direct.push_front(message);
        }
        let excess = state.direct.len().saturating_sub(MAX_DIRECT_MESSAGES);
        state.direct.drain(..excess);
        drop(guard);
        self.wake();
    }

    /// Drops the changes that are pending, of which another process notifies the subscriber.
    pub(crate) fn discard_changes(&self) {
        lock(&self.queue.state).pending.clear();
    }

    /// Registers a task to be woken when anything changes.
    pub(crate) fn register(&self, waker: &Waker) {
        let evicted = lock(&self.queue.state).register_waker(waker);
        evicted.into_iter().for_each(Waker::wake);
    }

    /// Drops a change of which the subscriber has not been notified yet, since it is about to see the list itself.
    pub(crate) fn discard(&self, change: &ServerChange) {
        lock(&self.queue.state).pending.remove(change);
    }

    /// Waits for the next change.
    pub async fn next_change(&self) -> ServerChange {
        std::future::poll_fn(|cx| self.poll_change(cx)).await
    }

    /// Wakes the polling tasks, so that they check what else they depend on.
    pub(crate) fn wake(&self) {
        let wakers = std::mem::take(&mut lock(&self.queue.state).wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Also watches a resource, within the limits of the subscriber and of all subscribers together.
    ///
    /// # Errors
    /// One of the two limits is reached.
    pub(crate) fn watch_resource(
        &self,
        uri: &str,
        party: &ClientParty,
        all: &Arc<ByteBudget>,
    ) -> Result<(), Refusal> {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        if !state.filter.uris.insert(uri.to_owned()) {
            return Ok(());
        }
        let outcome = if state.filter.is_too_large() {
            Err(Refusal::INVALID_PARAMS.with_message("the session watches too many resources"))
        } else if !state.uri_permit.get_or_insert_with(|| all.permit_for(party)).grow(watched_uri_bytes(uri))
        {
            Err(Refusal::TOO_MANY.with_message("too many resources are watched; try again later"))
        } else {
            Ok(())
        };
        if outcome.is_err() {
            state.filter.uris.remove(uri);
        }
        drop(guard);
        self.publisher.watched_changed.notify_one();
        outcome
    }

    /// Returns the watched resources.
    pub(crate) fn watched_uris(&self) -> BTreeSet<String> {
        lock(&self.queue.state).filter.uris.clone()
    }

    /// Sets what the credential of the subscriber grants, as of its latest subscription.
    pub(crate) fn set_grant(&self, grant: Option<&Arc<AccessGrant>>) {
        if let Some(subscriber) = &mut lock(&self.queue.state).filter.subscriber {
            subscriber.grant = grant.cloned();
        }
    }

    /// Stops watching a resource.
    pub(crate) fn unwatch_resource(&self, uri: &str) {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        if state.filter.uris.remove(uri)
            && let Some(permit) = &mut state.uri_permit
        {
            permit.shrink(watched_uri_bytes(uri));
        }
        drop(guard);
        self.publisher.watched_changed.notify_one();
    }
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        lock(&self.publisher.subscribers).by_number.remove(&self.number);
        self.publisher.watched_changed.notify_one();
    }
}

#[derive(Debug, Default)]
pub(super) struct SubscriptionQueue {
    pub(super) state: Mutex<SubscriptionQueueState>,
}

#[derive(Debug, Default)]
pub(super) struct SubscriptionQueueState {
    pub(super) filter: SubscriptionFilter,
    /// The permit for the resources that were added one by one.
    uri_permit: Option<BytePermit>,
    pending: BTreeSet<ServerChange>,
    /// Messages for this subscriber alone.
    direct: VecDeque<String>,
    /// The polling tasks. Several may share a subscription, and any of them may have ended by the time it is woken.
    wakers: Vec<Waker>,
}

impl SubscriptionQueueState {
    /// Registers a task to wake; beyond the bound, returns the oldest waker to be woken, and its task polls again
    /// if it still runs.
    fn register_waker(&mut self, waker: &Waker) -> Option<Waker> {
        if self.wakers.iter().any(|known| known.will_wake(waker)) {
            return None;
        }
        let evicted = (self.wakers.len() >= MAX_POLLERS).then(|| self.wakers.remove(0));
        self.wakers.push(waker.clone());
        evicted
    }
}

impl SubscriptionQueue {
    pub(super) fn notify(
        &self,
        change: &ServerChange,
        is_recipient: impl Fn(Option<&ChangeSubscriber>) -> bool,
    ) {
        let mut state = lock(&self.state);
        if !state.filter.matches(change) || !is_recipient(state.filter.subscriber.as_ref()) {
            return;
        }
        let notified = match change {
            // One of many: of all further ones together the subscriber is only notified that a resource it watches
            // has changed.
            ServerChange::ResourceUpdated(uri) if state.pending.len() >= SubscriptionFilter::MAX_URIS => {
                ServerChange::ResourceUpdated(
                    state
                        .filter
                        .watched_uri(uri)
                        .map_or_else(|| uri.clone(), |watched| watched.as_str().into()),
                )
            }
            _ => change.clone(),
        };
        state.pending.insert(notified);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
