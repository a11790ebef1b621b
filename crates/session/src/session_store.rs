//! The trait of everything that can keep sessions.

use std::fmt::Debug;
use std::pin::Pin;

use thiserror::Error;

use crate::{Principal, SessionId, SessionRecord, Timestamp};

/// A future on the heap, so that traits that return one can be used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps sessions within [`SessionLimits`](crate::SessionLimits), each for the principal that made it.
///
/// A session is *over* from the moment its idle or absolute limit is reached: then no operation finds it, refreshes it or
/// changes it, whether or not [`expire`](Self::expire) has removed it yet. It keeps its room until then, so the owner of a
/// store calls `expire` every few seconds, and may call it once more before it passes on [`StoreError::Full`].
///
/// Every implementation passes [`contract::sessions`](crate::contract::sessions).
///
/// Cancel safety: a future dropped before it is ready may or may not have had its effect, never half of it.
///
/// The test that a store of your own needs is one line, here with the one in memory:
///
/// ```
/// use trunkline_session::{MemorySessions, contract};
///
/// contract::sessions(MemorySessions::new);
/// ```
pub trait SessionStore: Send + Sync + Debug + 'static {
    /// Stores a new session and starts its idle clock.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::PrincipalQuotaExceeded`], [`StoreError::TooLarge`] or [`StoreError::Duplicate`]; the
    /// store is unchanged then.
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns a session to the principal that made it, and starts its idle clock again.
    ///
    /// To anyone else the session does not exist, and asking does not keep it alive.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the session may exist, but cannot be had now.
    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>>;

    /// Replaces a session's record and starts its idle clock again; says whether there was one to replace.
    ///
    /// The record's id and principal choose the session and `created` is left as it was, so that no update hands a session
    /// to someone else or makes it younger. The last of two concurrent updates stays.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and the old record stays; [`StoreError::Unavailable`].
    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Starts a session's idle clock again; says whether there is such a session.
    ///
    /// It is for the owner of work that the session has under way, such as an open stream, and so asks for no principal.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Removes a session of this principal; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes every session that is over, and returns their ids so that what hangs on them can be freed.
    ///
    /// Each id is returned once. The cost follows the number of sessions that are due for a look, not the number stored.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Returns how many sessions take up room, for gauges.
    ///
    /// It answers at once: a store elsewhere gives the number it last knew.
    fn count(&self) -> usize;

    /// Returns the sessions of a principal that are not over, in no order, without keeping them alive.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>>;
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// As many sessions as there may be.
    #[error("the session store is full")]
    Full,
    /// As many sessions as this principal may have.
    #[error("the principal has as many sessions as it may have")]
    PrincipalQuotaExceeded,
    /// More JSON in the record than it may hold.
    #[error("the session's record is larger than the store keeps")]
    TooLarge,
    /// A session with this id is there already.
    #[error("a session with this id exists already")]
    Duplicate,
    /// The store cannot be reached or answered nonsense; the text is for the log, not for the peer.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}
