//! Resources whose changes somebody is told of: one subscription for all of them over each connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use trunkline_client::{Change, Client, Error, Subscription, Watch};

use super::connection::{Connection, Lease};
use super::{Told, Upstream};

/// The resources of one server that are watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    wishes: watch::Sender<Wishes>,
    outcome: watch::Sender<Outcome>,
    unwanted: Mutex<HashMap<String, Instant>>,
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
    let mut may_have_missed = false;
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
                let over = listen(&upstream, &mut wishes, lease, may_have_missed).await;
                may_have_missed = over == Over::Lost;
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
async fn listen(
    upstream: &Weak<Upstream>,
    wishes: &mut watch::Receiver<Wishes>,
    lease: Lease,
    mut may_have_missed: bool,
) -> Over {
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
        let Some(usable) = upstream.upgrade().map(|server| server.usable()) else { return Over::Unwanted };
        ears.turn_to(usable, &wanted.uris).await;
        let Some(server) = upstream.upgrade() else { return Over::Unwanted };
        let told = ears.told();
        server.watched.answer(wanted.number, told.clone());
        if std::mem::take(&mut may_have_missed) {
            told.iter().for_each(|uri| (server.tell)(Told::Updated(uri.clone())));
        }
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
                }
                _ = lease.client().closed() => return Over::Lost,
                // Whoever listens must not keep it from ending.
                () = lease.connection().closing() => return Over::Lost,
                change = ears.next() => {
                    let Some(server) = upstream.upgrade() else { return Over::Unwanted };
                    match change {
                        Change::Resource(uri) => (server.tell)(Told::Updated(uri)),
                        Change::Missed => {
                            told.iter().for_each(|uri| (server.tell)(Told::Updated(uri.clone())));
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
    async fn turn_to(&mut self, connections: Vec<Arc<Connection>>, uris: &BTreeSet<String>) {
        let mut before = std::mem::take(&mut self.0);
        let turned = connections.into_iter().map(|connection| {
            let known = before.iter().position(|ear| Arc::ptr_eq(&ear.connection, &connection));
            let ear = known.map(|at| before.swap_remove(at));
            async move {
                match ear {
                    Some(ear) if ear.wanted == *uris => ear,
                    // The one before goes only when this one is there.
                    _ => {
                        let (subscription, told) = subscribe(&connection.client, uris).await;
                        Ear { connection, wanted: uris.clone(), told, subscription }
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
                match subscription.poll_next_unpin(cx) {
                    Poll::Ready(Some(change)) => return Poll::Ready(change),
                    Poll::Ready(None) => ear.subscription = None,
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Subscribes to resources, and says to which of them; one that the server refuses does not keep it from the others.
async fn subscribe(client: &Client, uris: &BTreeSet<String>) -> (Option<Subscription>, BTreeSet<String>) {
    let watch = |uris: &BTreeSet<String>| Watch { uris: uris.iter().cloned().collect(), ..Watch::default() };
    match client.subscribe(watch(uris)).await {
        Ok(subscription) => {
            let told = subscription.honoured().uris.iter().cloned().collect();
            return (Some(subscription), told);
        }
        Err(Error::Refused(_)) if uris.len() > 1 => {}
        Err(error) => {
            tracing::debug!(%error, "a server tells of no changes of resources");
            return (None, BTreeSet::new());
        }
    }
    let mut told = BTreeSet::new();
    for uri in uris {
        if client.subscribe(watch(&BTreeSet::from([uri.clone()]))).await.is_ok() {
            told.insert(uri.clone());
        }
    }
    match client.subscribe(watch(&told)).await {
        Ok(subscription) if !told.is_empty() => (Some(subscription), told),
        _ => (None, BTreeSet::new()),
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

    fn unwanted(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.unwanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    fn usable(&self) -> Vec<Arc<Connection>> {
        self.lock().usable().cloned().collect()
    }

    /// Begins to watch resources, and returns those of which the server tells.
    pub(crate) async fn watch(&self, uris: BTreeSet<String>) -> BTreeSet<String> {
        {
            let mut unwanted = self.watched.unwanted();
            unwanted.retain(|uri, _| !uris.contains(uri));
        }
        let mut outcome = self.watched.outcome.subscribe();
        let mut number = 0;
        self.watched.wishes.send_if_modified(|wishes| {
            let before = wishes.uris.len();
            wishes.uris.extend(uris.iter().cloned());
            let has_grown = wishes.uris.len() > before;
            wishes.number += u64::from(has_grown);
            number = wishes.number;
            has_grown
        });
        self.beat();
        let answered = outcome.wait_for(|outcome| outcome.number >= number);
        let told: BTreeSet<String> = match timeout(self.options.limits.watch_within, answered).await {
            Ok(Ok(outcome)) => uris.iter().filter(|uri| outcome.uris.contains(*uri)).cloned().collect(),
            _ => BTreeSet::new(),
        };
        let refused: Vec<_> = uris.difference(&told).cloned().collect();
        if !refused.is_empty() {
            self.unwatch(&refused);
        }
        told
    }

    /// Watches only what is still wanted, a while after it no longer is.
    pub(crate) fn still_wanted(&self, wanted: &BTreeSet<String>) -> Option<std::time::Duration> {
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
                    next = Some(next.map_or(left, |next: std::time::Duration| next.min(left)));
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
        self.beat();
    }
}
