//! Changes that a session tells of by the way.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::{ChangeEvent, ChangeFilter};
use crate::client::Client;
use crate::error::Error;
use crate::mailbox::Mailbox;

/// The streams of one session.
#[derive(Debug, Default)]
pub(crate) struct ChangeBroadcaster {
    state: Mailbox<BroadcasterState>,
}

#[derive(Debug, Default)]
struct BroadcasterState {
    queues: Vec<Weak<ChangeQueue>>,
    /// How many streams watch a resource.
    uris: HashMap<String, usize>,
    /// Resources that nobody watches any more, which the server does not know yet.
    unsubscribed: BTreeSet<String>,
    closed: bool,
}

/// Where changes wait for one stream to be read: a set, since a change that was not looked at is not told twice.
#[derive(Debug)]
struct ChangeQueue {
    filter: ChangeFilter,
    pending: Mailbox<QueuedChanges>,
}

#[derive(Debug, Default)]
struct QueuedChanges {
    changes: BTreeSet<ChangeEvent>,
    closed: bool,
}

/// A stream of the changes that a session tells of.
#[derive(Debug)]
pub(super) struct SessionChangeStream {
    client: Client,
    queue: Arc<ChangeQueue>,
    /// The resources that the server was told of for this stream.
    uris: Vec<String>,
}

impl SessionChangeStream {
    pub(super) async fn open(client: &Client, watch: ChangeFilter) -> Result<Self, Error> {
        let inner = client.inner();
        let uris = watch.uris.clone();
        let watcher = inner.changes.add_queue(watch);
        let mut watching = Self { client: client.clone(), queue: watcher, uris: Vec::new() };
        for uri in uris {
            // Counted before the server knows, so that a drop in the middle takes back whatever was begun.
            inner.changes.count_uri(&uri);
            watching.uris.push(uri.clone());
            let session = inner.session.load_full();
            if let Some(call) = session.edge.subscribe_call(&uri) {
                inner.run(&call, None).await?;
            }
        }
        Ok(watching)
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
    /// Tells every stream that wants to know.
    pub(crate) fn publish(&self, change: &ChangeEvent) {
        for watcher in self.state.with(|state| state.live_queues()) {
            watcher.push(change);
        }
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        let watchers = self.state.with(|state| {
            state.closed = true;
            state.live_queues()
        });
        for watcher in watchers {
            watcher.pending.update(|waiting| waiting.closed = true);
        }
    }

    /// Returns every resource that is watched.
    pub(crate) fn subscribed_uris(&self) -> Vec<String> {
        self.state.with(|state| state.uris.keys().cloned().collect())
    }

    /// Polls for a resource that the server need not tell of any more.
    pub(crate) fn poll_unsubscribed(&self, cx: &mut Context<'_>) -> Poll<String> {
        self.state.poll(cx, |state| {
            while let Some(uri) = state.unsubscribed.pop_first() {
                // Somebody may have come back to it meanwhile.
                if !state.uris.contains_key(&uri) {
                    return Some(uri);
                }
            }
            None
        })
    }

    fn add_queue(&self, watch: ChangeFilter) -> Arc<ChangeQueue> {
        self.state.with(|state| {
            let waiting = QueuedChanges { closed: state.closed, ..QueuedChanges::default() };
            let watcher = Arc::new(ChangeQueue { filter: watch, pending: Mailbox::new(waiting) });
            state.queues.retain(|watcher| watcher.strong_count() > 0);
            state.queues.push(Arc::downgrade(&watcher));
            watcher
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
            // Parts of a watched resource may be without number; from here on they are not told one by one.
            if waiting.changes.len() > ChangeFilter::MAX_URIS {
                waiting.changes.clear();
                waiting.changes.insert(ChangeEvent::Missed);
            } else {
                waiting.changes.insert(change.clone());
            }
        });
    }
}
