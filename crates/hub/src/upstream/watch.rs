//! Resources whose changes somebody is told of: one subscription for all of them over each connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use trunkline_client::{Change, Client, Error, Subscription, Watch, is_part_of};

use super::connection::{Connection, Lease};
use super::{Told, Upstream};

/// The resources of one server that are watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    wishes: watch::Sender<Wishes>,
    outcome: watch::Sender<Outcome>,
    unwanted: Mutex<HashMap<String, Instant>>,
    /// Those that may have changed while nobody was told.
    missed: Mutex<BTreeSet<String>>,
}

/// What is to be watched; the number grows with every change.
#[derive(Clone, Debug, Default)]
struct Wishes {
    number: u64,
    uris: BTreeSet<String>,
}

/// What is watched, as far as it was looked at.
#[derive(Clone, Debug, Default)]
struct Outcome {
    number: u64,
    uris: BTreeSet<String>,
}

pub(super) fn spawn(upstream: &Arc<Upstream>) -> AbortHandle {
    let wishes = upstream.watched.wishes.subscribe();
    tokio::spawn(tend(Arc::downgrade(upstream), wishes)).abort_handle()
}

/// Keeps everything watched that is to be, over one connection after the other and all that there are beside it.
async fn tend(upstream: Weak<Upstream>, mut wishes: watch::Receiver<Wishes>) {
    loop {
        if wishes.wait_for(|wishes| !wishes.uris.is_empty()).await.is_err() {
            return;
        }
        let Some(server) = upstream.upgrade() else { return };
        let lease = server.lease_to_hub().await;
        let pause = server.options.limits.restart_after;
        drop(server);
        match lease {
            Ok(lease) => {
                if listen(&upstream, &mut wishes, lease).await == Over::Lost
                    && let Some(server) = upstream.upgrade()
                {
                    server.watched.miss(wishes.borrow().uris.iter().cloned());
                }
            }
            Err(unavailable) => {
                tracing::debug!(%unavailable, "nobody can be asked for changes");
                if let Some(server) = upstream.upgrade() {
                    server.watched.answer(wishes.borrow().number, BTreeSet::new());
                }
                // The one who keeps the server connected knows when to try again.
                sleep(pause).await;
            }
        }
    }
}

/// Why nothing is listened to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// The connection is gone.
    Lost,
    /// There is nothing to listen to.
    Unwanted,
}

