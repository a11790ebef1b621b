use dashmap::{DashMap, Entry};
use trunkline_session::Principal;

/// The running calls of each named principal.
///
/// The anonymous principal and the process are many callers in one, and are not counted: for them only the total
/// holds.
#[derive(Debug)]
pub(crate) struct CallQuota {
    max: usize,
    /// Only principals with running calls.
    running: DashMap<Principal, usize>,
}

/// A principal has reached its limit of running calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallQuotaExceeded;

impl CallQuota {
    pub(crate) fn new(most: usize) -> Self {
        Self { max: most, running: DashMap::new() }
    }

    /// Counts one more call; returns the principal that it counts for, to be released when the call is over.
    ///
    /// # Errors
    /// [`CallQuotaExceeded`].
    pub(crate) fn acquire(&self, principal: &Principal) -> Result<Option<Principal>, CallQuotaExceeded> {
        if !matches!(principal, Principal::Named(_)) {
            return Ok(None);
        }
        match self.running.entry(principal.clone()) {
            Entry::Occupied(mut running) if *running.get() < self.max => *running.get_mut() += 1,
            Entry::Vacant(none) if self.max > 0 => drop(none.insert(1)),
            Entry::Occupied(_) | Entry::Vacant(_) => return Err(CallQuotaExceeded),
        }
        Ok(Some(principal.clone()))
    }

    /// Counts one call less.
    pub(crate) fn release(&self, principal: &Principal) {
        self.running.remove_if_mut(principal, |_, running| {
            *running = running.saturating_sub(1);
            *running == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_quota_limits_each_named_principal_and_is_released() {
        let callers = CallQuota::new(2);
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        for _ in 0..2 {
            assert_eq!(callers.acquire(&ann), Ok(Some(ann.clone())));
        }
        assert_eq!(callers.acquire(&ann), Err(CallQuotaExceeded));
        assert_eq!(callers.acquire(&bob), Ok(Some(bob.clone())));
        for anybody in [Principal::Anonymous, Principal::Process] {
            for _ in 0..10 {
                assert_eq!(callers.acquire(&anybody), Ok(None));
            }
        }
        callers.release(&ann);
        assert_eq!(callers.acquire(&ann), Ok(Some(ann.clone())));
        for leaving in [&ann, &ann, &bob] {
            callers.release(leaving);
        }
        assert!(callers.running.is_empty());
    }

    #[test]
    fn call_quota_of_zero_leaves_no_entry() {
        let callers = CallQuota::new(0);
        assert_eq!(callers.acquire(&Principal::Named("ann".into())), Err(CallQuotaExceeded));
        assert!(callers.running.is_empty());
    }
}
