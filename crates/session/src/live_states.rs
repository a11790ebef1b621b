//! State of this process, kept between calls.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::state_table::{StateLifetime, StateTable};
use crate::{Principal, StateHandle, StateLimits, Timestamp};

/// A value of a bag. Whoever uses it brings the lock that its type needs.
pub type LiveValue = Arc<dyn Any + Send + Sync>;

/// Keeps values in memory between calls, each for the principal that made it.
///
/// The values never leave the process: for what must survive a restart, or be known to other nodes, there is
/// [`StateStore`](crate::StateStore). The lock is held for a few map operations; values that go are dropped after it.
pub struct LiveStates {
    table: Mutex<StateTable<LiveValue>>,
}

impl LiveStates {
    /// Makes an empty store.
    pub fn new(limits: StateLimits) -> Self {
        Self { table: Mutex::new(StateTable::new(limits)) }
    }

    fn table(&self) -> MutexGuard<'_, StateTable<LiveValue>> {
        self.table.lock()
    }

    /// Keeps a value under a new handle.
    pub fn create(
        &self,
        principal: &Principal,
        lifetime: StateLifetime,
        value: LiveValue,
        now: Timestamp,
    ) -> StateHandle {
        let handle = StateHandle::random();
        let gone = self.table().insert(handle, principal, lifetime, value, now);
        drop(gone);
        handle
    }

    /// Returns the principal's value under a handle, or keeps a new one under it.
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
            // Whoever lost the race has a value that nobody knows, and its end is not for under the lock.
            drop(table);
            drop(value);
            return known;
        }
        let gone = table.insert(handle, principal, lifetime, value.clone(), now);
        drop(table);
        drop(gone);
        value
    }

    /// Returns a value to the principal that made it; to anyone else there is none.
    pub fn get(&self, handle: StateHandle, principal: &Principal, now: Timestamp) -> Option<LiveValue> {
        self.table().get_and_touch(handle, principal, now).map(|value| value.clone())
    }

    /// Removes a value of this principal; says whether there was one.
    pub fn delete(&self, handle: StateHandle, principal: &Principal) -> bool {
        let gone = self.table().remove_owned(handle, principal);
        gone.is_some()
    }

    /// Removes a value whose session is over.
    pub fn forget(&self, handle: StateHandle) {
        let gone = self.table().remove(handle);
        drop(gone);
    }

    /// Removes what is over; a value that was in use until its absolute limit may stay for its idle limit more.
    pub fn expire(&self, now: Timestamp) {
        let gone = self.table().expire(now);
        drop(gone);
    }

    /// Returns how many values are kept.
    pub fn count(&self) -> usize {
        self.table().len()
    }
}

/// Shows how much is kept and nothing of what is kept.
impl fmt::Debug for LiveStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveStates").field("bags", &self.count()).finish_non_exhaustive()
    }
}
