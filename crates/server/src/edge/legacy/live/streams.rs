use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use trunkline_protocol::Refusal;
use trunkline_session::{EventStore, StreamId};

use super::super::event_record::BreakableStream;
use super::super::standalone_stream::{StandaloneConnection, StandaloneStreamState};
use super::LiveSession;
use crate::call::Handler;
use crate::change::{ChangeSubscription, SubscriptionFilter};

/// A stream that a client may resume while its call still runs.
///
/// See [Resumability and Redelivery](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
#[derive(Debug, Default)]
pub(crate) struct ResumableStream {
    pub(crate) appended: Notify,
    broken: AtomicBool,
}

impl BreakableStream for ResumableStream {
    fn mark_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// The streams of a session, and its change subscription.
impl LiveSession {
    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.lock().next_number())
    }

    pub(crate) fn open_stream(&self) -> (StreamId, Arc<ResumableStream>) {
        let stream = self.new_stream();
        let state = Arc::new(ResumableStream::default());
        self.lock().streams.insert(stream, state.clone());
        (stream, state)
    }

    pub(crate) fn stream(&self, stream: StreamId) -> Option<Arc<ResumableStream>> {
        self.lock().streams.get(&stream).cloned()
    }

    pub(crate) fn close_stream(&self, stream: StreamId) {
        let state = self.lock().streams.remove(&stream);
        if let Some(state) = state {
            state.appended.notify_waiters();
        }
    }

    /// Attaches a connection to a standalone stream from an event on, and takes over from its current connection, if
    /// any.
    pub(crate) fn attach_standalone(
        self: &Arc<Self>,
        stream: StreamId,
        next: u64,
        most: usize,
        events: &Arc<dyn EventStore>,
    ) -> Result<StandaloneConnection, Refusal> {
        let mut activity = self.lock();
        if activity.ended {
            return Err(Refusal::SESSION_NOT_FOUND);
        }
        let (state, number) = match activity.standalone_streams.get(&stream) {
            Some(state) if state.is_broken() => return Err(Refusal::NOT_RESUMABLE),
            Some(state) => (state.clone(), state.take_over()),
            None if activity.standalone_streams.len() >= most => return Err(Refusal::TOO_MANY),
            None => {
                let state = Arc::new(StandaloneStreamState::new(next));
                activity.standalone_streams.insert(stream, state.clone());
                (state, 0)
            }
        };
        drop(activity);
        Ok(StandaloneConnection::new(self.clone(), events.clone(), stream, state, number, next))
    }

    /// Removes a standalone stream when its connection ends, unless another has taken it over.
    pub(in crate::edge::legacy) fn detach_standalone(&self, stream: StreamId, connection: u64) {
        let mut activity = self.lock();
        if activity.standalone_streams.get(&stream).is_some_and(|state| state.is_current(connection)) {
            activity.standalone_streams.remove(&stream);
        }
    }

    /// Returns the resources that the client is subscribed to.
    pub(crate) fn watched_uris(&self) -> BTreeSet<String> {
        let subscription = self.lock().subscription.clone();
        subscription.map_or_else(BTreeSet::new, |known| known.watched_uris())
    }

    /// Returns the session's subscription, which begins with its first use.
    pub(crate) fn subscription(&self, handler: &dyn Handler) -> Arc<ChangeSubscription> {
        if let Some(subscription) = &self.lock().subscription {
            return subscription.clone();
        }
        let (listener, shown) = (Some(self.subscriber()), Some(self.state.shown_lists.clone()));
        let fresh = Arc::new(handler.subscribe(SubscriptionFilter {
            subscriber: listener,
            shown_lists: shown,
            ..SubscriptionFilter::all_lists()
        }));
        let subscription = self.lock().subscription.get_or_insert(fresh).clone();
        self.state.set_notifier(&subscription);
        subscription
    }
}
