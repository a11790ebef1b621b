//! The in-memory store of JSON states.

mod snapshot;

use std::fmt;

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::RawJson;

use crate::session_store::BoxFuture;
use crate::state_table::StateTable;
use crate::{
    Principal, ReplaceOutcome, StateHandle, StateLimits, StateRecord, StateStore, StoreError, StoredState,
    Timestamp,
};

/// Stores JSON states in memory, for a server on one node.
pub struct MemoryStates {
    table: Mutex<StateTable<StoredState>>,
}

impl MemoryStates {
    /// Creates an empty store.
    pub fn new(limits: StateLimits) -> Self {
        Self { table: Mutex::new(StateTable::new(limits)) }
    }

    fn table(&self) -> MutexGuard<'_, StateTable<StoredState>> {
        self.table.lock()
    }

    fn create_now(&self, record: StateRecord, now: Timestamp) -> Result<(), StoreError> {
        let StateRecord { handle, principal, lifetime, value } = record;
        let value = value.to_owned_buffer();
        let mut table = self.table();
        if value.as_str().len() > table.limits().bytes {
            return Err(StoreError::TooLarge);
        }
        if table.get_and_touch(handle, &principal, now).is_some() {
            return Err(StoreError::Duplicate);
        }
        table.insert(handle, &principal, lifetime, StoredState { value, version: 0 }, now);
        Ok(())
    }

    fn replace_now(
        &self,
        handle: StateHandle,
        principal: &Principal,
        expected: u64,
        value: &RawJson,
        now: Timestamp,
    ) -> Result<ReplaceOutcome, StoreError> {
        let mut table = self.table();
        let too_large = value.as_str().len() > table.limits().bytes;
        let Some(stored) = table.get_and_touch(handle, principal, now) else {
            return Ok(ReplaceOutcome::Missing);
        };
        if stored.version != expected {
            return Ok(ReplaceOutcome::VersionMismatch);
        }
        if too_large {
            return Err(StoreError::TooLarge);
        }
        *stored = StoredState { value: value.to_owned_buffer(), version: expected + 1 };
        Ok(ReplaceOutcome::Done)
    }
}

impl StateStore for MemoryStates {
    fn create(&self, record: StateRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.create_now(record, now) })
    }

    fn get<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredState>, StoreError>> {
        Box::pin(async move { Ok(self.table().get_and_touch(handle, principal, now).cloned()) })
    }

    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: RawJson,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<ReplaceOutcome, StoreError>> {
        Box::pin(async move { self.replace_now(handle, principal, expected, &value, now) })
    }

    fn forget(&self, handle: StateHandle) {
        self.table().remove(handle);
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.table().expire(now);
            Ok(())
        })
    }

    fn count(&self) -> usize {
        self.table().len()
    }
}

/// Shows the amount of stored data, not the data.
impl fmt::Debug for MemoryStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStates").field("bags", &self.count()).finish_non_exhaustive()
    }
}
