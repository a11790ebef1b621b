//! Changes that clients are told of: one subscription for both eras.
//!
//! A subscriber holds one bit per list and a bounded set of resource addresses, not a queue: a change that has not been
//! told yet is not told twice, so a subscriber that never reads costs no more than one that does.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use trunkline_protocol::{Refusal, emit};
use trunkline_session::{Principal, SessionId};

use crate::shown_lists::ShownLists;
use crate::watched::{Watched, WatchedRoom};

/// The tasks that may wait on one subscription.
const MOST_POLLERS: usize = 16;

/// What waits to be said to one subscriber alone; beyond it the oldest is not said.
const MOST_OWN: usize = 64;

/// Who is told of changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    /// Who it is.
    pub principal: Principal,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The connection or stream over which it listens, where there is no session.
    pub connection: Option<SessionId>,
}

impl Listener {
    /// Returns what tells it from others for as long as it listens: its session, or else its connection or stream.
    pub fn client_id(&self) -> Option<SessionId> {
        self.session.or(self.connection)
    }
}

/// What a subscriber wants to be told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Who is to be told, if that is known.
    pub listener: Option<Listener>,
    /// What the subscriber was shown of the lists, if that is tracked: a legacy session's is, and a handler may say it of others.
    pub shown: Option<ShownLists>,
    /// Tools come, go or change.
    pub tools: bool,
    /// Prompts come, go or change.
    pub prompts: bool,
    /// Resources come, go or change.
    pub resources: bool,
    /// These resources, or parts of them, have new content.
    pub uris: BTreeSet<String>,
}

impl Filter {
    /// The most resources that one subscriber may watch.
    pub const MOST_URIS: usize = 1024;

    /// The most bytes that the addresses of those resources may have together.
    pub const MOST_URI_BYTES: usize = 128 << 10;

    /// Everything but the content of single resources.
    pub fn lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Reports whether a subscriber asks to be told of more than it may.
    pub(crate) fn is_too_large(&self) -> bool {
        let bytes: usize = self.uris.iter().map(String::len).sum();
        self.uris.len() > Self::MOST_URIS || bytes > Self::MOST_URI_BYTES
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.watched(uri).is_some(),
        }
    }

    /// Returns the address that is watched and of which a resource is a part.
    fn watched(&self, uri: &str) -> Option<&String> {
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
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of resource templates.
    Resources,
    /// The content of a resource. However many are told of it, its address is held once.
    Updated(Arc<str>),
}

impl Change {
    /// Returns the notification that tells of the change.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
        }
    }
}

