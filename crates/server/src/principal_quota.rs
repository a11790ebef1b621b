use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_session::Principal;

/// Limits how many items each principal holds, so that no principal exceeds its quota.
///
/// The anonymous principal and the process are many callers in one, so that only the total holds for them.
#[derive(Clone, Debug)]
pub(crate) struct PrincipalQuota {
    counts: Arc<Mutex<QuotaCounts>>,
    max: usize,
    max_per_principal: usize,
}

#[derive(Debug, Default)]
struct QuotaCounts {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

impl PrincipalQuota {
    pub(crate) fn new(most: usize, most_per_principal: usize) -> Self {
        Self { counts: Arc::default(), max: most, max_per_principal: most_per_principal }
    }

    /// Counts one more until the permit is dropped; `None` if that would exceed a limit.
    pub(crate) fn acquire(&self, principal: &Principal) -> Option<QuotaPermit> {
        let mut held = self.lock();
        if held.total >= self.max {
            return None;
        }
        let named = matches!(principal, Principal::Named(_)).then(|| principal.clone());
        if let Some(name) = &named {
            let count = held.by_principal.entry(name.clone()).or_default();
            if *count >= self.max_per_principal {
                return None;
            }
            *count += 1;
        }
        held.total += 1;
        Some(QuotaPermit { quota: self.clone(), principal: named })
    }

    fn lock(&self) -> MutexGuard<'_, QuotaCounts> {
        self.counts.lock()
    }
}

/// One counted item.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    quota: PrincipalQuota,
    principal: Option<Principal>,
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut held = self.quota.lock();
        held.total -= 1;
        if let Some(name) = &self.principal
            && let Some(count) = held.by_principal.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                held.by_principal.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_limits_each_principal_and_the_total() {
        let quota = PrincipalQuota::new(3, 2);
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        let first = quota.acquire(&ann).unwrap();
        let _second = quota.acquire(&ann).unwrap();
        assert!(quota.acquire(&ann).is_none(), "ann has her share");
        let _third = quota.acquire(&bob).unwrap();
        assert!(quota.acquire(&Principal::Anonymous).is_none(), "the total is reached");
        drop(first);
        assert!(quota.acquire(&Principal::Anonymous).is_some());
        assert!(quota.acquire(&ann).is_some());
        assert_eq!(quota.lock().total, 2);
    }
}
