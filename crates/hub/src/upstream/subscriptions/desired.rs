use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

/// The resources of one server with a subscriber.
#[derive(Debug, Default)]
pub(super) struct DesiredSubscriptions {
    desired: watch::Sender<DesiredUris>,
    subscribed: watch::Sender<SubscribedUris>,
    undesired_since: Mutex<HashMap<String, Instant>>,
    /// Resources that may have changed without a notification.
    missed: Mutex<BTreeSet<String>>,
}

/// The URIs to subscribe; the generation grows with every change.
#[derive(Clone, Debug, Default)]
pub(super) struct DesiredUris {
    pub(super) generation: u64,
    pub(super) uris: BTreeSet<String>,
}

/// The URIs that the server accepted, and the generation that this answers.
#[derive(Clone, Debug, Default)]
pub(super) struct SubscribedUris {
    pub(super) generation: u64,
    pub(super) uris: BTreeSet<String>,
}

impl DesiredSubscriptions {
    pub(super) fn watch_desired(&self) -> watch::Receiver<DesiredUris> {
        self.desired.subscribe()
    }

    pub(super) fn watch_subscribed(&self) -> watch::Receiver<SubscribedUris> {
        self.subscribed.subscribe()
    }

    /// Returns the desired URIs.
    pub(super) fn uris(&self) -> BTreeSet<String> {
        self.desired.borrow().uris.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.desired.borrow().uris.is_empty()
    }

    /// Adds desired URIs; returns their generation, and the new ones among them.
    pub(super) fn add(&self, uris: &BTreeSet<String>) -> (u64, Vec<String>) {
        self.lock_undesired().retain(|uri, _| !uris.contains(uri));
        let (mut number, mut added) = (0, Vec::new());
        self.desired.send_if_modified(|wanted| {
            added = uris.difference(&wanted.uris).cloned().collect();
            wanted.uris.extend(added.iter().cloned());
            wanted.generation += u64::from(!added.is_empty());
            number = wanted.generation;
            !added.is_empty()
        });
        (number, added)
    }

    /// Removes desired URIs.
    pub(super) fn remove(&self, uris: &[String]) {
        self.desired.send_if_modified(|wanted| {
            let before = wanted.uris.len();
            wanted.uris.retain(|uri| !uris.contains(uri));
            let has_shrunk = wanted.uris.len() < before;
            wanted.generation += u64::from(has_shrunk);
            has_shrunk
        });
        self.lock_missed().retain(|uri| !uris.contains(uri));
    }

    /// Returns the URIs without a subscriber for the whole unsubscribe delay, and the time until more expire.
    pub(super) fn expired(
        &self,
        wanted: &BTreeSet<String>,
        unsubscribe_delay: Duration,
    ) -> (Vec<String>, Option<Duration>) {
        let now = Instant::now();
        let watched = self.uris();
        let (mut over, mut next) = (Vec::new(), None);
        let mut unwanted = self.lock_undesired();
        unwanted.retain(|uri, _| watched.contains(uri) && !wanted.contains(uri));
        for uri in watched.difference(wanted) {
            let since = *unwanted.entry(uri.clone()).or_insert(now);
            match unsubscribe_delay.checked_sub(now.saturating_duration_since(since)) {
                Some(left) if !left.is_zero() => {
                    next = Some(next.map_or(left, |next: Duration| next.min(left)));
                }
                _ => over.push(uri.clone()),
            }
        }
        (over, next)
    }

    /// Publishes the subscribed URIs.
    pub(super) fn set_subscribed(&self, number: u64, uris: BTreeSet<String>) {
        self.subscribed.send_replace(SubscribedUris { generation: number, uris });
    }

    /// Records that resources may have changed.
    pub(super) fn note_missed(&self, uris: impl IntoIterator<Item = String>) {
        self.lock_missed().extend(uris);
    }

    /// Removes and returns the accepted URIs that may have changed.
    pub(super) fn take_missed(&self, accepted: &BTreeSet<String>) -> BTreeSet<String> {
        let mut missed = self.lock_missed();
        let (due, left) = std::mem::take(&mut *missed).into_iter().partition(|uri| accepted.contains(uri));
        *missed = left;
        due
    }

    fn lock_missed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.missed.lock()
    }

    fn lock_undesired(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.undesired_since.lock()
    }
}
