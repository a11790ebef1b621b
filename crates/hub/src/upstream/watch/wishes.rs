use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

/// The resources of one server that somebody wants to be told of.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    wanted: watch::Sender<Wanted>,
    outcome: watch::Sender<Outcome>,
    unwanted: Mutex<HashMap<String, Instant>>,
    /// Those that may have changed while nobody was told.
    missed: Mutex<BTreeSet<String>>,
}

/// What is to be watched; the number grows with every change.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) number: u64,
    pub(super) uris: BTreeSet<String>,
}

/// What is watched, as far as it was looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) number: u64,
    pub(super) uris: BTreeSet<String>,
}

impl Wishes {
    pub(super) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(super) fn outcome(&self) -> watch::Receiver<Outcome> {
        self.outcome.subscribe()
    }

    /// Returns what is watched, or is to be.
    pub(super) fn uris(&self) -> BTreeSet<String> {
        self.wanted.borrow().uris.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.borrow().uris.is_empty()
    }

    /// Notes what is to be watched; returns the number of these wishes, and what is new among them.
    pub(super) fn wish(&self, uris: &BTreeSet<String>) -> (u64, Vec<String>) {
        self.unwanted().retain(|uri, _| !uris.contains(uri));
        let (mut number, mut added) = (0, Vec::new());
        self.wanted.send_if_modified(|wanted| {
            added = uris.difference(&wanted.uris).cloned().collect();
            wanted.uris.extend(added.iter().cloned());
            wanted.number += u64::from(!added.is_empty());
            number = wanted.number;
            !added.is_empty()
        });
        (number, added)
    }

    /// Watches some things no longer.
    pub(super) fn give_up(&self, uris: &[String]) {
        self.wanted.send_if_modified(|wanted| {
            let before = wanted.uris.len();
            wanted.uris.retain(|uri| !uris.contains(uri));
            let has_shrunk = wanted.uris.len() < before;
            wanted.number += u64::from(has_shrunk);
            has_shrunk
        });
        self.missed().retain(|uri| !uris.contains(uri));
    }

    /// Returns what has not been wanted for as long as it lingers, and how long it is until there is more of that.
    pub(super) fn expired(
        &self,
        wanted: &BTreeSet<String>,
        lingers: Duration,
    ) -> (Vec<String>, Option<Duration>) {
        let now = Instant::now();
        let watched = self.uris();
        let (mut over, mut next) = (Vec::new(), None);
        let mut unwanted = self.unwanted();
        unwanted.retain(|uri, _| watched.contains(uri) && !wanted.contains(uri));
        for uri in watched.difference(wanted) {
            let since = *unwanted.entry(uri.clone()).or_insert(now);
            match lingers.checked_sub(now.saturating_duration_since(since)) {
                Some(left) if !left.is_zero() => {
                    next = Some(next.map_or(left, |next: Duration| next.min(left)));
                }
                _ => over.push(uri.clone()),
            }
        }
        (over, next)
    }

    /// Says what is watched.
    pub(super) fn answer(&self, number: u64, uris: BTreeSet<String>) {
        self.outcome.send_replace(Outcome { number, uris });
    }

    /// Notes that resources may have changed.
    pub(super) fn miss(&self, uris: impl IntoIterator<Item = String>) {
        self.missed().extend(uris);
    }

    /// Takes out those of these that may have changed.
    pub(super) fn take_missed(&self, told: &BTreeSet<String>) -> BTreeSet<String> {
        let mut missed = self.missed();
        let (due, left) = std::mem::take(&mut *missed).into_iter().partition(|uri| told.contains(uri));
        *missed = left;
        due
    }

    fn missed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.missed.lock()
    }

    fn unwanted(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.unwanted.lock()
    }
}
