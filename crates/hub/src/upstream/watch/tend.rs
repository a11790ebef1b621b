//! The task that keeps everything watched that somebody wants to be told of.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio::time::sleep;
use trunkline_client::Change;

use super::super::Upstream;
use super::super::connection::{Lease, Who};
use super::ears::Ears;
use super::wishes::{Wanted, Wishes};

pub(super) fn spawn(upstream: &Arc<Upstream>, who: Who, wishes: &Arc<Wishes>) {
    // It ends with the wishes, and those with the server.
    let watched = Watched { upstream: Arc::downgrade(upstream), who, wishes: Arc::downgrade(wishes) };
    tokio::spawn(watched.tend(wishes.wanted()));
}

/// What is watched for somebody.
struct Watched {
    upstream: Weak<Upstream>,
    who: Who,
    wishes: Weak<Wishes>,
}

/// Why nothing is listened to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// The connection is gone.
    Lost,
    /// There is nothing to listen to.
    Unwanted,
}

impl Watched {
    /// Keeps everything watched that is to be, over one connection after the other and all that there are beside it.
    async fn tend(self, mut wanted: watch::Receiver<Wanted>) {
        loop {
            let Some((server, wishes)) = self.both() else { return };
            if wanted.borrow_and_update().uris.is_empty() {
                if server.watches.forget(&self.who) {
                    return;
                }
                continue;
            }
            drop(wishes);
            let lease = server.lease_to_watch(&self.who).await;
            let pause = server.options.limits.restart_after;
            drop(server);
            match lease {
                Ok(lease) => {
                    if self.listen(&mut wanted, lease).await == Over::Lost
                        && let Some(wishes) = self.wishes.upgrade()
                    {
                        wishes.miss(wanted.borrow().uris.iter().cloned());
                    }
                }
                Err(unavailable) => {
                    tracing::debug!(%unavailable, "nobody can be asked for changes");
                    if let Some(wishes) = self.wishes.upgrade() {
                        wishes.answer(wanted.borrow().number, BTreeSet::new());
                    }
                    // Whoever decides when the server may be connected to again says so then.
                    sleep(pause).await;
                }
            }
        }
    }

    fn both(&self) -> Option<(Arc<Upstream>, Arc<Wishes>)> {
        Some((self.upstream.upgrade()?, self.wishes.upgrade()?))
    }

    /// Listens to every connection that is theirs until the one that is kept for it is gone, or nothing is to be watched.
    ///
    /// Each may be a process of its own, in which resources change without the others.
    async fn listen(&self, wanted: &mut watch::Receiver<Wanted>, lease: Lease) -> Over {
        let Some(mut pulse) = self.upstream.upgrade().map(|server| server.pulse.subscribe()) else {
            return Over::Unwanted;
        };
        let mut ears = Ears::default();
        loop {
            let now = wanted.borrow_and_update().clone();
            if now.uris.is_empty() {
                return Over::Unwanted;
            }
            pulse.mark_unchanged();
            let looked = self
                .upstream
                .upgrade()
                .map(|server| (server.lock().usable_to_watch(&self.who), server.options.limits.watch_within));
            let Some((usable, within)) = looked else { return Over::Unwanted };
            ears.turn_to(usable, &now.uris, within).await;
            let Some((server, wishes)) = self.both() else { return Over::Unwanted };
            let told = ears.told();
            wishes.answer(now.number, told.clone());
            server.tell_missed(&self.who, &wishes, &told);
            drop((server, wishes));
            loop {
                tokio::select! {
                    changed = wanted.changed() => {
                        if changed.is_err() {
                            return Over::Unwanted;
                        }
                        // What is watched stays so until what replaces it is there.
                        break;
                    }
                    _ = pulse.changed() => {
                        let Some((server, wishes)) = self.both() else { return Over::Unwanted };
                        if !ears.are_at(&server.lock().usable_to_watch(&self.who)) {
                            break;
                        }
                        // It may be switched on again.
                        server.tell_missed(&self.who, &wishes, &told);
                    }
                    _ = lease.client().closed() => {
                        // Nobody else may have seen it yet, and then the same one would be found again.
                        if let Some(server) = self.upstream.upgrade() {
                            server.note_if_lost(lease.connection());
                        }
                        return Over::Lost;
                    }
                    // Whoever listens must not keep it from ending.
                    () = lease.connection().closing() => return Over::Lost,
                    change = ears.next() => {
                        let Some((server, wishes)) = self.both() else { return Over::Unwanted };
                        match change {
                            Change::Resource(uri) => server.tell_updated(&self.who, &wishes, uri, &told),
                            Change::Missed => {
                                wishes.miss(told.iter().cloned());
                                server.tell_missed(&self.who, &wishes, &told);
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}
