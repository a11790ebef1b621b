//! Listening to connections for changes of resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream, Client, Error, is_sub_resource};

use super::super::connection::UpstreamConnection;

/// What is listened to, one for each connection.
#[derive(Default)]
pub(super) struct ResourceListeners(Vec<ResourceListener>);

struct ResourceListener {
    connection: Arc<UpstreamConnection>,
    requested: BTreeSet<String>,
    accepted: BTreeSet<String>,
    subscription: Option<ChangeStream>,
}

impl ResourceListeners {
    /// Listens to these connections, for these resources, and to no others.
    pub(super) async fn listen_on(
        &mut self,
        connections: Vec<Arc<UpstreamConnection>>,
        uris: &BTreeSet<String>,
        within: Duration,
    ) {
        let mut before = std::mem::take(&mut self.0);
        let turned = connections.into_iter().map(|connection| {
            let known = before.iter().position(|ear| Arc::ptr_eq(&ear.connection, &connection));
            let ear = known.map(|at| before.swap_remove(at));
            async move {
                match ear {
                    Some(ear) if ear.requested == *uris => ear,
                    // The one before goes only when this one is there.
                    before => {
                        let before = before.and_then(|ear| Some((ear.subscription?, ear.accepted)));
                        let subscribing = subscribe(&connection.client, uris);
                        let (subscription, told) = match before {
                            None => subscribing.await,
                            // What is told of already does not wait for what may never be.
                            Some(before) => {
                                timeout(within, subscribing).await.ok().flatten().or(Some(before))
                            }
                        }
                        .unzip();
                        ResourceListener {
                            connection,
                            requested: uris.clone(),
                            accepted: told.unwrap_or_default(),
                            subscription,
                        }
                    }
                }
            }
        });
        let turned: Vec<_> = turned.collect();
        self.0 = join_all(turned).await;
    }

    pub(super) fn covers(&self, connections: &[Arc<UpstreamConnection>]) -> bool {
        let hears = |connection| self.0.iter().any(|ear| Arc::ptr_eq(&ear.connection, connection));
        self.0.len() == connections.len() && connections.iter().all(hears)
    }

    /// Returns the resources of which anybody tells.
    pub(super) fn accepted(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|ear| &ear.accepted).cloned().collect()
    }

    /// Waits for the next change; a connection that is gone says nothing any more.
    pub(super) async fn next_change(&mut self) -> ChangeEvent {
        std::future::poll_fn(|cx| {
            for ear in &mut self.0 {
                let Some(subscription) = &mut ear.subscription else { continue };
                loop {
                    match subscription.poll_next_unpin(cx) {
                        // A server tells of what was asked of it, and not of what is another's.
                        Poll::Ready(Some(ChangeEvent::Resource(uri))) if !covers_uri(&ear.accepted, &uri) => {
                        }
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
fn covers_uri(watched: &BTreeSet<String>, uri: &str) -> bool {
    watched.contains(uri) || watched.iter().any(|watched| is_sub_resource(uri, watched))
}

/// Subscribes to resources, and says to which of them; one that the server refuses does not keep it from the others.
async fn subscribe(client: &Client, uris: &BTreeSet<String>) -> Option<(ChangeStream, BTreeSet<String>)> {
    let watch = |uris: &BTreeSet<String>| ChangeFilter {
        uris: uris.iter().cloned().collect(),
        ..ChangeFilter::default()
    };
    match client.subscribe(watch(uris)).await {
        Ok(subscription) => {
            let honoured = subscription.accepted_filter().uris.iter();
            let told = honoured.filter(|uri| uris.contains(*uri)).cloned().collect();
            return Some((subscription, told));
        }
        Err(Error::ErrorResponse(_)) if uris.len() > 1 => {}
        Err(error) => {
            tracing::debug!(%error, "cannot subscribe to resource updates");
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
