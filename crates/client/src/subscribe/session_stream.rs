//! Change streams over a legacy session.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::{ChangeEvent, ChangeFilter};
use crate::client::Client;
use crate::error::Error;
use crate::polled_value::PolledValue;

/// The change streams of one session.
#[derive(Debug, Default)]
pub(crate) struct ChangeBroadcaster {
    state: PolledValue<BroadcasterState>,
}

#[derive(Debug, Default)]
struct BroadcasterState {
    queues: Vec<Weak<ChangeQueue>>,
    /// The number of streams per subscribed resource.
    uris: HashMap<String, usize>,
    /// Resources without subscribers that are still subscribed at the server.
    unsubscribed: BTreeSet<String>,
    closed: bool,
}

/// The queue of one stream: a set, so that equal unread changes are merged.
#[derive(Debug)]
struct ChangeQueue {
    filter: ChangeFilter,
    pending: PolledValue<QueuedChanges>,
}

#[derive(Debug, Default)]
struct QueuedChanges {
    changes: BTreeSet<ChangeEvent>,
    closed: bool,
}

/// A change stream over a session.
#[derive(Debug)]
pub(super) struct SessionChangeStream {
    client: Client,
    queue: Arc<ChangeQueue>,
    /// The resources that this stream has subscribed at the server.
    uris: Vec<String>,
}

impl SessionChangeStream {
    pub(super) async fn open(client: &Client, filter: ChangeFilter) -> Result<Self, Error> {
        let inner = client.inner();
        let uris = filter.uris.clone();
        let queue = inner.changes.add_queue(filter);
        let mut stream = Self { client: client.clone(), queue, uris: Vec::new() };
        for uri in uris {
            // Counted before the request is sent, so that a drop in the middle unsubscribes what was begun.
            inner.changes.count_uri(&uri);
            stream.uris.push(uri.clone());
            let session = inner.session.load_full();
            if let Some(call) = session.edge.subscribe_call(&uri) {
                inner.run(&call, None).await?;
            }
        }
        Ok(stream)
    }

    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<ChangeEvent>> {
        self.queue.pending.poll(cx, |waiting| match waiting.changes.pop_first() {
            Some(change) => Some(Some(change)),
            None => waiting.closed.then_some(None),
        })
    }
}

impl Drop for SessionChangeStream {
    fn drop(&mut self) {
        self.client.inner().changes.release_uris(&self.uris);
    }
}

impl ChangeBroadcaster {
    /// Queues a change for every stream with a matching filter.
    pub(crate) fn publish(&self, change: &ChangeEvent) {
        for queue in self.state.with(|state| state.live_queues()) {
            queue.push(change);
        }
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        let queues = self.state.with(|state| {
            state.closed = true;
            state.live_queues()
        });
        for queue in queues {
            queue.pending.update(|waiting| waiting.closed = true);
        }
    }

    /// Returns every subscribed resource.
    pub(crate) fn subscribed_uris(&self) -> Vec<String> {
        self.state.with(|state| state.uris.keys().cloned().collect())
    }

    /// Polls for a resource to unsubscribe at the server.
    pub(crate) fn poll_unsubscribed(&self, cx: &mut Context<'_>) -> Poll<String> {
        self.state.poll(cx, |state| {
            while let Some(uri) = state.unsubscribed.pop_first() {
                // A new stream may have subscribed meanwhile.
                if !state.uris.contains_key(&uri) {
                    return Some(uri);
                }
            }
            None
        })
    }

    fn add_queue(&self, filter: ChangeFilter) -> Arc<ChangeQueue> {
        self.state.with(|state| {
            let waiting = QueuedChanges { closed: state.closed, ..QueuedChanges::default() };
            let queue = Arc::new(ChangeQueue { filter, pending: PolledValue::new(waiting) });
            state.queues.retain(|queue| queue.strong_count() > 0);
            state.queues.push(Arc::downgrade(&queue));
            queue
        })
    }

    fn count_uri(&self, uri: &str) {
        self.state.with(|state| *state.uris.entry(uri.to_owned()).or_default() += 1);
    }

    fn release_uris(&self, uris: &[String]) {
        self.state.update(|state| {
            for uri in uris {
                let left = state.uris.get_mut(uri).map(|count| {
                    *count -= 1;
                    *count
                });
                if left == Some(0) {
                    state.uris.remove(uri);
                    state.unsubscribed.insert(uri.clone());
                }
            }
        });
    }
}

impl BroadcasterState {
    fn live_queues(&self) -> Vec<Arc<ChangeQueue>> {
        self.queues.iter().filter_map(Weak::upgrade).collect()
    }
}

impl ChangeQueue {
    fn push(&self, change: &ChangeEvent) {
        if !self.filter.matches(change) {
            return;
        }
        self.pending.update(|waiting| {
            // The number of sub-resources is unbounded; beyond the limit they collapse into one `Missed`.
            if waiting.changes.len() > ChangeFilter::MAX_URIS {
                waiting.changes.clear();
                waiting.changes.insert(ChangeEvent::Missed);
            } else {
                waiting.changes.insert(change.clone());
            }
        });
    }
}
