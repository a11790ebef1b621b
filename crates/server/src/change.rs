//! Changes that clients are told of: one subscription for both eras.
//!
//! A subscriber holds one bit per list and a bounded set of resource addresses, not a queue: a change that has not been
//! told yet is not told twice, so a subscriber that never reads costs no more than one that does.
//!
//! # Invariants
//!
//! - The queue of a subscriber that never reads is bounded, and no change is lost:
//!   `a_subscriber_that_never_reads_is_bounded_and_misses_nothing`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use trunkline_protocol::{Refusal, emit};
use trunkline_session::{Principal, SessionId};

use crate::shown_lists::ShownLists;
use crate::watched_uris::{WatchedUriBudget, WatchedUriPermit};

/// The tasks that may wait on one subscription.
const MAX_POLLERS: usize = 16;

/// What waits to be said to one subscriber alone; beyond it the oldest is not said.
const MAX_DIRECT_MESSAGES: usize = 64;

/// Who is told of changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChangeSubscriber {
    /// Who it is.
    pub principal: Principal,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The connection or stream over which it listens, where there is no session.
    pub connection: Option<SessionId>,
}

impl ChangeSubscriber {
    /// Returns what tells it from others for as long as it listens: its session, or else its connection or stream.
    pub fn client_id(&self) -> Option<SessionId> {
        self.session.or(self.connection)
    }
}

/// What a subscriber wants to be told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Who is to be told, if that is known.
    pub subscriber: Option<ChangeSubscriber>,
    /// What the subscriber was shown of the lists, if that is tracked: a legacy session's is, and a handler may say it of others.
    pub shown_lists: Option<ShownLists>,
    /// Tools come, go or change.
    pub tools: bool,
    /// Prompts come, go or change.
    pub prompts: bool,
    /// Resources come, go or change.
    pub resources: bool,
    /// These resources, or parts of them, have new content.
    pub uris: BTreeSet<String>,
}

impl SubscriptionFilter {
    /// The most resources that one subscriber may watch.
    pub const MAX_URIS: usize = 1024;

    /// The most bytes that the addresses of those resources may have together.
    pub const MAX_URI_BYTES: usize = 128 << 10;

    /// Everything but the content of single resources.
    pub fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Reports whether a subscriber asks to be told of more than it may.
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

    /// Returns the address that is watched and of which a resource is a part.
    fn watched_uri(&self, uri: &str) -> Option<&String> {
        self.uris.iter().find(|watched| is_part_of(uri, watched))
    }
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
    /// The content of a resource. However many are told of it, its address is held once.
    ResourceUpdated(Arc<str>),
}

impl ServerChange {
    /// Returns the notification that tells of the change.
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
}

#[derive(Debug, Default)]
struct SubscriberTable {
    next: u64,
    by_number: HashMap<u64, Weak<SubscriptionQueue>>,
}

impl ChangePublisher {
    /// Tells every subscriber that wants to know.
    pub fn publish(&self, change: &ServerChange) {
        self.publish_to(change, |_| true);
    }

