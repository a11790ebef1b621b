//! Copies of the content, for a store that also writes it elsewhere.

use std::time::Duration;

use super::MemoryStates;
use crate::state_table::StateTable;
use crate::{StateHandle, StateLimits, StateSnapshot, Timestamp};

impl MemoryStates {
    /// Creates an empty store that records which states it removes, for [`take_removed`](Self::take_removed).
    pub fn with_journal(limits: StateLimits) -> Self {
        Self { table: parking_lot::Mutex::new(StateTable::with_journal(limits)) }
    }

    /// Returns the states that were removed since the last call, by whatever reason.
    pub fn take_removed(&self) -> Vec<StateHandle> {
        self.table().take_removed()
    }

    /// Returns the limit on idleness.
    pub fn idle_limit(&self) -> Duration {
        self.table().limits().idle
    }

    /// Returns a state, whether or not it is expired.
    pub fn snapshot(&self, handle: StateHandle) -> Option<StateSnapshot> {
        self.table().snapshot(handle)
    }

    /// Returns when a state was last used.
    pub fn used_at(&self, handle: StateHandle) -> Option<Timestamp> {
        self.table().used_at(handle)
    }

    /// Returns the handles of all states.
    pub fn handles(&self) -> Vec<StateHandle> {
        self.table().handles()
    }

    /// Adds a state of an earlier process; the least recently used are removed as the limits require.
    pub fn restore(&self, snapshot: StateSnapshot) {
        self.table().restore(snapshot);
    }
}
