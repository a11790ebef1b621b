//! Bags of any kind in memory: each for its principal, within the limits, the least recently used first to go.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::{Principal, StateHandle, StateLimits, Timestamp};

/// What ends a bag beside its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLifetime {
    /// It ends when it was not used for a while.
    Idle,
    /// It lasts as long as a session, whose end forgets it.
    Session,
}

/// How many bags `create` looks at for ones that are over, so that a table without a sweeper does not keep them for ever.
const EXPIRY_CHECKS_PER_CREATE: usize = 8;

/// The bags and their indexes, which change only together.
pub(crate) struct StateTable<V> {
    limits: StateLimits,
    entries: HashMap<StateHandle, StateEntry<V>>,
    /// Every bag by the turn in which it was last used.
    by_last_use: BTreeMap<u64, StateHandle>,
    /// The same for each principal that is one party.
    by_principal: HashMap<Principal, BTreeMap<u64, StateHandle>>,
    use_count: u64,
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
        }
    }

    pub(crate) fn limits(&self) -> &StateLimits {
        &self.limits
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a bag; returns what had to go for it, so that it can be dropped where no lock is held.
    pub(crate) fn insert(
        &mut self,
        handle: StateHandle,
        principal: &Principal,
        lifetime: StateLifetime,
        value: V,
        now: Timestamp,
    ) -> Vec<V> {
        let mut gone = self.expire_up_to(EXPIRY_CHECKS_PER_CREATE, now);
        if self.limits.total == 0 || self.limits.per_principal == 0 {
            gone.push(value);
            return gone;
        }
        gone.extend(self.remove(handle));
        if let Some(own) =
            self.by_principal.get(principal).filter(|own| own.len() >= self.limits.per_principal)
        {
            let oldest = own.values().next().copied();
            gone.extend(oldest.and_then(|oldest| self.remove(oldest)));
        }
        if self.entries.len() >= self.limits.total {
            let oldest = self.by_last_use.values().next().copied();
            gone.extend(oldest.and_then(|oldest| self.remove(oldest)));
        }
        let turn = self.next_use();
        let bag = StateEntry {
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
        self.entries.insert(handle, bag);
        gone
    }

    /// Finds a bag of the principal that is not over, and counts this as a use of it.
    pub(crate) fn get_and_touch(
        &mut self,
        handle: StateHandle,
        principal: &Principal,
        now: Timestamp,
    ) -> Option<&mut V> {
        let bag = self.entries.get(&handle)?;
        if bag.principal != *principal || is_expired(&self.limits, bag, now) {
            return None;
        }
        let turn = self.next_use();
        let bag = self.entries.get_mut(&handle)?;
        self.by_last_use.remove(&bag.last_use);
        self.by_last_use.insert(turn, handle);
        if let Some(own) = self.by_principal.get_mut(&bag.principal) {
            own.remove(&bag.last_use);
            own.insert(turn, handle);
        }
        bag.last_use = turn;
        // The clock can step back, which does not shorten a bag's life.
        bag.used_at = bag.used_at.max(now);
        Some(&mut bag.value)
    }

    /// Removes a bag of the principal.
    pub(crate) fn remove_owned(&mut self, handle: StateHandle, principal: &Principal) -> Option<V> {
        let is_owner = self.entries.get(&handle).is_some_and(|bag| bag.principal == *principal);
        if is_owner { self.remove(handle) } else { None }
    }

    /// Removes a bag, whoever's it is.
    pub(crate) fn remove(&mut self, handle: StateHandle) -> Option<V> {
        let bag = self.entries.remove(&handle)?;
        self.by_last_use.remove(&bag.last_use);
        if let Entry::Occupied(mut own) = self.by_principal.entry(bag.principal) {
            own.get_mut().remove(&bag.last_use);
            if own.get().is_empty() {
                own.remove();
            }
        }
        Some(bag.value)
    }

    /// Removes the bags that are over, by the order of their last use.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<V> {
        self.expire_up_to(usize::MAX, now)
    }

    /// Looks at the bags that were not used for longest, and removes those that are over.
    fn expire_up_to(&mut self, looks: usize, now: Timestamp) -> Vec<V> {
        let idle_before =
            |bag: &StateEntry<V>| now.since(bag.used_at) >= self.limits.idle.min(self.limits.absolute);
        let due = self.by_last_use.values().take(looks);
        // Later uses have later times, so behind the first bag that was used lately nothing is idle.
        let due = due.take_while(|handle| self.entries.get(handle).is_some_and(idle_before));
        let over = due
            .filter(|handle| self.entries.get(handle).is_some_and(|bag| is_expired(&self.limits, bag, now)));
        let over: Vec<StateHandle> = over.copied().collect();
        over.into_iter().filter_map(|handle| self.remove(handle)).collect()
    }

    fn next_use(&mut self) -> u64 {
        self.use_count += 1;
        self.use_count
    }
}

fn is_expired<V>(limits: &StateLimits, bag: &StateEntry<V>, now: Timestamp) -> bool {
    let idle = bag.lifetime == StateLifetime::Idle && now.since(bag.used_at) >= limits.idle;
    idle || now.since(bag.created) >= limits.absolute
}
