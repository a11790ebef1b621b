use std::sync::Arc;
use std::task::{Context, Poll, ready};

use trunkline_session::{BoxFuture, EventId, EventStore, SessionId, StoreError, StoreReply, StreamEvent};

use crate::server_core::now;

/// A stream that stops being resumable when one of its events cannot be stored: a replay would leave that event out.
///
/// See [Resumability and Redelivery](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
pub(crate) trait BreakableStream: Send + Sync + 'static {
    fn mark_broken(&self);

    fn is_broken(&self) -> bool;
}

/// The id of an event, which may be sent only once the event is stored.
pub(crate) enum EventRecord {
    /// The event is stored under this id; without one, the event is sent without an id.
    Ready(Option<EventId>),
    Pending(PendingEvent),
}

/// An event that is being stored.
pub(crate) struct PendingEvent {
    id: EventId,
    stored: BoxFuture<'static, Result<(), StoreError>>,
    stream: Arc<dyn BreakableStream>,
}

impl EventRecord {
    /// Stores an event of a stream.
    pub(crate) fn store<S: BreakableStream>(
        events: &dyn EventStore,
        session: SessionId,
        stream: &Arc<S>,
        id: EventId,
        message: &str,
    ) -> Self {
        if stream.is_broken() {
            return Self::Ready(None);
        }
        let data = bytes::Bytes::copy_from_slice(message.as_bytes());
        match events.append(session, StreamEvent { id, data }, now()) {
            StoreReply::Ready(result) => Self::Ready(stored_id(id, result, &**stream)),
            StoreReply::Pending(stored) => Self::Pending(PendingEvent { id, stored, stream: stream.clone() }),
        }
    }

    /// Waits until the event is stored, and returns the id to send.
    pub(crate) async fn wait(self) -> Option<EventId> {
        match self {
            Self::Ready(id) => id,
            Self::Pending(mut event) => std::future::poll_fn(|cx| event.poll_id(cx)).await,
        }
    }
}

impl PendingEvent {
    /// Polls for the id to send.
    pub(crate) fn poll_id(&mut self, cx: &mut Context<'_>) -> Poll<Option<EventId>> {
        let result = ready!(self.stored.as_mut().poll(cx));
        Poll::Ready(stored_id(self.id, result, &*self.stream))
    }
}

/// A message is sent in any case: without an id, and from then on without ids, if it could not be stored.
fn stored_id(id: EventId, result: Result<(), StoreError>, stream: &dyn BreakableStream) -> Option<EventId> {
    match result {
        Ok(()) => Some(id),
        Err(error) => {
            stream.mark_broken();
            tracing::error!(%error, "the event store failed; a stream can not be resumed any more");
            None
        }
    }
}
