//! The task that maintains the resource subscriptions of one scope.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio::time::sleep;
use trunkline_client::ChangeEvent;
use trunkline_server::UpstreamItem;

use super::super::Upstream;
use super::super::connection::ConnectionLease;
use super::super::connection_scope::ConnectionScope;
use super::desired::{DesiredSubscriptions, DesiredUris};
use super::listeners::ResourceListeners;

pub(super) fn spawn(upstream: &Arc<Upstream>, scope: ConnectionScope, desired: &Arc<DesiredSubscriptions>) {
    // The task ends when the desired subscriptions are dropped, at the latest with the upstream.
    let watched =
        SubscriptionTask { upstream: Arc::downgrade(upstream), scope, desired: Arc::downgrade(desired) };
    tokio::spawn(watched.run(desired.watch_desired()));
}

/// The subscription task of one scope.
struct SubscriptionTask {
    upstream: Weak<Upstream>,
    scope: ConnectionScope,
    desired: Weak<DesiredSubscriptions>,
}

/// Why listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenEnd {
    /// The connection was lost.
    Lost,
    /// No subscription is desired any more.
    Unwanted,
}

impl SubscriptionTask {
    /// Maintains the desired subscriptions: leases one connection after another, and listens on all connections of
    /// the scope.
    async fn run(self, mut wanted: watch::Receiver<DesiredUris>) {
        loop {
            let Some((server, desired)) = self.upgrade() else { return };
            if wanted.borrow_and_update().uris.is_empty() {
                if server.subscriptions.remove_if_empty(&self.scope) {
                    return;
                }
                continue;
            }
            drop(desired);
            let lease = server.lease_for_subscription(&self.scope).await;
            let pause = server.options.limits.restart_delay;
            drop(server);
            match lease {
                Ok(lease) => {
                    if self.listen(&mut wanted, lease).await == ListenEnd::Lost
                        && let Some(desired) = self.desired.upgrade()
                    {
                        desired.note_missed(wanted.borrow().uris.iter().cloned());
                    }
                }
                Err(unavailable) => {
                    tracing::debug!(%unavailable, "no connection for resource subscriptions");
                    if let Some(desired) = self.desired.upgrade() {
                        desired.set_subscribed(wanted.borrow().generation, BTreeSet::new());
                    }
                    // `lease_for_subscription` fails until the backoff has expired, so that this only polls.
                    sleep(pause).await;
                }
            }
        }
    }

    fn upgrade(&self) -> Option<(Arc<Upstream>, Arc<DesiredSubscriptions>)> {
        Some((self.upstream.upgrade()?, self.desired.upgrade()?))
    }

    /// Listens on every connection of the scope until the leased one is lost, or no subscription is desired.
    ///
    /// Each connection may be a separate process, with resources that change independently of the others.
    async fn listen(&self, wanted: &mut watch::Receiver<DesiredUris>, lease: ConnectionLease) -> ListenEnd {
        let Some(mut state_changes) = self.upstream.upgrade().map(|server| server.change_counter.subscribe())
        else {
            return ListenEnd::Unwanted;
        };
        let mut listeners = ResourceListeners::default();
        loop {
            let now = wanted.borrow_and_update().clone();
            if now.uris.is_empty() {
                return ListenEnd::Unwanted;
            }
            state_changes.mark_unchanged();
            let looked = self.upstream.upgrade().map(|server| {
                (server.lock().usable_for_subscription(&self.scope), server.options.limits.subscribe_timeout)
            });
            let Some((usable, within)) = looked else { return ListenEnd::Unwanted };
            listeners.listen_on(usable, &now.uris, within).await;
            let Some((server, desired)) = self.upgrade() else { return ListenEnd::Unwanted };
            let accepted = listeners.accepted();
            desired.set_subscribed(now.generation, accepted.clone());
            server.publish_missed(&self.scope, &desired, &accepted);
            drop((server, desired));
            loop {
                tokio::select! {
                    changed = wanted.changed() => {
                        if changed.is_err() {
                            return ListenEnd::Unwanted;
                        }
                        // The current subscriptions stay until their replacements exist.
                        break;
                    }
                    _ = state_changes.changed() => {
                        let Some((server, desired)) = self.upgrade() else { return ListenEnd::Unwanted };
                        if !listeners.covers(&server.lock().usable_for_subscription(&self.scope)) {
                            break;
                        }
                        // The server may have been enabled again.
                        server.publish_missed(&self.scope, &desired, &accepted);
                    }
                    () = self.connection_ended(&lease) => return ListenEnd::Lost,
                    change = listeners.next_change() => {
                        let Some((server, desired)) = self.upgrade() else { return ListenEnd::Unwanted };
                        self.publish_change(&server, &desired, change, &accepted);
                    }
                }
            }
        }
    }

    /// Waits until a connection is lost, or is to be closed, which a subscription must not prevent.
    async fn connection_ended(&self, lease: &ConnectionLease) {
        tokio::select! {
            _ = lease.client().closed() => {
                // Recorded at once, since otherwise the next lease could find the same connection again.
                if let Some(server) = self.upstream.upgrade() {
                    server.check_lost(lease.connection());
                }
            }
            () = lease.connection().close_requested() => {}
        }
    }

    fn publish_change(
        &self,
        server: &Upstream,
        desired: &DesiredSubscriptions,
        change: ChangeEvent,
        accepted: &BTreeSet<String>,
    ) {
        match change {
            ChangeEvent::Resource(uri) => server.publish_updated(&self.scope, desired, uri, accepted),
            ChangeEvent::Missed => {
                UpstreamItem::NotificationDropped.count(1);
                desired.note_missed(accepted.iter().cloned());
                server.publish_missed(&self.scope, desired, accepted);
            }
            _ => {}
        }
    }
}
