//! Change notifications: one subscription for both eras.
//!
//! A subscriber holds one bit per list and a bounded set of resource URIs, not a queue: a change that is still
//! pending is not added again, so a subscriber that never reads costs no more than one that does.
//!
//! # Invariants
//!
//! - The queue of a subscriber that never reads is bounded, and no change is lost:
//!   `change_subscriber_that_never_reads_is_bounded_and_loses_no_change`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use trunkline_protocol::{Refusal, emit};
use trunkline_session::{Principal, SessionId};

use crate::access_grant::AccessGrant;
use crate::admission::{ByteBudget, BytePermit};
use crate::bus::{BusLink, BusMessage, OutboxMessages, PublishedChange};
use crate::caller_identity::CallerIdentity;
use crate::shown_lists::ShownLists;

/// The most tasks that may wait on one subscription.
const MAX_POLLERS: usize = 16;

/// The most messages that wait for one subscriber alone; beyond it the oldest is dropped.
const MAX_DIRECT_MESSAGES: usize = 64;

/// A recipient of change notifications.
///
/// Two are equal whatever their credentials are: a client with a new token is the same recipient.
#[derive(Clone, Debug)]
pub struct ChangeSubscriber {
    /// Its principal.
    pub principal: Principal,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The connection or stream over which it listens, where there is no session.
    pub connection: Option<SessionId>,
    /// What the credential grants with which it subscribed; `None` for one without.
    pub grant: Option<Arc<AccessGrant>>,
}

impl ChangeSubscriber {
    /// Returns the verified identity.
    pub fn identity(&self) -> CallerIdentity<'_> {
        CallerIdentity::new(&self.principal, self.grant.as_ref())
    }

    /// Returns the id that distinguishes it from others for as long as it listens: its session, or else its
    /// connection or stream.
    pub fn client_id(&self) -> Option<SessionId> {
        self.session.or(self.connection)
    }
}

impl PartialEq for ChangeSubscriber {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.session, of.connection);
        self.principal == other.principal && key(self) == key(other)
    }
}

impl Eq for ChangeSubscriber {}

impl Hash for ChangeSubscriber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.principal, self.session, self.connection).hash(state);
    }
}

/// The changes that a subscriber wants to be notified of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// The subscriber, if it is known.
    pub subscriber: Option<ChangeSubscriber>,
    /// The lists that the subscriber was shown, if they are tracked: a legacy session's are, and a handler may
    /// track others.
    pub shown_lists: Option<ShownLists>,
    /// The list of tools changes.
    pub tools: bool,
    /// The list of prompts changes.
    pub prompts: bool,
    /// The list of resources changes.
    pub resources: bool,
    /// The content of these resources, or of parts of them, changes.
    pub uris: BTreeSet<String>,
}

impl SubscriptionFilter {
    /// The most resources that one subscriber may watch.
    pub const MAX_URIS: usize = 1024;

    /// The most bytes that the URIs of those resources may have together.
    pub const MAX_URI_BYTES: usize = 128 << 10;

    /// Everything but the content of single resources.
    pub fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Reports whether a filter names more resources than a subscriber may watch.
    pub(crate) fn is_too_large(&self) -> bool {
        let bytes: usize = self.uris.iter().map(String::len).sum();
        self.uris.len() > Self::MAX_URIS || bytes > Self::MAX_URI_BYTES
    }

    fn matches(&self, change: &ServerChange) -> bool {
        match change {
            ServerChange::Tools => self.tools,
            ServerChange::Prompts => self.prompts,
            ServerChange::Resources => self.resources,
            ServerChange::ResourceUpdated(uri) => self.watched_uri(uri).is_some(),
        }
    }

    /// Returns the watched URI that contains a resource.
    fn watched_uri(&self, uri: &str) -> Option<&String> {
        self.uris.iter().find(|watched| is_part_of(uri, watched))
    }
}

/// Returns how many bytes the subscription to a resource counts as: its URI and what is kept beside it.
pub(crate) fn watched_uri_bytes(uri: &str) -> usize {
    const OVERHEAD: usize = 64;
    uri.len() + OVERHEAD
}

/// Reports whether a resource is the watched one or lies below it.
fn is_part_of(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of resource templates.
    Resources,
    /// The content of a resource. All subscribers share one copy of its URI.
    ResourceUpdated(Arc<str>),
}

impl ServerChange {
    /// Returns the method of the notification for the change.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::ResourceUpdated(_) => "notifications/resources/updated",
        }
    }
}

impl ServerChange {
    /// Writes the notification in the form that legacy revisions have.
    pub(crate) fn legacy_message(&self) -> String {
        match self {
            Self::ResourceUpdated(uri) => emit::notification(self.method(), |writer| {
                writer.open_object();
                writer.plain_key("uri");
                writer.string(uri);
                writer.close_object();
            }),
            _ => emit::bare_notification(self.method()),
        }
    }
}

