//! An in-memory table of states of any type: each for its principal, within the limits, with least-recently-used
//! eviction.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::{Principal, StateHandle, StateLimits, StateRecord, StateSnapshot, StoredState, Timestamp};

/// How long a state lives, within its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLifetime {
    /// Until its idle timeout.
    Idle,
    /// Until its session ends, which removes it.
    Session,
}

/// How many states `create` checks for expiry, so that a table without a periodic `expire` does not keep them for
/// ever.
const EXPIRY_CHECKS_PER_CREATE: usize = 8;

/// The states and their indexes, which change only together.
pub(crate) struct StateTable<V> {
    limits: StateLimits,
    entries: HashMap<StateHandle, StateEntry<V>>,
    /// All states by the number of their last use.
    by_last_use: BTreeMap<u64, StateHandle>,
    /// The same for each named principal.
    by_principal: HashMap<Principal, BTreeMap<u64, StateHandle>>,
    use_count: u64,
    /// The removed states, if they are of interest.
    journal: Option<Vec<StateHandle>>,
}

struct StateEntry<V> {
    principal: Principal,
    lifetime: StateLifetime,
    created: Timestamp,
    used_at: Timestamp,
    last_use: u64,
    value: V,
}

impl<V> StateTable<V> {
    pub(crate) fn new(limits: StateLimits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            by_last_use: BTreeMap::new(),
            by_principal: HashMap::new(),
            use_count: 0,
            journal: None,
        }
    }

    /// Creates a table that records which states it removes.
    pub(crate) fn with_journal(limits: StateLimits) -> Self {
        Self { journal: Some(Vec::new()), ..Self::new(limits) }
    }

    pub(crate) fn take_removed(&mut self) -> Vec<StateHandle> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn used_at(&self, handle: StateHandle) -> Option<Timestamp> {
        self.entries.get(&handle).map(|entry| entry.used_at)
    }

    pub(crate) fn handles(&self) -> Vec<StateHandle> {
        self.entries.keys().copied().collect()
    }

    pub(crate) fn limits(&self) -> &StateLimits {
        &self.limits
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a state; returns the evicted and expired values, so that they can be dropped outside of the lock.
    pub(crate) fn insert(
        &mut self,
        handle: StateHandle,
        principal: &Principal,
        lifetime: StateLifetime,
        value: V,
        now: Timestamp,
    ) -> Vec<V> {
        let mut removed = self.expire_up_to(EXPIRY_CHECKS_PER_CREATE, now);
        if self.limits.total == 0 || self.limits.per_principal == 0 {
            removed.push(value);
            return removed;
        }
        removed.extend(self.remove(handle));
        if let Some(own) =
            self.by_principal.get(principal).filter(|own| own.len() >= self.limits.per_principal)
        {
            let oldest = own.values().next().copied();
            removed.extend(oldest.and_then(|oldest| self.remove(oldest)));
        }
        if self.entries.len() >= self.limits.total {
            let oldest = self.by_last_use.values().next().copied();
            removed.extend(oldest.and_then(|oldest| self.remove(oldest)));
        }
        let turn = self.next_use();
        let entry = StateEntry {
            principal: principal.clone(),
            lifetime,
            created: now,
            used_at: now,
            last_use: turn,
            value,
        };
        self.by_last_use.insert(turn, handle);
        if matches!(principal, Principal::Named(_)) {
            self.by_principal.entry(principal.clone()).or_default().insert(turn, handle);
        }
        self.entries.insert(handle, entry);
        removed
    }

    /// Finds an unexpired state of the principal, and records a use of it.
    pub(crate) fn get_and_touch(
        &mut self,
        handle: StateHandle,
        principal: &Principal,
        now: Timestamp,
    ) -> Option<&mut V> {
        let entry = self.entries.get(&handle)?;
        if entry.principal != *principal || is_expired(&self.limits, entry, now) {
            return None;
        }
        let turn = self.next_use();
        let entry = self.entries.get_mut(&handle)?;
        self.by_last_use.remove(&entry.last_use);
        self.by_last_use.insert(turn, handle);
        if let Some(own) = self.by_principal.get_mut(&entry.principal) {
            own.remove(&entry.last_use);
            own.insert(turn, handle);
        }
        entry.last_use = turn;
        // The clock can step back, which does not shorten a state's lifetime.
        entry.used_at = entry.used_at.max(now);
        Some(&mut entry.value)
    }

    /// Removes a state of the principal.
    pub(crate) fn remove_owned(&mut self, handle: StateHandle, principal: &Principal) -> Option<V> {
        let is_owner = self.entries.get(&handle).is_some_and(|entry| entry.principal == *principal);
        if is_owner { self.remove(handle) } else { None }
    }

    /// Removes a state of any principal.
    pub(crate) fn remove(&mut self, handle: StateHandle) -> Option<V> {
        let entry = self.entries.remove(&handle)?;
        if let Some(journal) = &mut self.journal {
            journal.push(handle);
        }
        self.by_last_use.remove(&entry.last_use);
        if let Entry::Occupied(mut own) = self.by_principal.entry(entry.principal) {
            own.get_mut().remove(&entry.last_use);
            if own.get().is_empty() {
                own.remove();
            }
        }
        Some(entry.value)
    }

    /// Removes the expired states, in the order of their last use.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<V> {
        self.expire_up_to(usize::MAX, now)
    }

    /// Checks the least recently used states, and removes the expired ones.
    fn expire_up_to(&mut self, checks: usize, now: Timestamp) -> Vec<V> {
        let idle_before =
            |entry: &StateEntry<V>| now.since(entry.used_at) >= self.limits.idle.min(self.limits.absolute);
        let due = self.by_last_use.values().take(checks);
        // Later uses have later times, so no state after the first recently used one is idle.
        let due = due.take_while(|handle| self.entries.get(handle).is_some_and(idle_before));
        let expired = due.filter(|handle| {
            self.entries.get(handle).is_some_and(|entry| is_expired(&self.limits, entry, now))
        });
        let expired: Vec<StateHandle> = expired.copied().collect();
        expired.into_iter().filter_map(|handle| self.remove(handle)).collect()
    }

    fn next_use(&mut self) -> u64 {
        self.use_count += 1;
        self.use_count
    }
}

impl StateTable<StoredState> {
    pub(crate) fn snapshot(&self, handle: StateHandle) -> Option<StateSnapshot> {
        let StateEntry { principal, lifetime, created, used_at, value, .. } = self.entries.get(&handle)?;
        let (principal, lifetime, version) = (principal.clone(), *lifetime, value.version);
        let record = StateRecord { handle, principal, lifetime, value: value.value.clone() };
        Some(StateSnapshot { record, version, created: *created, used_at: *used_at })
    }

    pub(crate) fn restore(&mut self, snapshot: StateSnapshot) {
        let StateSnapshot { record, version, created, used_at } = snapshot;
        let value = StoredState { value: record.value, version };
        self.insert(record.handle, &record.principal, record.lifetime, value, used_at);
        if let Some(entry) = self.entries.get_mut(&record.handle) {
            entry.created = created;
        }
    }
}

fn is_expired<V>(limits: &StateLimits, entry: &StateEntry<V>, now: Timestamp) -> bool {
    let idle = entry.lifetime == StateLifetime::Idle && now.since(entry.used_at) >= limits.idle;
    idle || now.since(entry.created) >= limits.absolute
}
