//! The views of callers under access rules: of each view, the part that a class of callers may see.
//!
//! # Invariants
//!
//! - A caller is notified only of changes to what it may see: `list_change_of_a_denied_server_is_not_announced`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_server::CallerIdentity;

use super::RegistrySnapshot;
use super::views::{CallerView, ListVersions, VersionCounter};
use crate::access::{AccessCache, AccessClass, AccessRules, CallerAccess};
use crate::registry::ListDifferences;
use crate::upstream::ListingKey;

/// The most restricted views; beyond it the least recently used one is dropped.
pub(super) const MAX_RESTRICTED_VIEWS: usize = 256;

/// The access rules, and the views under them.
#[derive(Clone, Debug)]
pub(super) struct RestrictedViews {
    cache: Arc<AccessCache>,
    views: HashMap<RestrictedKey, RestrictedView>,
    clock: Arc<AtomicU64>,
}

/// Selects a restricted view: the lists of one key, or the union of all, and what of them.
#[derive(Clone, Debug)]
pub(super) struct RestrictedCaller {
    pub(super) listing: Option<ListingKey>,
    pub(super) access: Arc<CallerAccess>,
}

type RestrictedKey = (Option<ListingKey>, AccessClass);

#[derive(Clone, Debug)]
struct RestrictedView {
    view: CallerView,
    access: Arc<CallerAccess>,
    last_used: Arc<AtomicU64>,
}

impl RestrictedViews {
    /// Makes the set for some rules; `None` without any, since then every caller sees everything.
    pub(super) fn new(rules: &AccessRules) -> Option<Self> {
        let cache = Arc::new(AccessCache::new(rules.clone()));
        (!rules.is_empty()).then(|| Self { cache, views: HashMap::new(), clock: Arc::default() })
    }

    /// Returns the same rules without any views, for callers with other servers.
    pub(super) fn without_views(&self) -> Self {
        Self { views: HashMap::new(), ..self.clone() }
    }

    pub(super) fn rules(&self) -> &AccessRules {
        self.cache.rules()
    }

    /// Returns what a caller may use.
    pub(super) fn access_of(&self, caller: CallerIdentity<'_>) -> Arc<CallerAccess> {
        self.cache.access_of(caller)
    }

    /// Returns the view of a caller, if it was built.
    pub(super) fn view_for(&self, caller: &RestrictedCaller) -> Option<&CallerView> {
        if !caller.access.is_under(self.rules()) {
            return None;
        }
        let found = self.views.get(&caller.key())?;
        found.last_used.store(self.tick(), Ordering::Relaxed);
        Some(&found.view)
    }

    /// Returns the versions of all views.
    pub(super) fn versions(&self) -> impl Iterator<Item = ListVersions> {
        self.views.values().map(|known| known.view.versions)
    }

    /// Rebuilds every view and optionally one more, from the unrestricted ones; returns the lists that differ for any
    /// caller.
    pub(super) fn rebuild(
        &self,
        base: impl Fn(Option<ListingKey>) -> Arc<RegistrySnapshot>,
        added: Option<&RestrictedCaller>,
        counter: &VersionCounter,
    ) -> (Self, ListDifferences) {
        let mut differs = ListDifferences::default();
        let mut next = Self { views: HashMap::new(), ..self.clone() };
        for (key, known) in &self.views {
            let registry = restrict(&base(key.0), &known.access);
            let (view, changed) = CallerView::next(Some(&known.view), registry, counter);
            differs = differs.union(changed);
            next.views.insert(key.clone(), RestrictedView { view, ..known.clone() });
        }
        // The rules may have been replaced since they were evaluated for the caller.
        let added = added.filter(|added| added.access.is_under(self.rules()));
        if let Some(added) = added.filter(|added| !self.views.contains_key(&added.key())) {
            let registry = restrict(&base(added.listing), &added.access);
            let (view, _) = CallerView::next(None, registry, counter);
            next.evict_least_recently_used();
            let last_used = Arc::new(AtomicU64::new(next.tick()));
            next.views.insert(added.key(), RestrictedView { view, access: added.access.clone(), last_used });
        }
        (next, differs)
    }

    fn evict_least_recently_used(&mut self) {
        if self.views.len() < MAX_RESTRICTED_VIEWS {
            return;
        }
        let oldest = self.views.iter().min_by_key(|(_, known)| known.last_used.load(Ordering::Relaxed));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.views.remove(&key);
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

impl RestrictedCaller {
    fn key(&self) -> RestrictedKey {
        (self.listing, self.access.class().clone())
    }
}

fn restrict(base: &RegistrySnapshot, access: &Arc<CallerAccess>) -> Arc<RegistrySnapshot> {
    Arc::new(base.restricted(access, |server| server.name().as_str()))
}
