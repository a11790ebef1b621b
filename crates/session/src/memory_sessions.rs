//! The in-memory session store.

mod snapshot;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use crate::session_store::BoxFuture;
use crate::{
    Principal, RecordChange, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError, Timestamp,
};

/// How many sessions `expire` checks before it releases the lock; other tasks wait half a millisecond at most.
const EXPIRY_CHECKS_PER_LOCK: usize = 1024;

/// Stores sessions in memory, for a server on one node.
///
/// One lock guards everything and is held for a few map operations, so that the limits are exact. A lookup writes one
/// number; `expire` checks each session at most once per idle period, or when it is expired.
pub struct MemorySessions {
    limits: SessionLimits,
    table: Mutex<SessionTable>,
}

impl MemorySessions {
    /// Creates an empty store.
    pub fn new(limits: SessionLimits) -> Self {
        Self { limits, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        // Nothing under the lock calls foreign code, so a panic elsewhere cannot have left the table half changed.
        self.table.lock()
    }

    /// Returns when a session expires, if it is not used again.
    fn expires_at(&self, record: &SessionRecord, used: Timestamp) -> Timestamp {
        used.plus(self.limits.idle).min(record.created.plus(self.limits.absolute))
    }

    fn is_expired(&self, entry: &SessionEntry, now: Timestamp) -> bool {
        self.expires_at(&entry.record, entry.used_at) <= now
    }

    /// Finds an unexpired session and restarts its idle timer.
    fn get_and_touch<'t>(
        &self,
        table: &'t mut SessionTable,
        id: SessionId,
        owner: Option<&Principal>,
        now: Timestamp,
    ) -> Option<&'t mut SessionEntry> {
        let entry = table.sessions.get_mut(&id)?;
        if owner.is_some_and(|owner| *owner != entry.record.principal) || self.is_expired(entry, now) {
            return None;
        }
        // The clock can step back, and two requests can arrive out of order; neither shortens a session's lifetime.
        entry.used_at = entry.used_at.max(now);
        Some(entry)
    }

    fn create_now(&self, record: SessionRecord, now: Timestamp) -> Result<(), StoreError> {
        if !record.fits(&self.limits) {
            return Err(StoreError::TooLarge);
        }
        let record = record.into_owned_buffers();
        let mut table = self.table();
        if table.sessions.contains_key(&record.id) {
            return Err(StoreError::Duplicate);
        }
        let fits = table.bytes.saturating_add(stored_bytes(&record)) <= self.limits.total_bytes;
        if table.sessions.len() >= self.limits.total || !fits {
            return Err(StoreError::Full);
        }
        let is_single_client = matches!(record.principal, Principal::Named(_));
        if is_single_client && table.count_of(&record.principal) >= self.limits.per_principal {
            return Err(StoreError::PrincipalQuotaExceeded);
        }
        table.insert(SessionEntry { next_check: self.expires_at(&record, now), used_at: now, record });
        Ok(())
    }

    fn update_in(
        &self,
        table: &mut SessionTable,
        record: SessionRecord,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        if !record.fits(&self.limits) {
            return Err(StoreError::TooLarge);
        }
        let before = table.bytes;
        let Some(entry) = self.get_and_touch(table, record.id, Some(&record.principal), now) else {
            return Ok(false);
        };
        let bytes = before - stored_bytes(&entry.record) + stored_bytes(&record);
        // An update that shrinks the record is always accepted.
        if bytes > before.max(self.limits.total_bytes) {
            return Err(StoreError::Full);
        }
        entry.record = SessionRecord { created: entry.record.created, ..record };
        table.bytes = bytes;
        Ok(true)
    }

    /// Checks up to [`EXPIRY_CHECKS_PER_LOCK`] sessions that are due, and returns whether more are left.
    fn expire_some(&self, now: Timestamp, over: &mut Vec<SessionId>) -> ExpiryProgress {
        let mut table = self.table();
        for _ in 0..EXPIRY_CHECKS_PER_LOCK {
            let Some(id) = table.take_due(now) else { return ExpiryProgress::Done };
            let Some(entry) = table.sessions.get(&id) else { continue };
            let end = self.expires_at(&entry.record, entry.used_at);
            if end > now {
                table.schedule_check(id, end);
            } else {
                table.remove(id);
                over.push(id);
            }
        }
        ExpiryProgress::More
    }

    fn delete_now(&self, id: SessionId, principal: &Principal) -> bool {
        let mut table = self.table();
        let is_owner = table.sessions.get(&id).is_some_and(|entry| entry.record.principal == *principal);
        if is_owner {
            table.remove(id);
        }
        is_owner
    }

    fn list_now(&self, principal: &Principal, now: Timestamp) -> Vec<SessionRecord> {
        let table = self.table();
        let ids = table.by_principal.get(principal).into_iter().flatten();
        ids.filter_map(|id| table.sessions.get(id))
            .filter(|entry| !self.is_expired(entry, now))
            .map(|entry| entry.record.clone())
            .collect()
    }
}