/// The subscribers of one server.
#[derive(Clone, Debug, Default)]
pub struct ChangePublisher {
    subscribers: Arc<Mutex<SubscriberTable>>,
    watched_changed: Arc<Notify>,
    /// The other processes that share sessions with this one.
    others: Arc<Mutex<Vec<Weak<BusLink>>>>,
}

#[derive(Debug, Default)]
struct SubscriberTable {
    next: u64,
    by_number: HashMap<u64, Weak<SubscriptionQueue>>,
}

impl ChangePublisher {
    /// Notifies every subscriber that wants the change, and those of the other processes that share sessions with this one.
    ///
    /// For changes that this process alone learns of.
    pub fn publish(&self, change: &ServerChange) {
        self.publish_here(change);
        let mut others = lock(&self.others);
        others.retain(|link| link.strong_count() > 0);
        for link in others.iter().filter_map(Weak::upgrade) {
            link.publish_soon(BusMessage::Changed { change: PublishedChange::from(change) });
        }
    }

    /// Notifies every subscriber of this process that wants the change, for changes that each process learns of by itself.
    pub fn publish_here(&self, change: &ServerChange) {
        self.publish_to(change, |_| true);
    }

    /// Publishes to the subscribers of other processes too.
    pub(crate) fn also_publish_to(&self, link: &Arc<BusLink>) {
        lock(&self.others).push(Arc::downgrade(link));
    }

    /// Notifies the subscribers of this process that want the change and that the predicate accepts.
    pub fn publish_to(
        &self,
        change: &ServerChange,
        is_recipient: impl Fn(Option<&ChangeSubscriber>) -> bool,
    ) {
        let queues: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for queue in queues {
            queue.notify(change, &is_recipient);
        }
    }

    /// Notifies of a list that has changed. A subscriber with tracked lists is notified only if `outdated` returns a
    /// version for the one that it was shown, which then counts as shown: the same, until it lists again, or a newer
    /// one. Every other subscriber that wants the change is notified.
    pub fn publish_outdated(
        &self,
        list: &ServerChange,
        outdated: impl Fn(Option<&ChangeSubscriber>, u64) -> Option<u64>,
    ) {
        let queues: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for queue in queues {
            let (shown, subscriber) = {
                let state = lock(&queue.state);
                (state.filter.shown_lists.clone(), state.filter.subscriber.clone())
            };
            let is_recipient = shown.is_none_or(|shown| {
                let next = shown.version(list).and_then(|version| outdated(subscriber.as_ref(), version));
                next.inspect(|version| shown.set(list, *version)).is_some()
            });
            if is_recipient {
                queue.notify(list, |_| true);
            }
        }
    }

    /// Begins a subscription.
    pub fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        let queue = Arc::new(SubscriptionQueue::default());
        let revises = !filter.uris.is_empty();
        lock(&queue.state).filter = filter;
        let mut subscribers = lock(&self.subscribers);
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.by_number.insert(number, Arc::downgrade(&queue));
        drop(subscribers);
        if revises {
            self.watched_changed.notify_one();
        }
        ChangeSubscription { queue, number, publisher: self.clone() }
    }

    /// Returns the watched resources, by subscriber.
    pub fn watched_resources(&self) -> HashMap<Option<ChangeSubscriber>, BTreeSet<String>> {
        let queues: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        let mut watched: HashMap<_, BTreeSet<String>> = HashMap::new();
        for queue in queues {
            let state = lock(&queue.state);
            if !state.filter.uris.is_empty() {
                let theirs = watched.entry(state.filter.subscriber.clone()).or_default();
                theirs.extend(state.filter.uris.iter().cloned());
            }
        }
        watched
    }

    /// Waits until the set of watched resources changes; for one task that then reads
    /// [`ChangePublisher::watched_resources`].
    pub async fn watched_changed(&self) {
        self.watched_changed.notified().await;
    }

    /// Returns how many subscriptions there are.
    pub fn count(&self) -> usize {
        lock(&self.subscribers).by_number.len()
    }
}

