//! Copies of the content, for a store that also writes it elsewhere.

use super::{MemorySessions, SessionEntry};
use crate::{SessionId, SessionLimits, SessionRecord, Timestamp};

impl MemorySessions {
    /// Returns the limits.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Returns a session and when it was last used, whether or not it is expired.
    pub fn snapshot(&self, id: SessionId) -> Option<(SessionRecord, Timestamp)> {
        self.table().sessions.get(&id).map(|entry| (entry.record.clone(), entry.used_at))
    }

    /// Returns when a session was last used.
    pub fn used_at(&self, id: SessionId) -> Option<Timestamp> {
        self.table().sessions.get(&id).map(|entry| entry.used_at)
    }

    /// Returns the ids of all sessions.
    pub fn ids(&self) -> Vec<SessionId> {
        self.table().sessions.keys().copied().collect()
    }

    /// Adds a session of an earlier process, even beyond the limits: until enough have ended, no further one is created.
    pub fn restore(&self, record: SessionRecord, used_at: Timestamp) {
        let mut table = self.table();
        table.remove(record.id);
        table.insert(SessionEntry { next_check: self.expires_at(&record, used_at), used_at, record });
    }
}
