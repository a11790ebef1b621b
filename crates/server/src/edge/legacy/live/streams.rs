use std::sync::Arc;

use tokio::sync::Notify;
use trunkline_protocol::Refusal;
use trunkline_session::{EventStore, StreamId};

use super::super::stand::{Carrier, Stand};
use super::LiveSession;
use crate::call::Handler;
use crate::change::{Filter, Subscription};

/// A stream that a client may come back to while its call still runs.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) grown: Notify,
}

/// The streams of a session, and what they tell of.
impl LiveSession {
    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.lock().next_number())
    }

    pub(crate) fn open_stream(&self) -> (StreamId, Arc<StreamState>) {
        let stream = self.new_stream();
        let state = Arc::new(StreamState::default());
        self.lock().streams.insert(stream, state.clone());
        (stream, state)
    }

    pub(crate) fn stream(&self, stream: StreamId) -> Option<Arc<StreamState>> {
        self.lock().streams.get(&stream).cloned()
    }

    pub(crate) fn close_stream(&self, stream: StreamId) {
        let state = self.lock().streams.remove(&stream);
        if let Some(state) = state {
            state.grown.notify_waiters();
        }
    }

    /// Carries a standing stream from an event on; one that has a carrier already is taken over from it, wherever it is.
    pub(crate) fn stand(
        self: &Arc<Self>,
        stream: StreamId,
        next: u64,
        most: usize,
        events: &Arc<dyn EventStore>,
    ) -> Result<Carrier, Refusal> {
        let mut desk = self.lock();
        if desk.ended {
            return Err(Refusal::SESSION_NOT_FOUND);
        }
        let (stand, number) = match desk.standing.get(&stream) {
            Some(stand) => (stand.clone(), stand.take_over()),
            None if desk.standing.len() >= most => return Err(Refusal::TOO_MANY),
            None => {
                let stand = Arc::new(Stand::new(next));
                desk.standing.insert(stream, stand.clone());
                (stand, 0)
            }
        };
        drop(desk);
        Ok(Carrier::new(self.clone(), events.clone(), stream, stand, number))
    }

    /// Forgets a standing stream whose carrier ends, unless another has taken it over.
    pub(in crate::edge::legacy) fn sit(&self, stream: StreamId, carrier: u64) {
        let mut desk = self.lock();
        if desk.standing.get(&stream).is_some_and(|stand| stand.is_carried_by(carrier)) {
            desk.standing.remove(&stream);
        }
    }

    /// Returns the session's subscription, which begins with its first use.
    pub(crate) fn watch(&self, handler: &dyn Handler) -> Arc<Subscription> {
        if let Some(watch) = &self.lock().watch {
            return watch.clone();
        }
        let (listener, shown) = (Some(self.listener()), Some(self.keep.shown.clone()));
        let fresh = Arc::new(handler.watch(Filter { listener, shown, ..Filter::lists() }));
        let watch = self.lock().watch.get_or_insert(fresh).clone();
        self.keep.speak_through(&watch);
        watch
    }
}
