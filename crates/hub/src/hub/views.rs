//! The callers' views: one registry for each era and set of capabilities, since a server's lists may depend on them.
//!
//! Callers with the same listings of every server share one registry, which is the usual case. Each view has a
//! version for each of its lists, which changes with the list: a client is notified of a change only if the version
//! that it was shown is outdated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::Method;
use trunkline_server::ServerChange;

use super::RegistrySnapshot;
use super::restricted_views::{RestrictedCaller, RestrictedViews};
use crate::options::HubOptions;
use crate::registry::{HubRegistry, ListDifferences, UpstreamOffer};
use crate::upstream::{ListingKey, Upstream};

/// A snapshot of the registries of all callers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerViews {
    /// The union of all callers' views, for operations that do not depend on a caller.
    pub(super) union: Arc<RegistrySnapshot>,
    pub(super) union_versions: ListVersions,
    by_caller: Vec<(ListingKey, CallerView)>,
    /// Whether all callers see the same.
    is_uniform: bool,
    /// The views under access rules, if there are any: then no caller sees those above.
    pub(super) restricted: Option<RestrictedViews>,
}

/// The view of callers of one era with one set of capabilities.
#[derive(Clone, Debug)]
pub(super) struct CallerView {
    pub(super) registry: Arc<RegistrySnapshot>,
    pub(super) versions: ListVersions,
}

/// The versions of the lists of one view, each unique among all views that ever existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListVersions {
    pub(super) tools: u64,
    pub(super) prompts: u64,
    pub(super) resources: u64,
}

impl ListVersions {
    /// Assigns new versions to the lists that differ.
    fn next(self, differs: ListDifferences, counter: &VersionCounter) -> Self {
        let next = |differs: bool, version: u64| if differs { counter.next() } else { version };
        Self {
            tools: next(differs.tools, self.tools),
            prompts: next(differs.prompts, self.prompts),
            resources: next(differs.resources, self.resources),
        }
    }

    /// Returns the list that a method returns, and its version.
    pub(super) fn version_of(self, method: Method) -> (ServerChange, u64) {
        match method {
            Method::ToolsList => (ServerChange::Tools, self.tools),
            Method::PromptsList => (ServerChange::Prompts, self.prompts),
            _ => (ServerChange::Resources, self.resources),
        }
    }
}

/// Generates list versions.
#[derive(Debug, Default)]
pub(super) struct VersionCounter(AtomicU64);

