//! Listens for resource updates on connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream, Client, Error, is_sub_resource};
use trunkline_server::UpstreamItem;

use super::super::connection::UpstreamConnection;

/// The listeners, one per connection.
#[derive(Default)]
pub(super) struct ResourceListeners(Vec<ResourceListener>);

struct ResourceListener {
    connection: Arc<UpstreamConnection>,
    requested: BTreeSet<String>,
    accepted: BTreeSet<String>,
    subscription: Option<ChangeStream>,
}

impl ResourceListeners {
    /// Subscribes these resources on these connections, and on no others.
    pub(super) async fn listen_on(
        &mut self,
        connections: Vec<Arc<UpstreamConnection>>,
        uris: &BTreeSet<String>,
        within: Duration,
    ) {
        let mut before = std::mem::take(&mut self.0);
        let listening = connections.into_iter().map(|connection| {
            let known = before.iter().position(|listener| Arc::ptr_eq(&listener.connection, &connection));
            let listener = known.map(|at| before.swap_remove(at));
            async move {
                match listener {
                    Some(listener) if listener.requested == *uris => listener,
                    // The old subscription is dropped only once the new one exists.
                    before => {
                        let before =
                            before.and_then(|listener| Some((listener.subscription?, listener.accepted)));
                        let subscribing = subscribe(&connection.client, uris);
                        let (subscription, accepted) = match before {
                            None => subscribing.await,
                            // The accepted subscription stays in effect if the new one is not answered in time.
                            Some(before) => {
                                timeout(within, subscribing).await.ok().flatten().or(Some(before))
                            }
                        }
                        .unzip();
                        ResourceListener {
                            connection,
                            requested: uris.clone(),
                            accepted: accepted.unwrap_or_default(),
                            subscription,
                        }
                    }
                }
            }
        });
        let listening: Vec<_> = listening.collect();
        self.0 = join_all(listening).await;
    }

    pub(super) fn covers(&self, connections: &[Arc<UpstreamConnection>]) -> bool {
        let listens_on =
            |connection| self.0.iter().any(|listener| Arc::ptr_eq(&listener.connection, connection));
        self.0.len() == connections.len() && connections.iter().all(listens_on)
    }

    /// Returns the resources that any connection has accepted.
    pub(super) fn accepted(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|listener| &listener.accepted).cloned().collect()
    }

    /// Waits for the next change; a closed connection yields none.
    pub(super) async fn next_change(&mut self) -> ChangeEvent {
        std::future::poll_fn(|cx| {
            for listener in &mut self.0 {
                let Some(subscription) = &mut listener.subscription else { continue };
                loop {
                    match subscription.poll_next_unpin(cx) {
                        // Updates of resources that were not subscribed here, and may be another server's, are
                        // dropped.
                        Poll::Ready(Some(ChangeEvent::Resource(uri)))
                            if !covers_uri(&listener.accepted, &uri) =>
                        {
                            UpstreamItem::NotificationDropped.count(1);
                        }
                        Poll::Ready(Some(change)) => return Poll::Ready(change),
                        Poll::Ready(None) => {
                            listener.subscription = None;
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
fn covers_uri(watched: &BTreeSet<String>, uri: &str) -> bool {
    watched.contains(uri) || watched.iter().any(|watched| is_sub_resource(uri, watched))
}

/// Subscribes to resources, and returns the accepted ones; a refused resource does not affect the others.
async fn subscribe(client: &Client, uris: &BTreeSet<String>) -> Option<(ChangeStream, BTreeSet<String>)> {
    let watch = |uris: &BTreeSet<String>| ChangeFilter {
        uris: uris.iter().cloned().collect(),
        ..ChangeFilter::default()
    };
    match client.subscribe(watch(uris)).await {
        Ok(subscription) => {
            let honoured = subscription.accepted_filter().uris.iter();
            let accepted = honoured.filter(|uri| uris.contains(*uri)).cloned().collect();
            return Some((subscription, accepted));
        }
        Err(Error::ErrorResponse(_)) if uris.len() > 1 => {}
        Err(error) => {
            tracing::debug!(%error, "cannot subscribe to resource updates");
            return None;
        }
    }
    let mut accepted = BTreeSet::new();
    for uri in uris {
        if client.subscribe(watch(&BTreeSet::from([uri.clone()]))).await.is_ok() {
            accepted.insert(uri.clone());
        }
    }
    match client.subscribe(watch(&accepted)).await {
        Ok(subscription) if !accepted.is_empty() => Some((subscription, accepted)),
        _ => None,
    }
}