impl SessionStore for MemorySessions {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.create_now(record, now) })
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let mut table = self.table();
            Ok(self.get_and_touch(&mut table, id, Some(principal), now).map(|entry| entry.record.clone()))
        })
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { self.update_in(&mut self.table(), record.into_owned_buffers(), now) })
    }

    fn change<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        changes: &'a [RecordChange],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let mut table = self.table();
            let found = self.get_and_touch(&mut table, id, Some(principal), now);
            let Some(mut record) = found.map(|entry| entry.record.clone()) else { return Ok(None) };
            changes.iter().for_each(|change| record.apply(change));
            Ok(self.update_in(&mut table, record.clone(), now)?.then_some(record))
        })
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.get_and_touch(&mut self.table(), id, None, now).is_some()) })
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.delete_now(id, principal)) })
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let mut over = Vec::new();
            while let ExpiryProgress::More = self.expire_some(now, &mut over) {}
            Ok(over)
        })
    }

    fn count(&self) -> usize {
        self.table().sessions.len()
    }

    fn kind(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(async move { Ok(self.list_now(principal, now)) })
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let table = self.table();
            let unexpired = table.sessions.values().filter(|entry| !self.is_expired(entry, now));
            Ok(unexpired.take(most).map(|entry| entry.record.clone()).collect())
        })
    }
}

/// Shows the amount of stored data, not the data.
impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        f.debug_struct("MemorySessions")
            .field("sessions", &table.sessions.len())
            .field("looks", &table.by_next_check.len())
            .field("principals", &table.by_principal.len())
            .finish_non_exhaustive()
    }
}

/// Returns what a record counts for in [`SessionLimits::total_bytes`].
fn stored_bytes(record: &SessionRecord) -> usize {
    record.raw_bytes() + record.subscription_bytes()
}

enum ExpiryProgress {
    Done,
    More,
}

struct SessionEntry {
    record: SessionRecord,
    used_at: Timestamp,
    /// When `expire` next checks the session: at its expiry as computed at the last check.
    ///
    /// A use moves the expiry but not the check, so that it need not update the index; a check that comes too early
    /// is rescheduled.
    next_check: Timestamp,
}

/// The sessions and their two indexes, which change only together.
#[derive(Default)]
struct SessionTable {
    sessions: HashMap<SessionId, SessionEntry>,
    by_next_check: BTreeSet<(Timestamp, SessionId)>,
    by_principal: HashMap<Principal, HashSet<SessionId>>,
    /// The JSON and the subscribed URIs of all records.
    bytes: usize,
}

impl SessionTable {
    fn count_of(&self, principal: &Principal) -> usize {
        self.by_principal.get(principal).map_or(0, HashSet::len)
    }

    fn insert(&mut self, entry: SessionEntry) {
        let id = entry.record.id;
        self.bytes += stored_bytes(&entry.record);
        self.by_next_check.insert((entry.next_check, id));
        self.by_principal.entry(entry.record.principal.clone()).or_default().insert(id);
        self.sessions.insert(id, entry);
    }

    fn remove(&mut self, id: SessionId) {
        let Some(entry) = self.sessions.remove(&id) else { return };
        self.bytes -= stored_bytes(&entry.record);
        self.by_next_check.remove(&(entry.next_check, id));
        if let Entry::Occupied(mut own) = self.by_principal.entry(entry.record.principal) {
            own.get_mut().remove(&id);
            if own.get().is_empty() {
                own.remove();
            }
        }
    }

    /// Removes the next session to check from the index.
    fn take_due(&mut self, now: Timestamp) -> Option<SessionId> {
        if self.by_next_check.first()?.0 > now {
            return None;
        }
        self.by_next_check.pop_first().map(|(_, id)| id)
    }

    fn schedule_check(&mut self, id: SessionId, at: Timestamp) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.next_check = at;
            self.by_next_check.insert((at, id));
        }
    }
}
