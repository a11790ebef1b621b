use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::{DashMap, Entry};
use trunkline_session::Principal;

use crate::party::ClientParty;

/// Limits how many items each key holds, and how many all hold together. Clones count together.
pub(crate) struct KeyQuota<K: Eq + Hash> {
    counts: Arc<KeyCounts<K>>,
    max_per_key: usize,
    max_total: usize,
}

struct KeyCounts<K> {
    total: AtomicUsize,
    /// Only keys that hold something.
    by_key: DashMap<K, usize>,
}

/// One counted item, until it is dropped.
pub(crate) struct KeyPermit<K: Eq + Hash> {
    counts: Arc<KeyCounts<K>>,
    /// The key that it counts for; `None` if it counts in the total alone.
    key: Option<K>,
}

impl<K: Clone + Eq + Hash> KeyQuota<K> {
    /// Makes a quota for each key, without a limit on the total.
    pub(crate) fn new(max_per_key: usize) -> Self {
        Self {
            counts: Arc::new(KeyCounts { total: AtomicUsize::new(0), by_key: DashMap::new() }),
            max_per_key,
            max_total: usize::MAX,
        }
    }

    /// Sets a limit on the items of all keys together.
    #[must_use]
    pub(crate) fn with_total(self, max_total: usize) -> Self {
        Self { max_total, ..self }
    }

    /// Counts one more item for a key; `None` if that would exceed a limit.
    pub(crate) fn acquire(&self, key: K) -> Option<KeyPermit<K>> {
        self.acquire_within(Some(key), self.max_per_key)
    }

    /// Counts one more item for a key that has a limit of its own.
    pub(crate) fn acquire_up_to(&self, key: K, max: usize) -> Option<KeyPermit<K>> {
        self.acquire_within(Some(key), max)
    }

    fn acquire_within(&self, key: Option<K>, max: usize) -> Option<KeyPermit<K>> {
        let within = |total: usize| (total < self.max_total).then_some(total + 1);
        self.counts.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).ok()?;
        // It gives the total back if the key is at its limit.
        let mut permit = KeyPermit { counts: self.counts.clone(), key: None };
        if let Some(key) = key {
            match self.counts.by_key.entry(key.clone()) {
                Entry::Occupied(mut held) if *held.get() < max => *held.get_mut() += 1,
                Entry::Vacant(none) if max > 0 => drop(none.insert(1)),
                Entry::Occupied(_) | Entry::Vacant(_) => return None,
            }
            permit.key = Some(key);
        }
        Some(permit)
    }

    /// Reports whether nothing is counted.
    #[cfg(test)]
    pub(crate) fn is_unused(&self) -> bool {
        self.counts.total.load(Ordering::Relaxed) == 0 && self.counts.by_key.is_empty()
    }
}

impl KeyQuota<Principal> {
    /// Counts one more item of a principal.
    ///
    /// The anonymous principal and the process are many callers in one, so that only the total holds for them.
    pub(crate) fn acquire_for(&self, principal: &Principal) -> Option<KeyPermit<Principal>> {
        let named = matches!(principal, Principal::Named(_)).then(|| principal.clone());
        self.acquire_within(named, self.max_per_key)
    }
}

impl KeyQuota<ClientParty> {
    /// Counts one more item of a party, of which a host has a limit of its own. The items of clients that are no party of
    /// their own count in the total alone.
    pub(crate) fn acquire_for_party(
        &self,
        party: &ClientParty,
        max_per_host: usize,
    ) -> Option<KeyPermit<ClientParty>> {
        let max = match party {
            ClientParty::Principal(_) => self.max_per_key,
            ClientParty::Address(_) => max_per_host,
        };
        self.acquire_within(party.is_distinct().then(|| party.clone()), max)
    }
}

impl<K: Eq + Hash> Clone for KeyQuota<K> {
    fn clone(&self) -> Self {
        Self { counts: self.counts.clone(), ..*self }
    }
}

impl<K: Eq + Hash> Drop for KeyPermit<K> {
    fn drop(&mut self) {
        self.counts.total.fetch_sub(1, Ordering::Relaxed);
        let Some(key) = &self.key else { return };
        self.counts.by_key.remove_if_mut(key, |_, held| {
            *held = held.saturating_sub(1);
            *held == 0
        });
    }
}

impl<K: Eq + Hash> fmt::Debug for KeyQuota<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyQuota")
            .field("max_per_key", &self.max_per_key)
            .field("total", &self.counts.total)
            .finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> fmt::Debug for KeyPermit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPermit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principals() -> (Principal, Principal) {
        (Principal::Named("ann".into()), Principal::Named("bob".into()))
    }

    #[test]
    fn quota_limits_each_principal_and_the_total() {
        let quota = KeyQuota::new(2).with_total(3);
        let (ann, bob) = principals();
        let first = quota.acquire_for(&ann).unwrap();
        let _second = quota.acquire_for(&ann).unwrap();
        assert!(quota.acquire_for(&ann).is_none(), "ann has her share");
        let _third = quota.acquire_for(&bob).unwrap();
        assert!(quota.acquire_for(&Principal::Anonymous).is_none(), "the total is reached");
        drop(first);
        assert!(quota.acquire_for(&Principal::Anonymous).is_some());
        assert!(quota.acquire_for(&ann).is_some());
        assert_eq!(quota.counts.total.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn quota_limits_only_named_principals_and_is_released() {
        let quota = KeyQuota::new(2);
        let (ann, bob) = principals();
        let mut held: Vec<_> = (0..2).map(|_| quota.acquire_for(&ann).unwrap()).collect();
        assert!(quota.acquire_for(&ann).is_none());
        held.push(quota.acquire_for(&bob).unwrap());
        for many in [Principal::Anonymous, Principal::Process] {
            held.extend((0..10).map(|_| quota.acquire_for(&many).unwrap()));
        }
        drop(held.remove(0));
        held.push(quota.acquire_for(&ann).unwrap());
        drop(held);
        assert!(quota.is_unused());
    }

    #[test]
    fn quota_of_zero_leaves_no_entry() {
        let quota = KeyQuota::new(0);
        assert!(quota.acquire("ann").is_none());
        assert!(quota.is_unused());
        assert!(quota.acquire_up_to("ann", 1).is_some(), "a key with a limit of its own");
        assert!(quota.is_unused());
    }
}
