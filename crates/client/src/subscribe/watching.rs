//! Changes that a session tells of by the way.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::{Change, Watch};
use crate::client::Client;
use crate::error::Error;
use crate::mailbox::Mailbox;

/// The streams of one session.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    state: Mailbox<State>,
}

#[derive(Debug, Default)]
struct State {
    watchers: Vec<Weak<Watcher>>,
    /// How many streams watch a resource.
    uris: HashMap<String, usize>,
    /// Resources that nobody watches any more, which the server does not know yet.
    abandoned: BTreeSet<String>,
    closed: bool,
}

/// Where changes wait for one stream to be read: a set, since a change that was not looked at is not told twice.
#[derive(Debug)]
struct Watcher {
    watch: Watch,
    waiting: Mailbox<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    changes: BTreeSet<Change>,
    closed: bool,
}

/// A stream of the changes that a session tells of.
#[derive(Debug)]
pub(super) struct Watching {
    client: Client,
    watcher: Arc<Watcher>,
    /// The resources that the server was told of for this stream.
    uris: Vec<String>,
}

impl Watching {
    pub(super) async fn open(client: &Client, watch: Watch) -> Result<Self, Error> {
        let inner = client.inner();
        let uris = watch.uris.clone();
        let watcher = inner.changes.add(watch);
        let mut watching = Self { client: client.clone(), watcher, uris: Vec::new() };
        for uri in uris {
            // Counted before the server knows, so that a drop in the middle takes back whatever was begun.
            inner.changes.count(&uri);
            watching.uris.push(uri.clone());
            let session = inner.session.load_full();
            if let Some(call) = session.edge.watch(&uri) {
                inner.run(&call, None).await?;
            }
        }
        Ok(watching)
    }

    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        self.watcher.waiting.poll(cx, |waiting| match waiting.changes.pop_first() {
            Some(change) => Some(Some(change)),
            None => waiting.closed.then_some(None),
        })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.client.inner().changes.abandon(&self.uris);
    }
}

impl Changes {
    /// Tells every stream that wants to know.
    pub(crate) fn publish(&self, change: &Change) {
        for watcher in self.state.look(|state| state.watchers()) {
            watcher.tell(change);
        }
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        let watchers = self.state.look(|state| {
            state.closed = true;
            state.watchers()
        });
        for watcher in watchers {
            watcher.waiting.change(|waiting| waiting.closed = true);
        }
    }

    /// Returns every resource that is watched.
    pub(crate) fn watched(&self) -> Vec<String> {
        self.state.look(|state| state.uris.keys().cloned().collect())
    }

    /// Polls for a resource that the server need not tell of any more.
    pub(crate) fn poll_abandoned(&self, cx: &mut Context<'_>) -> Poll<String> {
        self.state.poll(cx, |state| {
            while let Some(uri) = state.abandoned.pop_first() {
                // Somebody may have come back to it meanwhile.
                if !state.uris.contains_key(&uri) {
                    return Some(uri);
                }
            }
            None
        })
    }

    fn add(&self, watch: Watch) -> Arc<Watcher> {
        self.state.look(|state| {
            let waiting = Waiting { closed: state.closed, ..Waiting::default() };
            let watcher = Arc::new(Watcher { watch, waiting: Mailbox::new(waiting) });
            state.watchers.retain(|watcher| watcher.strong_count() > 0);
            state.watchers.push(Arc::downgrade(&watcher));
            watcher
        })
    }

    fn count(&self, uri: &str) {
        self.state.look(|state| *state.uris.entry(uri.to_owned()).or_default() += 1);
    }

    fn abandon(&self, uris: &[String]) {
        self.state.change(|state| {
            for uri in uris {
                let left = state.uris.get_mut(uri).map(|count| {
                    *count -= 1;
                    *count
                });
                if left == Some(0) {
                    state.uris.remove(uri);
                    state.abandoned.insert(uri.clone());
                }
            }
        });
    }
}

impl State {
    fn watchers(&self) -> Vec<Arc<Watcher>> {
        self.watchers.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Watcher {
    fn tell(&self, change: &Change) {
        if !self.watch.wants(change) {
            return;
        }
        self.waiting.change(|waiting| {
            // Parts of a watched resource may be without number; from here on they are not told one by one.
            if waiting.changes.len() > Watch::MOST_URIS {
                waiting.changes.clear();
                waiting.changes.insert(Change::Missed);
            } else {
                waiting.changes.insert(change.clone());
            }
        });
    }
}
