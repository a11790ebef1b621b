//! The trait of everything that can keep state as JSON.

use std::fmt::Debug;

use trunkline_protocol::RawJson;

use crate::session_store::BoxFuture;
use crate::{Principal, StateHandle, StateLifetime, StoreError, Timestamp};

/// A new bag of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The bag's handle.
    pub handle: StateHandle,
    /// The only party that the bag is ever given to.
    pub principal: Principal,
    /// What ends the bag beside the store's limits.
    pub lifetime: StateLifetime,
    /// What is in it.
    pub value: RawJson,
}

/// What is in a bag, and how often that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// What is in it.
    pub value: RawJson,
    /// The version, 0 for what the bag was made with; every replacement makes it one greater.
    pub version: u64,
}

/// What became of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The value is the new one.
    Done,
    /// Someone else replaced it first, so it is as they left it.
    VersionMismatch,
    /// There is no such bag.
    Missing,
}

/// Keeps bags of JSON within [`StateLimits`](crate::StateLimits), each for the principal that made it.
///
/// A bag is *over* from the moment its idle or absolute limit is reached: then no operation finds it, whether or not
/// [`expire`](Self::expire) has removed it yet. Beyond the limits on their number the least recently used bag goes.
///
/// Every implementation passes [`contract::states`](crate::contract::states).
///
/// Cancel safety: a future dropped before it is ready may or may not have had its effect, never half of it.
pub trait StateStore: Send + Sync + Debug + 'static {
    /// Keeps a new bag.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] or [`StoreError::Duplicate`], and the store is unchanged then; [`StoreError::Unavailable`].
    fn create(&self, record: StateRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns what is in a bag to the principal that made it, and starts its idle clock again.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn get<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredState>, StoreError>>;

    /// Replaces what is in a bag, if its version is still the one that `expected` says.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and the bag is unchanged; [`StoreError::Unavailable`].
    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: RawJson,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<ReplaceOutcome, StoreError>>;

    /// Removes a bag whose session is over.
    ///
    /// It returns at once: a store elsewhere does it when it can, and the bag's limits end it in any case.
    fn forget(&self, handle: StateHandle);

    /// Removes bags that are over; one that was in use until its absolute limit may stay for its idle limit more.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns how many bags take up room, for gauges.
    ///
    /// It answers at once: a store elsewhere gives the number it last knew.
    fn count(&self) -> usize;
}