impl Change {
    /// Writes the notification in the form that legacy revisions have.
    pub(crate) fn legacy_message(&self) -> String {
        match self {
            Self::Updated(uri) => emit::notification(self.method(), |writer| {
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
pub struct Changes {
    subscribers: Arc<Mutex<Subscribers>>,
    revised: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Subscribers {
    next: u64,
    by_number: HashMap<u64, Weak<Watcher>>,
}

impl Changes {
    /// Tells every subscriber that wants to know.
    pub fn publish(&self, change: &Change) {
        self.publish_to(change, |_| true);
    }

    /// Tells those subscribers that want to know, of these.
    pub fn publish_to(&self, change: &Change, is_told: impl Fn(Option<&Listener>) -> bool) {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher.tell(change, &is_told);
        }
    }

    /// Notifies of a list that has changed. A subscriber whose lists are tracked is notified only if it was shown a version of
    /// the list that is outdated now; every other subscriber that wants to know is notified.
    pub fn publish_outdated(&self, list: &Change, is_outdated: impl Fn(u64) -> bool) {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            let shown = lock(&watcher.state).filter.shown.clone();
            let is_told = shown.is_none_or(|shown| shown.version(list).is_some_and(&is_outdated));
            if is_told {
                watcher.tell(list, |_| true);
            }
        }
    }

    /// Begins a subscription.
    pub fn watch(&self, filter: Filter) -> Subscription {
        let watcher = Arc::new(Watcher::default());
        let revises = !filter.uris.is_empty();
        lock(&watcher.state).filter = filter;
        let mut subscribers = lock(&self.subscribers);
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.by_number.insert(number, Arc::downgrade(&watcher));
        drop(subscribers);
        if revises {
            self.revised.notify_one();
        }
        Subscription { watcher, number, changes: self.clone() }
    }

    /// Returns the resources that are watched, by who watches them.
    pub fn watched(&self) -> HashMap<Option<Listener>, BTreeSet<String>> {
        let watchers: Vec<_> = lock(&self.subscribers).by_number.values().filter_map(Weak::upgrade).collect();
        let mut watched: HashMap<_, BTreeSet<String>> = HashMap::new();
        for watcher in watchers {
            let state = lock(&watcher.state);
            if !state.filter.uris.is_empty() {
                let theirs = watched.entry(state.filter.listener.clone()).or_default();
                theirs.extend(state.filter.uris.iter().cloned());
            }
        }
        watched
    }

    /// Waits until other resources are watched than before; for one task that then looks at [`Changes::watched`].
    pub async fn revised(&self) {
        self.revised.notified().await;
    }

    /// Returns how many subscriptions there are.
    pub fn count(&self) -> usize {
        lock(&self.subscribers).by_number.len()
    }
}

/// A standing wish to be told of changes; dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    watcher: Arc<Watcher>,
    number: u64,
    changes: Changes,
}

impl Subscription {
    /// Polls for the next change.
    pub fn poll_change(&self, cx: &mut Context<'_>) -> Poll<Change> {
        let mut state = lock(&self.watcher.state);
        if let Some(change) = state.untold.pop_first() {
            return Poll::Ready(change);
        }
        let crowded_out = state.wait(cx.waker());
        drop(state);
        crowded_out.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    /// Polls for the next message to a legacy client: what is for it alone, or a change.
    pub(crate) fn poll_message(&self, cx: &mut Context<'_>) -> Poll<String> {
        if let Some(own) = lock(&self.watcher.state).own.pop_front() {
            return Poll::Ready(own);
        }
        match self.poll_change(cx) {
            Poll::Ready(change) => Poll::Ready(change.legacy_message()),
            // Whatever came in between woke nobody yet.
            Poll::Pending => lock(&self.watcher.state).own.pop_front().map_or(Poll::Pending, Poll::Ready),
        }
    }

    /// Says something to this subscriber alone.
    pub(crate) fn say(&self, message: String) {
        let mut state = lock(&self.watcher.state);
        if state.own.len() >= MOST_OWN {
            state.own.pop_front();
        }
        state.own.push_back(message);
        drop(state);
        self.wake();
    }

    /// Drops a change of which the subscriber has not been notified yet, since it is about to see the list itself.
    pub(crate) fn forget(&self, change: &Change) {
        lock(&self.watcher.state).untold.remove(change);
    }

    /// Waits for the next change.
    pub async fn change(&self) -> Change {
        std::future::poll_fn(|cx| self.poll_change(cx)).await
    }

    /// Wakes whoever polls, so that it looks at what else it depends on.
    pub(crate) fn wake(&self) {
        let wakers = std::mem::take(&mut lock(&self.watcher.state).wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Watches a resource too, within what the subscriber and all together may.
    ///
    /// # Errors
    /// One of the two is exhausted.
    pub(crate) fn watch_too(&self, uri: &str, all: &Arc<Watched>) -> Result<(), Refusal> {
        let mut guard = lock(&self.watcher.state);
        let state = &mut *guard;
        if !state.filter.uris.insert(uri.to_owned()) {
            return Ok(());
        }
        let outcome = if state.filter.is_too_large() {
            Err(Refusal::INVALID_PARAMS.because("the session watches too many resources"))
        } else if !state.room.get_or_insert_with(|| all.room()).take(uri) {
            Err(Refusal::TOO_MANY.because("too many resources are watched; try again later"))
        } else {
            Ok(())
        };
        if outcome.is_err() {
            state.filter.uris.remove(uri);
        }
        drop(guard);
        self.changes.revised.notify_one();
        outcome
    }

    /// Watches a resource no longer.
    pub(crate) fn watch_no_longer(&self, uri: &str) {
        let mut guard = lock(&self.watcher.state);
        let state = &mut *guard;
        if state.filter.uris.remove(uri)
            && let Some(room) = &mut state.room
        {
            room.give_back(uri);
        }
        drop(guard);
        self.changes.revised.notify_one();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.changes.subscribers).by_number.remove(&self.number);
        self.changes.revised.notify_one();
    }
}

#[derive(Debug, Default)]
struct Watcher {
    state: Mutex<WatcherState>,
}

#[derive(Debug, Default)]
struct WatcherState {
    filter: Filter,
    /// Room for the resources that were added one by one.
    room: Option<WatchedRoom>,
    untold: BTreeSet<Change>,
    /// What is for this one alone.
    own: VecDeque<String>,
    /// Those who poll. Several may share a subscription, and any of them may be gone by the time that it is woken.
    wakers: Vec<Waker>,
}

impl WatcherState {
    /// Remembers to wake a task; beyond the bound, returns the one that waits longest, which asks again if it is still there.
    fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        if self.wakers.iter().any(|known| known.will_wake(waker)) {
            return None;
        }
        let crowded_out = (self.wakers.len() >= MOST_POLLERS).then(|| self.wakers.remove(0));
        self.wakers.push(waker.clone());
        crowded_out
    }
}

impl Watcher {
    fn tell(&self, change: &Change, is_told: impl Fn(Option<&Listener>) -> bool) {
        let mut state = lock(&self.state);
        if !state.filter.wants(change) || !is_told(state.filter.listener.as_ref()) {
            return;
        }
        let told = match change {
            // One of many: of all further ones together the subscriber learns that what it watches has changed.
            Change::Updated(uri) if state.untold.len() >= Filter::MOST_URIS => Change::Updated(
                state.filter.watched(uri).map_or_else(|| uri.clone(), |watched| watched.as_str().into()),
            ),
            _ => change.clone(),
        };
        state.untold.insert(told);
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

    fn drain(subscription: &Subscription) -> Vec<Change> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match subscription.poll_change(&mut cx) {
            Poll::Ready(change) => Some(change),
            Poll::Pending => None,
        })
        .collect()
    }

    #[test]
    fn subscribers_are_told_only_what_they_want_and_once() {
        let changes = Changes::default();
        let subscription = changes.watch(Filter {
            tools: true,
            uris: BTreeSet::from(["file:///a".to_owned()]),
            ..Filter::default()
        });
        for change in [
            Change::Tools,
            Change::Tools,
            Change::Prompts,
            Change::Updated("file:///a".into()),
            Change::Updated("file:///a/b".into()),
            Change::Updated("file:///ab".into()),
        ] {
            changes.publish(&change);
        }
        let told =
            [Change::Tools, Change::Updated("file:///a".into()), Change::Updated("file:///a/b".into())];
        assert_eq!(drain(&subscription), told);
        changes.publish(&Change::Tools);
        assert_eq!(drain(&subscription), [Change::Tools]);
    }

    #[test]
    fn what_is_for_one_subscriber_alone_reaches_no_other_and_is_bounded() {
        let changes = Changes::default();
        let (one, other) = (changes.watch(Filter::lists()), changes.watch(Filter::lists()));
        (0..=MOST_OWN).for_each(|number| one.say(number.to_string()));
        changes.publish(&Change::Tools);
        let mut cx = Context::from_waker(Waker::noop());
        let mut messages = |subscription: &Subscription| -> Vec<String> {
            std::iter::from_fn(|| match subscription.poll_message(&mut cx) {
                Poll::Ready(message) => Some(message),
                Poll::Pending => None,
            })
            .collect()
        };
        let said = messages(&one);
        assert_eq!(
            (said.len(), &*said[0]),
            (MOST_OWN + 1, "1"),
            "the oldest went, and the change is told too"
        );
        assert_eq!(messages(&other), [Change::Tools.legacy_message()]);
    }

    #[test]
    fn tracked_subscribers_are_notified_only_of_outdated_lists_they_were_shown() {
        let changes = Changes::default();
        let shown = ShownLists::default();
        let tracked = changes.watch(Filter { shown: Some(shown.clone()), ..Filter::lists() });
        let untracked = changes.watch(Filter::lists());
        let publish = |current: u64| changes.publish_outdated(&Change::Tools, |version| version != current);
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown nothing");
        assert_eq!(drain(&untracked), [Change::Tools]);
        shown.set(&Change::Tools, 1);
        publish(1);
        assert_eq!(drain(&tracked), [], "it was shown the newest");
        publish(2);
        changes.publish_outdated(&Change::Prompts, |_| true);
        assert_eq!(drain(&tracked), [Change::Tools]);
        publish(2);
        tracked.forget(&Change::Tools);
        assert_eq!(drain(&tracked), [], "it has listed since");
        shown.assume_all();
        publish(2);
        assert_eq!(drain(&tracked), [Change::Tools], "a revived session may have seen anything");
    }

    #[test]
    fn a_dropped_subscription_leaves_nothing() {
        let changes = Changes::default();
        let subscription = changes.watch(Filter::lists());
        assert_eq!(changes.count(), 1);
        drop(subscription);
        assert_eq!(changes.count(), 0);
    }

    #[test]
    fn a_subscriber_that_never_reads_is_bounded_and_misses_nothing() {
        let changes = Changes::default();
        let subscription =
            changes.watch(Filter { uris: BTreeSet::from(["x:/".to_owned()]), ..Filter::default() });
        for n in 0..10_000 {
            changes.publish(&Change::Updated(format!("x:/{n}").into()));
        }
        let told = drain(&subscription);
        assert_eq!(told.len(), Filter::MOST_URIS + 1);
        assert!(told.contains(&Change::Updated("x:/".into())), "those that found no room are not lost");
    }
}