    /// Tells those subscribers that want to know, of these.
    pub fn publish_to(&self, change: &ServerChange, is_told: impl Fn(Option<&ChangeSubscriber>) -> bool) {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher.notify(change, &is_told);
        }
    }

    /// Notifies of a list that has changed. A subscriber whose lists are tracked is notified only if it was shown a version of
    /// the list that is outdated now; every other subscriber that wants to know is notified.
    pub fn publish_outdated(&self, list: &ServerChange, is_outdated: impl Fn(u64) -> bool) {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            let shown = lock(&watcher.state).filter.shown_lists.clone();
            let is_told = shown.is_none_or(|shown| shown.version(list).is_some_and(&is_outdated));
            if is_told {
                watcher.notify(list, |_| true);
            }
        }
    }

    /// Begins a subscription.
    pub fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        let watcher = Arc::new(SubscriptionQueue::default());
        let revises = !filter.uris.is_empty();
        lock(&watcher.state).filter = filter;
        let mut subscribers = lock(&self.subscribers);
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.by_number.insert(number, Arc::downgrade(&watcher));
        drop(subscribers);
        if revises {
            self.watched_changed.notify_one();
        }
        ChangeSubscription { queue: watcher, number, publisher: self.clone() }
    }

    /// Returns the resources that are watched, by who watches them.
    pub fn watched_resources(&self) -> HashMap<Option<ChangeSubscriber>, BTreeSet<String>> {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        let mut watched: HashMap<_, BTreeSet<String>> = HashMap::new();
        for watcher in watchers {
            let state = lock(&watcher.state);
            if !state.filter.uris.is_empty() {
                let theirs = watched.entry(state.filter.subscriber.clone()).or_default();
                theirs.extend(state.filter.uris.iter().cloned());
            }
        }
        watched
    }

    /// Waits until other resources are watched than before; for one task that then looks at [`ChangePublisher::watched_resources`].
    pub async fn watched_changed(&self) {
        self.watched_changed.notified().await;
    }

    /// Returns how many subscriptions there are.
    pub fn count(&self) -> usize {
        lock(&self.subscribers).by_number.len()
    }
}

/// A standing wish to be told of changes; dropping it ends it.
#[derive(Debug)]
pub struct ChangeSubscription {
    queue: Arc<SubscriptionQueue>,
    number: u64,
    publisher: ChangePublisher,
}

