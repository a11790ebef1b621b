//! The trait of stores of JSON state.

use std::fmt::Debug;

use trunkline_protocol::RawJson;

use crate::session_store::BoxFuture;
use crate::{Principal, StateHandle, StateLifetime, StoreError, Timestamp};

/// A new JSON state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The state's handle.
    pub handle: StateHandle,
    /// The only principal that the state is ever returned to.
    pub principal: Principal,
    /// How long the state lives, within the store's limits.
    pub lifetime: StateLifetime,
    /// The value.
    pub value: RawJson,
}

/// A stored value and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// The value.
    pub value: RawJson,
    /// The version, 0 for the initial value; every replacement increments it.
    pub version: u64,
}

/// A stored state with everything that another process needs to continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSnapshot {
    /// The state as it was created, with its current value.
    pub record: StateRecord,
    /// The version of the value.
    pub version: u64,
    /// When it was created; its absolute age counts from here.
    pub created: Timestamp,
    /// When it was last used.
    pub used_at: Timestamp,
}

/// The outcome of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The value was replaced.
    Done,
    /// Another call replaced the value first, and it is unchanged.
    VersionMismatch,
    /// There is no such state.
    Missing,
}

/// Stores JSON states within [`StateLimits`](crate::StateLimits), each for the principal that created it.
///
/// A state is *expired* from the moment its idle or absolute limit is reached: then no operation finds it, whether or
/// not [`expire`](Self::expire) has removed it yet. Beyond the limits on their number the least recently used state
/// is evicted.
///
/// Every implementation passes [`contract::states`](crate::contract::states).
///
/// Cancel safety: a future dropped before it is ready may or may not have had its effect, never half of it.
pub trait StateStore: Send + Sync + Debug + 'static {
    /// Stores a new state.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] or [`StoreError::Duplicate`], and the store is unchanged then; [`StoreError::Unavailable`].
    fn create(&self, record: StateRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns a state to the principal that created it, and restarts its idle timer.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn get<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredState>, StoreError>>;

    /// Replaces a state's value, if its version is still `expected`.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and the state is unchanged; [`StoreError::Unavailable`].
    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: RawJson,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<ReplaceOutcome, StoreError>>;

    /// Removes the state of an ended session.
    ///
    /// Returns at once: a remote store removes it later, and the limits expire it in any case.
    fn forget(&self, handle: StateHandle);

    /// Removes expired states; one that was used until its absolute limit may stay for its idle limit more.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the number of stored states, for gauges.
    ///
    /// Returns at once: a remote store returns its last known number.
    fn count(&self) -> usize;
}
