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
    /// Another process sends the events of the stream now, and the event is not stored.
    ClaimLost,
}

/// Another process sends the events of the stream now.
#[derive(Debug)]
pub(crate) struct ClaimLost;

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
        Self::store_under(events, session, stream, id, message, None)
    }

    /// Stores an event of a stream under a claim, where several processes may send its events.
    pub(crate) fn store_under<S: BreakableStream>(
        events: &dyn EventStore,
        session: SessionId,
        stream: &Arc<S>,
        id: EventId,
        message: &str,
        fence: Option<u64>,
    ) -> Self {
        if stream.is_broken() {
            return Self::Ready(None);
        }
        let event = StreamEvent { id, data: bytes::Bytes::copy_from_slice(message.as_bytes()) };
        let reply = match fence {
            None => events.append(session, event, now()),
            Some(fence) => events.append_claimed(session, event, fence, now()),
        };
        match reply {
            StoreReply::Ready(Err(StoreError::ClaimLost)) => Self::ClaimLost,
            StoreReply::Ready(result) => Self::Ready(stored_id(id, result, &**stream)),
            StoreReply::Pending(stored) => Self::Pending(PendingEvent { id, stored, stream: stream.clone() }),
        }
    }

    /// Waits until the event is stored, and returns the id to send.
    pub(crate) async fn wait(self) -> Option<EventId> {
        self.wait_claimed().await.unwrap_or(None)
    }

    /// Waits until the event is stored under its claim, and returns the id to send.
    pub(crate) async fn wait_claimed(self) -> Result<Option<EventId>, ClaimLost> {
        match self {
            Self::Ready(id) => Ok(id),
            Self::Pending(event) => match event.stored.await {
                Err(StoreError::ClaimLost) => Err(ClaimLost),
                result => Ok(stored_id(event.id, result, &*event.stream)),
            },
            Self::ClaimLost => Err(ClaimLost),
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
