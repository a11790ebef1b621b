use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::{DashMap, Entry};

use crate::party::ClientParty;

/// A bound on bytes that all callers hold together.
///
/// One party may hold as many bytes as it leaves free: alone half of them, and each of two a third. So one that never
/// releases what it holds leaves a share for the next.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    max: usize,
    used: AtomicUsize,
    /// What each party holds; only those that hold something.
    by_party: DashMap<ClientParty, usize>,
}

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct BytePermit {
    budget: Arc<ByteBudget>,
    /// The party that it counts for; `None` if only the total matters.
    party: Option<ClientParty>,
    bytes: usize,
}

impl ByteBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0), by_party: DashMap::new() })
    }

    /// Makes an empty permit.
    pub(crate) fn permit(self: &Arc<Self>) -> BytePermit {
        self.permit_of(None)
    }

    fn permit_of(self: &Arc<Self>, party: Option<ClientParty>) -> BytePermit {
        BytePermit { budget: self.clone(), party, bytes: 0 }
    }

    /// Makes an empty permit of a party; clients that are no party of their own share the whole budget.
    pub(crate) fn permit_for(self: &Arc<Self>, party: &ClientParty) -> BytePermit {
        self.permit_of(party.is_distinct().then(|| party.clone()))
    }

    /// Takes bytes, if as many as `free` are free afterwards.
    fn take(&self, more: usize, free: usize) -> bool {
        let within = |used: usize| {
            let used = used.checked_add(more)?;
            (self.max.checked_sub(used)? >= free).then_some(used)
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    /// Returns how many bytes are taken now.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl BytePermit {
    /// Returns how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more bytes; returns false, and takes none, if the budget has not as many, or its party would hold more than
    /// it leaves free.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let is_taken = match &self.party {
            None => self.budget.take(more, 0),
            Some(party) => match self.budget.by_party.entry(party.clone()) {
                Entry::Occupied(mut held) => {
                    let all = held.get().saturating_add(more);
                    let is_taken = self.budget.take(more, all);
                    *held.get_mut() += if is_taken { more } else { 0 };
                    is_taken
                }
                Entry::Vacant(none) => {
                    let is_taken = self.budget.take(more, more);
                    if is_taken {
                        none.insert(more);
                    }
                    is_taken
                }
            },
        };
        self.bytes += if is_taken { more } else { 0 };
        is_taken
    }

    /// Gives bytes back, at most all that it holds.
    pub(crate) fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
        if let Some(party) = &self.party {
            self.budget.by_party.remove_if_mut(party, |_, held| {
                *held = held.saturating_sub(less);
                *held == 0
            });
        }
    }

    /// Gives back what it holds beyond a number of bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use trunkline_session::Principal;

    use super::*;

    #[test]
    fn budget_is_taken_and_given_back_by_its_permits() {
        let budget = ByteBudget::new(20);
        let (mut one, mut other) = (budget.permit(), budget.permit());
        assert!(one.grow(10) && other.grow(10));
        assert!(!one.grow(1) && !other.grow(usize::MAX));
        one.shrink(4);
        assert_eq!((budget.used(), one.bytes()), (16, 6));
        assert!(other.grow(4));
        one.shrink(usize::MAX);
        assert_eq!(budget.used(), 14);
        drop(other);
        assert!(one.grow(20));
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn party_leaves_as_many_bytes_to_others_as_it_holds() {
        let budget = ByteBudget::new(12);
        let party = |host: u8| ClientParty::new(&Principal::Anonymous, Some([192, 0, 2, host].into()));
        let mut taken = Vec::new();
        let mut permits = Vec::new();
        for host in 1..=4 {
            // Each in many permits, and until no more is to be had.
            let before = budget.used();
            loop {
                let mut permit = budget.permit_for(&party(host));
                if !permit.grow(1) {
                    break;
                }
                permits.push(permit);
            }
            taken.push(budget.used() - before);
        }
        assert_eq!(taken, [6, 3, 1, 1]);
        // Clients that are no party of their own may use all of it.
        let mut many = budget.permit_for(&ClientParty::new(&Principal::Anonymous, None));
        assert!(many.grow(1) && !many.grow(1));
        drop(permits);
        assert!(budget.by_party.is_empty());
        let mut again = budget.permit_for(&party(1));
        assert!(!again.grow(6) && again.grow(5));
        again.shrink_to(1);
        assert!(again.grow(4));
        drop((again, many));
        assert_eq!((budget.used(), budget.by_party.len()), (0, 0));
    }
}