impl ChangeSubscription {
    /// Polls for the next change.
    pub fn poll_change(&self, cx: &mut Context<'_>) -> Poll<ServerChange> {
        let mut state = lock(&self.queue.state);
        if let Some(change) = state.pending.pop_first() {
            return Poll::Ready(change);
        }
        let crowded_out = state.register_waker(cx.waker());
        drop(state);
        crowded_out.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    /// Polls for the next message to a legacy client: what is for it alone, or a change.
    pub(crate) fn poll_message(&self, cx: &mut Context<'_>) -> Poll<String> {
        if let Some(own) = lock(&self.queue.state).direct.pop_front() {
            return Poll::Ready(own);
        }
        match self.poll_change(cx) {
            Poll::Ready(change) => Poll::Ready(change.legacy_message()),
            // Whatever came in between woke nobody yet.
            Poll::Pending => lock(&self.queue.state).direct.pop_front().map_or(Poll::Pending, Poll::Ready),
        }
    }

    /// Says something to this subscriber alone.
    pub(crate) fn send_direct(&self, message: String) {
        let mut state = lock(&self.queue.state);
        if state.direct.len() >= MAX_DIRECT_MESSAGES {
            state.direct.pop_front();
        }
        state.direct.push_back(message);
        drop(state);
        self.wake();
    }

    /// Drops a change of which the subscriber has not been notified yet, since it is about to see the list itself.
    pub(crate) fn discard(&self, change: &ServerChange) {
        lock(&self.queue.state).pending.remove(change);
    }

    /// Waits for the next change.
    pub async fn next_change(&self) -> ServerChange {
        std::future::poll_fn(|cx| self.poll_change(cx)).await
    }

    /// Wakes whoever polls, so that it looks at what else it depends on.
    pub(crate) fn wake(&self) {
        let wakers = std::mem::take(&mut lock(&self.queue.state).wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Watches a resource too, within what the subscriber and all together may.
    ///
    /// # Errors
    /// One of the two is exhausted.
    pub(crate) fn watch_resource(&self, uri: &str, all: &Arc<WatchedUriBudget>) -> Result<(), Refusal> {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        if !state.filter.uris.insert(uri.to_owned()) {
            return Ok(());
        }
        let outcome = if state.filter.is_too_large() {
            Err(Refusal::INVALID_PARAMS.with_message("the session watches too many resources"))
        } else if !state.uri_permit.get_or_insert_with(|| all.permit()).add(uri) {
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

    /// Watches a resource no longer.
    pub(crate) fn unwatch_resource(&self, uri: &str) {
        let mut guard = lock(&self.queue.state);
        let state = &mut *guard;
        if state.filter.uris.remove(uri)
            && let Some(room) = &mut state.uri_permit
        {
            room.remove(uri);
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
    /// Room for the resources that were added one by one.
    uri_permit: Option<WatchedUriPermit>,
    pending: BTreeSet<ServerChange>,
    /// What is for this one alone.
    direct: VecDeque<String>,
    /// Those who poll. Several may share a subscription, and any of them may be gone by the time that it is woken.
    wakers: Vec<Waker>,
}

impl SubscriptionQueueState {
    /// Remembers to wake a task; beyond the bound, returns the one that waits longest, which asks again if it is still there.
    fn register_waker(&mut self, waker: &Waker) -> Option<Waker> {
        if self.wakers.iter().any(|known| known.will_wake(waker)) {
            return None;
        }
        let crowded_out = (self.wakers.len() >= MAX_POLLERS).then(|| self.wakers.remove(0));
        self.wakers.push(waker.clone());
        crowded_out
    }
}

impl SubscriptionQueue {
    fn notify(&self, change: &ServerChange, is_told: impl Fn(Option<&ChangeSubscriber>) -> bool) {
        let mut state = lock(&self.state);
        if !state.filter.matches(change) || !is_told(state.filter.subscriber.as_ref()) {
            return;
        }
        let told = match change {
            // One of many: of all further ones together the subscriber learns that what it watches has changed.
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
        state.pending.insert(told);
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
    fn subscribers_are_told_only_what_they_want_and_once() {
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
        let told = [
            ServerChange::Tools,
            ServerChange::ResourceUpdated("file:///a".into()),
            ServerChange::ResourceUpdated("file:///a/b".into()),
        ];
        assert_eq!(drain(&subscription), told);
        changes.publish(&ServerChange::Tools);
        assert_eq!(drain(&subscription), [ServerChange::Tools]);
    }

    #[test]
    fn what_is_for_one_subscriber_alone_reaches_no_other_and_is_bounded() {
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
        let said = messages(&one);
        assert_eq!(
            (said.len(), &*said[0]),
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
        let publish =
            |current: u64| changes.publish_outdated(&ServerChange::Tools, |version| version != current);
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown nothing");
        assert_eq!(drain(&untracked), [ServerChange::Tools]);
        shown.set(&ServerChange::Tools, 1);
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown the newest");
        publish(2);
        changes.publish_outdated(&ServerChange::Prompts, |_| true);
        assert_eq!(drain(&tracked), [ServerChange::Tools]);
        publish(2);
        tracked.discard(&ServerChange::Tools);
        assert_eq!(drain(&tracked), [], "it has listed since");
        shown.mark_all_shown();
        publish(2);
        assert_eq!(drain(&tracked), [ServerChange::Tools], "a revived session may have seen anything");
    }

    #[test]
    fn a_dropped_subscription_leaves_nothing() {
        let changes = ChangePublisher::default();
        let subscription = changes.subscribe(SubscriptionFilter::all_lists());
        assert_eq!(changes.count(), 1);
        drop(subscription);
        assert_eq!(changes.count(), 0);
    }

    #[test]
    fn a_subscriber_that_never_reads_is_bounded_and_misses_nothing() {
        let changes = ChangePublisher::default();
        let subscription = changes.subscribe(SubscriptionFilter {
            uris: BTreeSet::from(["x:/".to_owned()]),
            ..SubscriptionFilter::default()
        });
        for n in 0..10_000 {
            changes.publish(&ServerChange::ResourceUpdated(format!("x:/{n}").into()));
        }
        let told = drain(&subscription);
        assert_eq!(told.len(), SubscriptionFilter::MAX_URIS + 1);
        assert!(
            told.contains(&ServerChange::ResourceUpdated("x:/".into())),
            "those that found no room are not lost"
        );
    }
}
