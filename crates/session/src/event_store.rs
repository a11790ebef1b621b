//! The trait of everything that can keep sent events for a client that comes back.

use std::fmt::Debug;

use crate::session_store::BoxFuture;
use crate::{EventId, SessionId, StoreError, StreamEvent, Timestamp};

/// Keeps recently sent events within [`EventLimits`](crate::EventLimits), so that a broken stream can be resumed.
///
/// It does not know principals: the caller has got the session from its [`SessionStore`](crate::SessionStore) for the
/// principal at hand before it asks for a replay.
///
/// Every implementation passes [`contract::events`](crate::contract::events).
pub trait EventStore: Send + Sync + Debug + 'static {
    /// Keeps an event, and drops old ones as the limits demand.
    ///
    /// The events of one stream come in ascending order of `seq`, from one caller at a time. It neither waits nor fails, as
    /// sending must not depend on the log: a store elsewhere queues, and a replay on the same store sees what was queued.
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp);

    /// Returns what was sent on a stream after an event.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the events may exist, but cannot be had now.
    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>>;

    /// Drops the events of a session that has ended.
    fn forget(&self, session: SessionId);

    /// Frees the memory of events that are too old to be replayed.
    ///
    /// No replay shows them either way. The default does nothing, for stores whose entries expire by themselves.
    fn expire(&self, now: Timestamp) {
        let _ = now;
    }
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventReplay {
    /// Every later event of the stream, in the order it was sent; empty when the client has missed nothing.
    Events(Vec<StreamEvent>),
    /// The position is unknown, or was dropped or is too old, so that nobody can say what the client has missed.
    Gone,
}
