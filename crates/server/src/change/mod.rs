//! Change notifications: one subscription for both eras.
//!
//! A subscriber holds one bit per list and a bounded set of resource URIs, not a queue: a change that is still
//! pending is not added again, so a subscriber that never reads costs no more than one that does.
//!
//! # Invariants
//!
//! - The queue of a subscriber that never reads is bounded, and no change is lost:
//!   `change_subscriber_that_never_reads_is_bounded_and_loses_no_change`.

mod filter;
mod subscription;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub(crate) use self::filter::watched_uri_bytes;
pub use self::filter::{ChangeSubscriber, ServerChange, SubscriptionFilter};
pub use self::subscription::ChangeSubscription;
use self::subscription::SubscriptionQueue;
use crate::bus::{BusLink, BusMessage, PublishedChange};

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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::task::{Context, Poll, Waker};

    use super::subscription::MAX_DIRECT_MESSAGES;
    use super::*;
    use crate::shown_lists::ShownLists;

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