impl VersionCounter {
    /// Returns the next version; the first is 1.
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl CallerViews {
    /// Sets the views under access rules.
    #[must_use]
    pub(super) fn with_restricted(self, restricted: Option<RestrictedViews>) -> Self {
        Self { restricted, ..self }
    }

    /// Keeps the restricted views if they are under these rules already, and begins without any otherwise.
    #[must_use]
    pub(super) fn under_rules(self, rules: Option<RestrictedViews>) -> Self {
        let is_same = match (&self.restricted, &rules) {
            (Some(before), Some(now)) => before.rules().is_same_as(now.rules()),
            (None, None) => true,
            _ => false,
        };
        if is_same { self } else { self.with_restricted(rules) }
    }

    /// Returns the view of a caller, if a caller with this key was ever served.
    pub(super) fn view_for(&self, caller: ListingKey) -> Option<&CallerView> {
        self.by_caller.iter().find(|(known, _)| *known == caller).map(|(_, view)| view)
    }

    /// Returns the registry for a call without access rules; the caller is evaluated only if the views differ.
    pub(super) fn for_call(&self, caller: impl FnOnce() -> ListingKey) -> &Arc<RegistrySnapshot> {
        if self.is_uniform {
            return &self.union;
        }
        self.view_for(caller()).map_or(&self.union, |view| &view.registry)
    }

    /// Reports whether a list version that a client was shown is that of no view any more.
    pub(super) fn is_outdated(&self, version: u64, list: impl Fn(ListVersions) -> u64) -> bool {
        if let Some(restricted) = &self.restricted {
            return !restricted.versions().any(|known| list(known) == version);
        }
        let versions = self.by_caller.iter().map(|(_, view)| view.versions);
        !versions.chain([self.union_versions]).any(|known| list(known) == version)
    }

    /// Rebuilds the registries, for the callers that were served and optionally one more; returns the lists that
    /// differ for any of them.
    pub(super) fn rebuild(
        &self,
        servers: &[Arc<Upstream>],
        options: &HubOptions,
        added: &AddedView,
        counter: &VersionCounter,
    ) -> (Self, ListDifferences) {
        let mut built = RegistryBuilder { options, registries: Vec::new() };
        let union = built.registry(servers, None);
        let mut differs = union.diff(&self.union);
        let union_versions = self.union_versions.next(differs, counter);
        let callers = self.by_caller.iter().map(|(caller, _)| *caller);
        let added_listing = added.listing().filter(|added| self.view_for(*added).is_none());
        let by_caller: Vec<_> = callers
            .chain(added_listing)
            .map(|caller| {
                let registry = built.registry(servers, Some(caller));
                let (view, changed) = CallerView::next(self.view_for(caller), registry, counter);
                differs = differs.union(changed);
                (caller, view)
            })
            .collect();
        let is_uniform = by_caller.iter().all(|(_, view)| Arc::ptr_eq(&view.registry, &union));
        let mut next = Self { union, union_versions, by_caller, is_uniform, restricted: None };
        if let Some(restricted) = &self.restricted {
            let base = |listing: Option<ListingKey>| {
                let view = listing.and_then(|listing| next.view_for(listing));
                view.map_or_else(|| next.union.clone(), |view| view.registry.clone())
            };
            let (restricted, changed) = restricted.rebuild(base, added.restricted(), counter);
            next.restricted = Some(restricted);
            differs = differs.union(changed);
        }
        (next, differs)
    }
}

/// A view that is built for the first time.
#[derive(Debug)]
pub(super) enum AddedView {
    /// None is.
    None,
    /// That of callers without access rules.
    Listing(ListingKey),
    /// That of callers under access rules.
    Restricted(RestrictedCaller),
}

impl AddedView {
    fn listing(&self) -> Option<ListingKey> {
        match self {
            Self::None => None,
            Self::Listing(listing) => Some(*listing),
            Self::Restricted(caller) => caller.listing,
        }
    }

    fn restricted(&self) -> Option<&RestrictedCaller> {
        match self {
            Self::Restricted(caller) => Some(caller),
            Self::None | Self::Listing(_) => None,
        }
    }
}

impl CallerView {
    /// Builds the next view of the same callers; unchanged lists keep their versions.
    pub(super) fn next(
        before: Option<&Self>,
        registry: Arc<RegistrySnapshot>,
        counter: &VersionCounter,
    ) -> (Self, ListDifferences) {
        let Some(before) = before else {
            let versions = ListVersions::default().next(ListDifferences::ALL, counter);
            return (Self { registry, versions }, ListDifferences::default());
        };
        let differs = registry.diff(&before.registry);
        (Self { registry, versions: before.versions.next(differs, counter) }, differs)
    }
}

type UpstreamOffers = Vec<UpstreamOffer<Arc<Upstream>>>;

/// The registries built so far, each with the offers that it was built from.
struct RegistryBuilder<'o> {
    options: &'o HubOptions,
    registries: Vec<(UpstreamOffers, Arc<RegistrySnapshot>)>,
}

impl RegistryBuilder<'_> {
    /// Builds a registry, or returns the one already built from the same offers.
    fn registry(&mut self, servers: &[Arc<Upstream>], caller: Option<ListingKey>) -> Arc<RegistrySnapshot> {
        let offers: UpstreamOffers = servers.iter().filter_map(|server| server.offer(caller)).collect();
        let same = |known: &[UpstreamOffer<Arc<Upstream>>]| {
            known.len() == offers.len()
                && known.iter().zip(&offers).all(|(left, right)| {
                    Arc::ptr_eq(&left.owner, &right.owner) && Arc::ptr_eq(&left.listing, &right.listing)
                })
        };
        if let Some((_, registry)) = self.registries.iter().find(|(known, _)| same(known)) {
            return registry.clone();
        }
        let registry =
            Arc::new(HubRegistry::build(&self.options.names, self.options.resource_tools, &offers));
        self.registries.push((offers, registry.clone()));
        registry
    }
}
