//! Listening to connections for changes of resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_client::{Change, Client, Error, Subscription, Watch, is_part_of};

use super::super::connection::Connection;

/// What is listened to, one for each connection.
#[derive(Default)]
pub(super) struct Ears(Vec<Ear>);

struct Ear {
    connection: Arc<Connection>,
    wanted: BTreeSet<String>,
    told: BTreeSet<String>,
    subscription: Option<Subscription>,
}

impl Ears {
    /// Listens to these connections, for these resources, and to no others.
    pub(super) async fn turn_to(
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

    pub(super) fn are_at(&self, connections: &[Arc<Connection>]) -> bool {
        let hears = |connection| self.0.iter().any(|ear| Arc::ptr_eq(&ear.connection, connection));
        self.0.len() == connections.len() && connections.iter().all(hears)
    }

    /// Returns the resources of which anybody tells.
    pub(super) fn told(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|ear| &ear.told).cloned().collect()
    }

    /// Waits for the next change; a connection that is gone says nothing any more.
    pub(super) async fn next(&mut self) -> Change {
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
