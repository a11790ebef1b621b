//! The trait of event stores, for clients that resume a stream.

use std::fmt::Debug;

use crate::session_store::BoxFuture;
use crate::{EventId, ProcessId, SessionId, StoreError, StoreReply, StreamEvent, Timestamp};

/// Stores recently sent events within [`EventLimits`](crate::EventLimits), so that a broken stream can be resumed.
///
/// It does not check principals: the caller gets the session from its [`SessionStore`](crate::SessionStore) for the
/// principal before it requests a replay.
///
/// Every implementation passes [`contract::events`](crate::contract::events).
pub trait EventStore: Send + Sync + Debug + 'static {
    /// Stores an event, and drops old ones as the limits require.
    ///
    /// The events of one stream come in ascending order of `seq`, from one caller at a time. The call itself never
    /// blocks: a store that does IO queues the event before it returns, in the order of the calls, and a replay on the
    /// same store sees it from then on. The reply is ready when the event is stored as safely as this store promises;
    /// only then may its id be sent. Dropping the reply does not undo the append.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the event may not be stored, so that its stream cannot be resumed beyond it.
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()>;

    /// Returns the events that were sent on a stream after an event.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the events may exist, but cannot be read now.
    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>>;

    /// Waits until what was appended so far is stored or has failed, so that other processes find it.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Makes a process the only one that sends messages of a session that belong to no call; a process that shares the store
    /// loses its claim to a later one.
    ///
    /// By default nothing is recorded, for stores of one process. Others pass [`contract::claims`](crate::contract::claims).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn claim(
        &self,
        session: SessionId,
        process: ProcessId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<OutboxClaim, StoreError>> {
        let _ = (session, process, now);
        Box::pin(std::future::ready(Ok(OutboxClaim { fence: 0, previous: None })))
    }

    /// Appends an event under a claim, as [`append`](Self::append) does.
    ///
    /// # Errors
    /// [`StoreError::ClaimLost`], and nothing is stored, if a later claim was made; otherwise those of `append`.
    fn append_claimed(
        &self,
        session: SessionId,
        event: StreamEvent,
        fence: u64,
        now: Timestamp,
    ) -> StoreReply<()> {
        let _ = fence;
        self.append(session, event, now)
    }

    /// Drops the events of a session that has ended, and the claim to it.
    ///
    /// Returns at once: a store that does IO queues this, and its limits expire the events in any case.
    fn forget(&self, session: SessionId);

    /// Reports whether the events may be replayed by another process, which knows nothing of the calls that sent them.
    fn outlives_process(&self) -> bool {
        true
    }

    /// Frees the memory of events that are too old to be replayed.
    ///
    /// No replay returns them either way. The default does nothing, for stores with entries that expire by
    /// themselves.
    fn expire(&self, now: Timestamp) {
        let _ = now;
    }
}

/// A claim to send the messages of a session that belong to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxClaim {
    /// The number of the claim; later ones are higher.
    pub fence: u64,
    /// The process that had the claim before, if any had.
    pub previous: Option<ProcessId>,
}

/// The outcome of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventReplay {
    /// Every later event of the stream, in the order it was sent; empty when the client has missed nothing.
    Events(Vec<StreamEvent>),
    /// The position is unknown, or was dropped or is too old, so that the missed events cannot be determined.
    Gone,
}
