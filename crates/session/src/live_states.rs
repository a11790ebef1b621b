//! In-process state between calls.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::state_table::{StateLifetime, StateTable};
use crate::{Principal, StateHandle, StateLimits, Timestamp};

/// The value of a state. Its type brings the lock that it needs.
pub type LiveValue = Arc<dyn Any + Send + Sync>;

/// Stores values in memory between calls, each for the principal that created it.
///
/// The values never leave the process: use [`StateStore`](crate::StateStore) for state that must survive a restart or
/// be shared with other nodes. The lock is held for a few map operations; removed values are dropped after its
/// release.
pub struct LiveStates {
    table: Mutex<StateTable<LiveValue>>,
}

impl LiveStates {
    /// Creates an empty store.
    pub fn new(limits: StateLimits) -> Self {
        Self { table: Mutex::new(StateTable::new(limits)) }
    }

    fn table(&self) -> MutexGuard<'_, StateTable<LiveValue>> {
        self.table.lock()
    }

    /// Stores a value under a new handle.
    pub fn create(
        &self,
        principal: &Principal,
        lifetime: StateLifetime,
        value: LiveValue,
        now: Timestamp,
    ) -> StateHandle {
        let handle = StateHandle::random();
        let removed = self.table().insert(handle, principal, lifetime, value, now);
        drop(removed);
        handle
    }

    /// Returns the principal's value under a handle, or stores a new one under it.
    pub fn get_or_insert(
        &self,
        handle: StateHandle,
        principal: &Principal,
        lifetime: StateLifetime,
        value: LiveValue,
        now: Timestamp,
    ) -> LiveValue {
        let mut table = self.table();
        if let Some(known) = table.get_and_touch(handle, principal, now) {
            let known = known.clone();
            // The value that lost the race is dropped outside of the lock, since its destructor is foreign code.
            drop(table);
            drop(value);
            return known;
        }
        let removed = table.insert(handle, principal, lifetime, value.clone(), now);
        drop(table);
        drop(removed);
        value
    }

    /// Returns a value to the principal that created it; for other principals there is none.
    pub fn get(&self, handle: StateHandle, principal: &Principal, now: Timestamp) -> Option<LiveValue> {
        self.table().get_and_touch(handle, principal, now).map(|value| value.clone())
    }

    /// Removes a value of this principal; returns whether there was one.
    pub fn delete(&self, handle: StateHandle, principal: &Principal) -> bool {
        let removed = self.table().remove_owned(handle, principal);
        removed.is_some()
    }

    /// Removes the value of an ended session.
    pub fn forget(&self, handle: StateHandle) {
        let removed = self.table().remove(handle);
        drop(removed);
    }

    /// Removes expired values; one that was used until its absolute limit may stay for its idle limit more.
    pub fn expire(&self, now: Timestamp) {
        let removed = self.table().expire(now);
        drop(removed);
    }

    /// Returns the number of stored values.
    pub fn count(&self) -> usize {
        self.table().len()
    }
}

/// Shows the amount of stored data, not the data.
impl fmt::Debug for LiveStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveStates").field("bags", &self.count()).finish_non_exhaustive()
    }
}
