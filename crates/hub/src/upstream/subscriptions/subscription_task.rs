//! The task that keeps everything watched that somebody wants to be told of.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio::time::sleep;
use trunkline_client::ChangeEvent;

use super::super::Upstream;
use super::super::connection::{ConnectionLease, ConnectionScope};
use super::desired::{DesiredSubscriptions, DesiredUris};
use super::listeners::ResourceListeners;

pub(super) fn spawn(upstream: &Arc<Upstream>, who: ConnectionScope, wishes: &Arc<DesiredSubscriptions>) {
    // It ends with the wishes, and those with the server.
    let watched =
        SubscriptionTask { upstream: Arc::downgrade(upstream), scope: who, desired: Arc::downgrade(wishes) };
    tokio::spawn(watched.run(wishes.watch_desired()));
}

/// What is watched for somebody.
struct SubscriptionTask {
    upstream: Weak<Upstream>,
    scope: ConnectionScope,
    desired: Weak<DesiredSubscriptions>,
}

/// Why nothing is listened to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenEnd {
    /// The connection is gone.
    Lost,
    /// There is nothing to listen to.
    Unwanted,
}

impl SubscriptionTask {
    /// Keeps everything watched that is to be, over one connection after the other and all that there are beside it.
    async fn run(self, mut wanted: watch::Receiver<DesiredUris>) {
        loop {
            let Some((server, wishes)) = self.upgrade() else { return };
            if wanted.borrow_and_update().uris.is_empty() {
                if server.subscriptions.remove_if_empty(&self.scope) {
                    return;
                }
                continue;
            }
            drop(wishes);
            let lease = server.lease_for_subscription(&self.scope).await;
            let pause = server.options.limits.restart_delay;
            drop(server);
            match lease {
                Ok(lease) => {
                    if self.listen(&mut wanted, lease).await == ListenEnd::Lost
                        && let Some(wishes) = self.desired.upgrade()
                    {
                        wishes.note_missed(wanted.borrow().uris.iter().cloned());
                    }
                }
                Err(unavailable) => {
                    tracing::debug!(%unavailable, "no connection for resource subscriptions");
                    if let Some(wishes) = self.desired.upgrade() {
                        wishes.set_subscribed(wanted.borrow().generation, BTreeSet::new());
                    }
                    // Whoever decides when the server may be connected to again says so then.
                    sleep(pause).await;
                }
            }
        }
    }

    fn upgrade(&self) -> Option<(Arc<Upstream>, Arc<DesiredSubscriptions>)> {
        Some((self.upstream.upgrade()?, self.desired.upgrade()?))
    }

    /// Listens to every connection that is theirs until the one that is kept for it is gone, or nothing is to be watched.
    ///
    /// Each may be a process of its own, in which resources change without the others.
    async fn listen(&self, wanted: &mut watch::Receiver<DesiredUris>, lease: ConnectionLease) -> ListenEnd {
        let Some(mut pulse) = self.upstream.upgrade().map(|server| server.change_counter.subscribe()) else {
            return ListenEnd::Unwanted;
        };
        let mut ears = ResourceListeners::default();
        loop {
            let now = wanted.borrow_and_update().clone();
            if now.uris.is_empty() {
                return ListenEnd::Unwanted;
            }
            pulse.mark_unchanged();
            let looked = self.upstream.upgrade().map(|server| {
                (server.lock().usable_for_subscription(&self.scope), server.options.limits.subscribe_timeout)
            });
            let Some((usable, within)) = looked else { return ListenEnd::Unwanted };
            ears.listen_on(usable, &now.uris, within).await;
            let Some((server, wishes)) = self.upgrade() else { return ListenEnd::Unwanted };
            let told = ears.accepted();
            wishes.set_subscribed(now.generation, told.clone());
            server.publish_missed(&self.scope, &wishes, &told);
            drop((server, wishes));
            loop {
                tokio::select! {
                    changed = wanted.changed() => {
                        if changed.is_err() {
                            return ListenEnd::Unwanted;
                        }
                        // What is watched stays so until what replaces it is there.
                        break;
                    }
                    _ = pulse.changed() => {
                        let Some((server, wishes)) = self.upgrade() else { return ListenEnd::Unwanted };
                        if !ears.covers(&server.lock().usable_for_subscription(&self.scope)) {
                            break;
                        }
                        // It may be switched on again.
                        server.publish_missed(&self.scope, &wishes, &told);
                    }
                    _ = lease.client().closed() => {
                        // Nobody else may have seen it yet, and then the same one would be found again.
                        if let Some(server) = self.upstream.upgrade() {
                            server.check_lost(lease.connection());
                        }
                        return ListenEnd::Lost;
                    }
                    // Whoever listens must not keep it from ending.
                    () = lease.connection().close_requested() => return ListenEnd::Lost,
                    change = ears.next_change() => {
                        let Some((server, wishes)) = self.upgrade() else { return ListenEnd::Unwanted };
                        match change {
                            ChangeEvent::Resource(uri) => server.publish_updated(&self.scope, &wishes, uri, &told),
                            ChangeEvent::Missed => {
                                wishes.note_missed(told.iter().cloned());
                                server.publish_missed(&self.scope, &wishes, &told);
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}
