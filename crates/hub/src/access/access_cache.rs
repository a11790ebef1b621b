use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use trunkline_server::{AccessGrant, CallerIdentity};
use trunkline_session::Principal;

use super::{AccessRules, CallerAccess};

/// The maximum of cached callers; when full, entries with expired credentials are evicted, and then all.
const MAX_CACHED_CALLERS: usize = 4096;

/// The rules with the access of recent callers, so that patterns and claims are not read again for each call.
#[derive(Debug, Default)]
pub(crate) struct AccessCache {
    rules: AccessRules,
    callers: RwLock<HashMap<CallerKey, CachedAccess>>,
}

/// A principal, and the pointer of its access grant.
type CallerKey = (Principal, usize);

#[derive(Debug)]
struct CachedAccess {
    /// Keeps the address from being used again.
    grant: Option<Weak<AccessGrant>>,
    access: Arc<CallerAccess>,
}

impl AccessCache {
    pub(crate) fn new(rules: AccessRules) -> Self {
        Self { rules, callers: RwLock::default() }
    }

    pub(crate) fn rules(&self) -> &AccessRules {
        &self.rules
    }

    /// Returns what a caller may use.
    pub(crate) fn access_of(&self, caller: CallerIdentity<'_>) -> Arc<CallerAccess> {
        let address = caller.grant.map_or(0, |grant| Arc::as_ptr(grant).addr());
        let key = (caller.principal.clone(), address);
        if let Some(cached) = self.callers.read().get(&key) {
            return cached.access.clone();
        }
        let access = Arc::new(self.rules.for_caller(caller));
        let mut callers = self.callers.write();
        if callers.len() >= MAX_CACHED_CALLERS {
            callers.retain(|_, cached| cached.grant.as_ref().is_none_or(|grant| grant.strong_count() > 0));
            if callers.len() >= MAX_CACHED_CALLERS {
                callers.clear();
            }
        }
        let grant = caller.grant.map(Arc::downgrade);
        callers.insert(key, CachedAccess { grant, access: access.clone() });
        access
    }
}

#[cfg(test)]
mod tests {
    use trunkline_config::{AccessAction, AccessRule};

    use super::*;

    #[test]
    fn cached_callers_are_bounded_and_never_confused() {
        let mut rule = AccessRule::new(AccessAction::Allow);
        rule.scope = trunkline_config::PatternList::new(["a"]);
        let cache = AccessCache::new(AccessRules::new([rule]));
        let mut grants = Vec::new();
        for n in 0..MAX_CACHED_CALLERS * 2 {
            let scope = if n % 2 == 0 { "a" } else { "b" };
            let grant = Arc::new(AccessGrant::new().with_scopes([scope]));
            let principal = Principal::Named("ann".into());
            let access = cache.access_of(CallerIdentity::new(&principal, Some(&grant)));
            let expected = cache.rules().for_caller(CallerIdentity::new(&principal, Some(&grant)));
            assert_eq!(access.class(), expected.class(), "{n}");
            if n % 3 == 0 {
                grants.push(grant);
            }
            assert!(cache.callers.read().len() <= MAX_CACHED_CALLERS);
        }
    }
}
