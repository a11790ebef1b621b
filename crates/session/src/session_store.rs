//! The trait of session stores.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;

use crate::{Principal, RecordChange, RecordVersion, SessionId, SessionRecord, SessionRefresh, Timestamp};

/// A boxed future, so that traits that return one are object safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Stores sessions within [`SessionLimits`](crate::SessionLimits), each for the principal that created it.
///
/// A session is *expired* from the moment its idle or absolute limit is reached: then no operation finds it,
/// refreshes it or changes it, whether or not [`expire`](Self::expire) has removed it yet. Until then it counts
/// against the limits, so the owner of a store calls `expire` every few seconds, and may call it once more before it
/// returns [`StoreError::Full`].
///
/// Every implementation passes [`contract::sessions`](crate::contract::sessions).
///
/// Cancel safety: a future dropped before it is ready may or may not have had its effect, never half of it.
///
/// The test that a custom store needs is one line, here for the in-memory store:
///
/// ```
/// use trunkline_session::{MemorySessions, contract};
///
/// contract::sessions(MemorySessions::new);
/// ```
pub trait SessionStore: Send + Sync + Debug + 'static {
    /// Stores a new session and starts its idle timer.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::PrincipalQuotaExceeded`], [`StoreError::TooLarge`] or [`StoreError::Duplicate`]; the
    /// store is unchanged then.
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns a session to the principal that created it, and restarts its idle timer.
    ///
    /// For other principals the session does not exist, and a lookup does not keep it alive.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the session may exist, but cannot be read now.
    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>>;

    /// Finds a session as [`get`](Self::get) does, but leaves its record out if that has the version which the caller knows.
    ///
    /// By default there are no versions, and the record is always returned.
    ///
    /// # Errors
    /// Those of `get`.
    fn refresh<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        known: Option<RecordVersion>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRefresh>, StoreError>> {
        let _ = known;
        Box::pin(async move {
            let record = self.get(id, principal, now).await?;
            Ok(record.map(|record| SessionRefresh { record: Some(record), version: None }))
        })
    }

    /// Applies changes to a session's record, restarts its idle timer, and returns the new record if there is such a session.
    ///
    /// Processes that share the store do not lose each other's changes. By default the record is read and replaced, which is
    /// enough for stores of one process, where a session makes one change at a time.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and the old record stays; [`StoreError::Unavailable`].
    fn change<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        changes: &'a [RecordChange],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let Some(mut record) = self.get(id, principal, now).await? else { return Ok(None) };
            changes.iter().for_each(|change| record.apply(change));
            Ok(self.update(record.clone(), now).await?.then_some(record))
        })
    }

    /// Replaces a session's record and restarts its idle timer; returns whether there was one to replace.
    ///
    /// The record's id and principal select the session and `created` is not changed, so that no update transfers a
    /// session to another principal or makes it younger. The last of two concurrent updates wins.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and the old record stays; [`StoreError::Unavailable`].
    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Restarts a session's idle timer; returns whether there is such a session.
    ///
    /// For the owner of the session's running work, such as an open stream, and so without a principal.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Restarts the idle timers of several sessions, and returns those that do not exist.
    ///
    /// By default they are touched one after the other.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn touch_all<'a>(
        &'a self,
        ids: &'a [SessionId],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let mut missing = Vec::new();
            for id in ids {
                if !self.touch(*id, now).await? {
                    missing.push(*id);
                }
            }
            Ok(missing)
        })
    }

    /// Removes a session of this principal; returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes a session of this principal to make room, unless another process may be using it; returns whether it was removed.
    ///
    /// By default this is [`delete`](Self::delete), for stores of one process.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn evict<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.delete(id, principal)
    }

    /// Removes every expired session, and returns their ids so that dependent data can be freed.
    ///
    /// Each id is returned once. The cost is proportional to the number of sessions due for a check, not to the
    /// number stored.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Returns the number of stored sessions, for gauges.
    ///
    /// Returns at once: a remote store returns its last known number.
    fn count(&self) -> usize;

    /// Returns the kind of store, as a label of metrics.
    fn kind(&self) -> &'static str {
        "custom"
    }

    /// Returns whether other processes may use the sessions, as a custom store is taken to allow.
    ///
    /// When another process used a session last is unknown, so at a limit a server ends only idle sessions
    /// that it serves itself, and refuses the new one if there is none. Of a store of one process it also ends those that
    /// were not used since it started.
    fn is_shared(&self) -> bool {
        true
    }

    /// Returns how much longer than its idle limit a session may live that was used, because not every use is stored.
    ///
    /// A session never lives shorter for it, and one that was not used since it was created no longer.
    fn idle_slack(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the unexpired sessions of a principal, in no order, without keeping them alive.
    ///
    /// By default these are chosen from [`list_all`](Self::list_all); a store with an index of principals uses that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let mut sessions = self.list_all(usize::MAX, now).await?;
            sessions.retain(|session| session.principal == *principal);
            Ok(sessions)
        })
    }

    /// Returns up to `most` unexpired sessions of all principals, in no order, without keeping them alive.
    ///
    /// For operators: what it returns never reaches a client.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>>;
}

/// An error of a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The limit on the number or the size of all sessions is reached.
    #[error("the session store is full")]
    Full,
    /// The principal's session quota is reached.
    #[error("the principal has as many sessions as it may have")]
    PrincipalQuotaExceeded,
    /// The record has more JSON than allowed.
    #[error("the session's record is larger than the store keeps")]
    TooLarge,
    /// A session with this id exists already.
    #[error("a session with this id exists already")]
    Duplicate,
    /// Another process has claimed the session since.
    #[error("another process has claimed the session")]
    ClaimLost,
    /// The store is unreachable or returned garbage; the text is for the log, not for the peer.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}
