use std::sync::Arc;

use tokio::sync::Notify;
use trunkline_protocol::Refusal;
use trunkline_session::{EventStore, StreamId};

use super::super::standalone_stream::{StandaloneConnection, StandaloneStreamState};
use super::LiveSession;
use crate::call::Handler;
use crate::change::{ChangeSubscription, SubscriptionFilter};

/// A stream that a client may resume while its call still runs.
#[derive(Debug, Default)]
pub(crate) struct ResumableStream {
    pub(crate) appended: Notify,
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
        let mut desk = self.lock();
        if desk.ended {
            return Err(Refusal::SESSION_NOT_FOUND);
        }
        let (stand, number) = match desk.standalone_streams.get(&stream) {
            Some(stand) => (stand.clone(), stand.take_over()),
            None if desk.standalone_streams.len() >= most => return Err(Refusal::TOO_MANY),
            None => {
                let stand = Arc::new(StandaloneStreamState::new(next));
                desk.standalone_streams.insert(stream, stand.clone());
                (stand, 0)
            }
        };
        drop(desk);
        Ok(StandaloneConnection::new(self.clone(), events.clone(), stream, stand, number))
    }

    /// Removes a standalone stream when its connection ends, unless another has taken it over.
    pub(in crate::edge::legacy) fn detach_standalone(&self, stream: StreamId, carrier: u64) {
        let mut desk = self.lock();
        if desk.standalone_streams.get(&stream).is_some_and(|stand| stand.is_current(carrier)) {
            desk.standalone_streams.remove(&stream);
        }
    }

    /// Returns the session's subscription, which begins with its first use.
    pub(crate) fn subscription(&self, handler: &dyn Handler) -> Arc<ChangeSubscription> {
        if let Some(watch) = &self.lock().subscription {
            return watch.clone();
        }
        let (listener, shown) = (Some(self.subscriber()), Some(self.state.shown_lists.clone()));
        let fresh = Arc::new(handler.subscribe(SubscriptionFilter {
            subscriber: listener,
            shown_lists: shown,
            ..SubscriptionFilter::all_lists()
        }));
        let watch = self.lock().subscription.get_or_insert(fresh).clone();
        self.state.set_notifier(&watch);
        watch
    }
}