/// Listens to every connection until the one that is kept for it is gone, or nothing is to be watched.
///
/// Each may be a process of its own, in which resources change without the others.
async fn listen(upstream: &Weak<Upstream>, wishes: &mut watch::Receiver<Wishes>, lease: Lease) -> Over {
    let Some(mut pulse) = upstream.upgrade().map(|server| server.pulse.subscribe()) else {
        return Over::Unwanted;
    };
    let mut ears = Ears::default();
    loop {
        let wanted = wishes.borrow_and_update().clone();
        if wanted.uris.is_empty() {
            return Over::Unwanted;
        }
        pulse.mark_unchanged();
        let looked = upstream.upgrade().map(|server| (server.usable(), server.options.limits.watch_within));
        let Some((usable, within)) = looked else { return Over::Unwanted };
        ears.turn_to(usable, &wanted.uris, within).await;
        let Some(server) = upstream.upgrade() else { return Over::Unwanted };
        let told = ears.told();
        server.watched.answer(wanted.number, told.clone());
        server.tell_missed(&told);
        drop(server);
        loop {
            tokio::select! {
                changed = wishes.changed() => {
                    if changed.is_err() {
                        return Over::Unwanted;
                    }
                    // What is watched stays so until what replaces it is there.
                    break;
                }
                _ = pulse.changed() => {
                    let Some(server) = upstream.upgrade() else { return Over::Unwanted };
                    if !ears.are_at(&server.usable()) {
                        break;
                    }
                    // It may be switched on again.
                    server.tell_missed(&told);
                }
                _ = lease.client().closed() => return Over::Lost,
                // Whoever listens must not keep it from ending.
                () = lease.connection().closing() => return Over::Lost,
                change = ears.next() => {
                    let Some(server) = upstream.upgrade() else { return Over::Unwanted };
                    match change {
                        Change::Resource(uri) => server.tell_updated(uri, &told),
                        Change::Missed => {
                            server.watched.miss(told.iter().cloned());
                            server.tell_missed(&told);
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

/// What is listened to, one for each connection.
#[derive(Default)]
struct Ears(Vec<Ear>);

struct Ear {
    connection: Arc<Connection>,
    wanted: BTreeSet<String>,
    told: BTreeSet<String>,
    subscription: Option<Subscription>,
}

impl Ears {
    /// Listens to these connections, for these resources, and to no others.
    async fn turn_to(
        &mut self,
        connections: Vec<Arc<Connection>>,
        uris: &BTreeSet<String>,
        within: Duration,
    ) {
        let mut before = std::mem::take(&mut self.0);
        let turned = connections.into_iter().map(|connection| {
            let known = before.iter().position(|ear| Arc::ptr_eq(&ear.connection, &connection));
            let ear = known.map(|at| before.swap_remove(at));
            async move {
                match ear {
                    Some(ear) if ear.wanted == *uris => ear,
                    // The one before goes only when this one is there.
                    before => {
                        let before = before.and_then(|ear| Some((ear.subscription?, ear.told)));
                        let subscribing = subscribe(&connection.client, uris);
                        let (subscription, told) = match before {
                            None => subscribing.await,
                            // What is told of already does not wait for what may never be.
                            Some(before) => {
                                timeout(within, subscribing).await.ok().flatten().or(Some(before))
                            }
                        }
                        .unzip();
                        Ear { connection, wanted: uris.clone(), told: told.unwrap_or_default(), subscription }
                    }
                }
            }
        });
        let turned: Vec<_> = turned.collect();
        self.0 = join_all(turned).await;
    }

    fn are_at(&self, connections: &[Arc<Connection>]) -> bool {
        let hears = |connection| self.0.iter().any(|ear| Arc::ptr_eq(&ear.connection, connection));
        self.0.len() == connections.len() && connections.iter().all(hears)
    }

    /// Returns the resources of which anybody tells.
    fn told(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|ear| &ear.told).cloned().collect()
    }

    /// Waits for the next change; a connection that is gone says nothing any more.
    async fn next(&mut self) -> Change {
        std::future::poll_fn(|cx| {
            for ear in &mut self.0 {
                let Some(subscription) = &mut ear.subscription else { continue };
                loop {
                    match subscription.poll_next_unpin(cx) {
                        // A server tells of what was asked of it, and not of what is another's.
                        Poll::Ready(Some(Change::Resource(uri))) if !has_part(&ear.told, &uri) => {}
                        Poll::Ready(Some(change)) => return Poll::Ready(change),
                        Poll::Ready(None) => {
                            ear.subscription = None;
                            break;
                        }
                        Poll::Pending => break,
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Reports whether a resource is one of these or part of one.
fn has_part(watched: &BTreeSet<String>, uri: &str) -> bool {
    watched.contains(uri) || watched.iter().any(|watched| is_part_of(uri, watched))
}

/// Subscribes to resources, and says to which of them; one that the server refuses does not keep it from the others.
async fn subscribe(client: &Client, uris: &BTreeSet<String>) -> Option<(Subscription, BTreeSet<String>)> {
    let watch = |uris: &BTreeSet<String>| Watch { uris: uris.iter().cloned().collect(), ..Watch::default() };
    match client.subscribe(watch(uris)).await {
        Ok(subscription) => {
            let honoured = subscription.honoured().uris.iter();
            let told = honoured.filter(|uri| uris.contains(*uri)).cloned().collect();
            return Some((subscription, told));
        }
        Err(Error::Refused(_)) if uris.len() > 1 => {}
        Err(error) => {
            tracing::debug!(%error, "a server tells of no changes of resources");
            return None;
        }
    }
    let mut told = BTreeSet::new();
    for uri in uris {
        if client.subscribe(watch(&BTreeSet::from([uri.clone()]))).await.is_ok() {
            told.insert(uri.clone());
        }
    }
    match client.subscribe(watch(&told)).await {
        Ok(subscription) if !told.is_empty() => Some((subscription, told)),
        _ => None,
    }
}

impl Watched {
    /// Reports whether anything is to be watched.
    pub(super) fn any(&self) -> bool {
        !self.wishes.borrow().uris.is_empty()
    }

    fn answer(&self, number: u64, uris: BTreeSet<String>) {
        self.outcome.send_replace(Outcome { number, uris });
    }

    /// Notes that resources may have changed.
    fn miss(&self, uris: impl IntoIterator<Item = String>) {
        self.missed().extend(uris);
    }

    fn missed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwanted(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.unwanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    fn usable(&self) -> Vec<Arc<Connection>> {
        self.lock().usable().cloned().collect()
    }

    /// Tells of what may have changed, as far as it is watched: a server that is switched off has nothing to say until it is
    /// back.
    fn tell_missed(&self, told: &BTreeSet<String>) {
        if !self.is_offered() {
            return;
        }
        let due = {
            let mut missed = self.watched.missed();
            let (due, left): (BTreeSet<_>, _) =
                std::mem::take(&mut *missed).into_iter().partition(|uri| told.contains(uri));
            *missed = left;
            due
        };
        due.into_iter().for_each(|uri| (self.tell)(Told::Updated(uri)));
    }

    fn tell_updated(&self, uri: String, told: &BTreeSet<String>) {
        if self.is_offered() {
            (self.tell)(Told::Updated(uri));
        } else {
            // Parts of a watched resource may be without number.
            self.watched.miss(told.iter().filter(|watched| is_part_of(&uri, watched)).cloned());
        }
    }

    /// Begins to watch resources, and returns those of which the server tells.
    pub(crate) async fn watch(&self, uris: BTreeSet<String>) -> BTreeSet<String> {
        let mut outcome = self.watched.outcome.subscribe();
        let (number, added) = self.wish(&uris);
        let answered = outcome.wait_for(|outcome| outcome.number >= number);
        match timeout(self.options.limits.watch_within, answered).await {
            Ok(Ok(outcome)) => {
                let refused: Vec<_> = added.into_iter().filter(|uri| !outcome.uris.contains(uri)).collect();
                let told = uris.intersection(&outcome.uris).cloned().collect();
                drop(outcome);
                if !refused.is_empty() {
                    self.unwatch(&refused);
                }
                told
            }
            // Somebody else may still wait for the same; what nobody wants in the end is not watched for long.
            _ => BTreeSet::new(),
        }
    }

    /// Returns the resources that are watched, or are to be.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        self.watched.wishes.borrow().uris.clone()
    }

    /// Watches resources again that somebody was told of by the one before; they may have changed in between.
    pub(crate) fn take_up(&self, uris: &BTreeSet<String>) {
        if uris.is_subset(&self.watched.wishes.borrow().uris) {
            return;
        }
        let (_, added) = self.wish(uris);
        self.watched.miss(added);
    }

    /// Notes what is to be watched; returns the number of these wishes, and what is new among them.
    fn wish(&self, uris: &BTreeSet<String>) -> (u64, Vec<String>) {
        self.watched.unwanted().retain(|uri, _| !uris.contains(uri));
        let (mut number, mut added) = (0, Vec::new());
        self.watched.wishes.send_if_modified(|wishes| {
            added = uris.difference(&wishes.uris).cloned().collect();
            wishes.uris.extend(added.iter().cloned());
            wishes.number += u64::from(!added.is_empty());
            number = wishes.number;
            !added.is_empty()
        });
        self.beat();
        (number, added)
    }

    /// Watches only what is still wanted, a while after it no longer is.
    pub(crate) fn still_wanted(&self, wanted: &BTreeSet<String>) -> Option<Duration> {
        let (now, lingers) = (Instant::now(), self.options.limits.watch_lingers);
        let watched = self.watched.wishes.borrow().uris.clone();
        let mut over = Vec::new();
        let mut next = None;
        let mut unwanted = self.watched.unwanted();
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
        drop(unwanted);
        if !over.is_empty() {
            self.unwatch(&over);
        }
        next
    }

    fn unwatch(&self, uris: &[String]) {
        self.watched.wishes.send_if_modified(|wishes| {
            let before = wishes.uris.len();
            wishes.uris.retain(|uri| !uris.contains(uri));
            let has_shrunk = wishes.uris.len() < before;
            wishes.number += u64::from(has_shrunk);
            has_shrunk
        });
        self.watched.missed().retain(|uri| !uris.contains(uri));
        self.beat();
    }
}
