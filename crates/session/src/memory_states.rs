//! Bags of JSON in the memory of one node.

use std::fmt;

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::Raw;

use crate::bag_table::BagTable;
use crate::session_store::BoxFuture;
use crate::{
    Principal, Replaced, StateHandle, StateLimits, StateRecord, StateStore, StoreError, StoredState,
    Timestamp,
};

/// Keeps bags of JSON in memory, for a server that runs on one node.
pub struct MemoryStates {
    table: Mutex<BagTable<StoredState>>,
}

impl MemoryStates {
    /// Makes an empty store.
    pub fn new(limits: StateLimits) -> Self {
        Self { table: Mutex::new(BagTable::new(limits)) }
    }

    fn table(&self) -> MutexGuard<'_, BagTable<StoredState>> {
        self.table.lock()
    }

    fn create_now(&self, record: StateRecord, now: Timestamp) -> Result<(), StoreError> {
        let StateRecord { handle, principal, lifetime, value } = record;
        let value = value.detached();
        let mut table = self.table();
        if value.as_str().len() > table.limits().bytes {
            return Err(StoreError::TooLarge);
        }
        if table.use_bag(handle, &principal, now).is_some() {
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
        value: &Raw,
        now: Timestamp,
    ) -> Result<Replaced, StoreError> {
        let mut table = self.table();
        let too_large = value.as_str().len() > table.limits().bytes;
        let Some(stored) = table.use_bag(handle, principal, now) else { return Ok(Replaced::Missing) };
        if stored.version != expected {
            return Ok(Replaced::Outdated);
        }
        if too_large {
            return Err(StoreError::TooLarge);
        }
        *stored = StoredState { value: value.detached(), version: expected + 1 };
        Ok(Replaced::Done)
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
        Box::pin(async move { Ok(self.table().use_bag(handle, principal, now).cloned()) })
    }

    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: Raw,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
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

/// Shows how much is stored and nothing of what is stored.
impl fmt::Debug for MemoryStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStates").field("bags", &self.count()).finish_non_exhaustive()
    }
}