/// A subscription to change notifications; dropping it ends it.
#[derive(Debug)]
pub struct ChangeSubscription {
    queue: Arc<SubscriptionQueue>,
    number: u64,
    publisher: ChangePublisher,
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
    pub(crate) fn watch_resource(&self, uri: &str, all: &Arc<ByteBudget>) -> Result<(), Refusal> {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        if !state.filter.uris.insert(uri.to_owned()) {
            return Ok(());
        }
        let outcome = if state.filter.is_too_large() {
            Err(Refusal::INVALID_PARAMS.with_message("the session watches too many resources"))
        } else if !state.uri_permit.get_or_insert_with(|| all.permit()).grow(watched_uri_bytes(uri)) {
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
struct SubscriptionQueue {
    state: Mutex<SubscriptionQueueState>,
}

#[derive(Debug, Default)]
struct SubscriptionQueueState {
    filter: SubscriptionFilter,
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
    fn notify(&self, change: &ServerChange, is_recipient: impl Fn(Option<&ChangeSubscriber>) -> bool) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(subscription: &ChangeSubscription) -> Vec<ServerChange> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match subscription.poll_change(&mut cx) {
            Poll::Ready(change) => Some(change),
            Poll::Pending => None,
        })
        .collect()
    }

    #[test]
    fn subscribers_get_each_subscribed_change_once() {
        let changes = ChangePublisher::default();
        let subscription = changes.subscribe(SubscriptionFilter {
            tools: true,
            uris: BTreeSet::from(["file:///a".to_owned()]),
            ..SubscriptionFilter::default()
        });
        for change in [
            ServerChange::Tools,
            ServerChange::Tools,
            ServerChange::Prompts,
            ServerChange::ResourceUpdated("file:///a".into()),
            ServerChange::ResourceUpdated("file:///a/b".into()),
            ServerChange::ResourceUpdated("file:///ab".into()),
        ] {
            changes.publish(&change);
        }
        let expected = [
            ServerChange::Tools,
            ServerChange::ResourceUpdated("file:///a".into()),
            ServerChange::ResourceUpdated("file:///a/b".into()),
        ];
        assert_eq!(drain(&subscription), expected);
        changes.publish(&ServerChange::Tools);
        assert_eq!(drain(&subscription), [ServerChange::Tools]);
    }

    #[test]
    fn direct_messages_reach_only_their_subscriber_and_are_bounded() {
        let changes = ChangePublisher::default();
        let (one, other) = (
            changes.subscribe(SubscriptionFilter::all_lists()),
            changes.subscribe(SubscriptionFilter::all_lists()),
        );
        (0..=MAX_DIRECT_MESSAGES).for_each(|number| one.send_direct(number.to_string()));
        changes.publish(&ServerChange::Tools);
        let mut cx = Context::from_waker(Waker::noop());
        let mut messages = |subscription: &ChangeSubscription| -> Vec<String> {
            std::iter::from_fn(|| match subscription.poll_message(&mut cx) {
                Poll::Ready(message) => Some(message),
                Poll::Pending => None,
            })
            .collect()
        };
        let sent = messages(&one);
        assert_eq!(
            (sent.len(), &*sent[0]),
            (MAX_DIRECT_MESSAGES + 1, "1"),
            "the oldest went, and the change is told too"
        );
        assert_eq!(messages(&other), [ServerChange::Tools.legacy_message()]);
    }

    #[test]
    fn tracked_subscribers_are_notified_only_of_outdated_lists_they_were_shown() {
        let changes = ChangePublisher::default();
        let shown = ShownLists::default();
        let tracked = changes.subscribe(SubscriptionFilter {
            shown_lists: Some(shown.clone()),
            ..SubscriptionFilter::all_lists()
        });
        let untracked = changes.subscribe(SubscriptionFilter::all_lists());
        let publish = |current: u64| {
            let outdated = |_: Option<&ChangeSubscriber>, version| (version != current).then_some(version);
            changes.publish_outdated(&ServerChange::Tools, outdated);
        };
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown nothing");
        assert_eq!(drain(&untracked), [ServerChange::Tools]);
        shown.set(&ServerChange::Tools, 1);
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown the newest");
        publish(2);
        changes.publish_outdated(&ServerChange::Prompts, |_, version| Some(version));
        assert_eq!(drain(&tracked), [ServerChange::Tools]);
        publish(2);
        tracked.discard(&ServerChange::Tools);
        assert_eq!(drain(&tracked), [], "it has listed since");
        shown.mark_all_shown();
        publish(2);
        assert_eq!(drain(&tracked), [ServerChange::Tools], "a revived session may have seen anything");
    }

    #[test]
    fn dropped_subscription_is_removed_from_the_publisher() {
        let changes = ChangePublisher::default();
        let subscription = changes.subscribe(SubscriptionFilter::all_lists());
        assert_eq!(changes.count(), 1);
        drop(subscription);
        assert_eq!(changes.count(), 0);
    }

    #[test]
    fn change_subscriber_that_never_reads_is_bounded_and_loses_no_change() {
        let changes = ChangePublisher::default();
        let subscription = changes.subscribe(SubscriptionFilter {
            uris: BTreeSet::from(["x:/".to_owned()]),
            ..SubscriptionFilter::default()
        });
        for n in 0..10_000 {
            changes.publish(&ServerChange::ResourceUpdated(format!("x:/{n}").into()));
        }
        let received = drain(&subscription);
        assert_eq!(received.len(), SubscriptionFilter::MAX_URIS + 1);
        assert!(
            received.contains(&ServerChange::ResourceUpdated("x:/".into())),
            "those that found no room are not lost"
        );
    }
}
