//! What callers see: one registry for each era and set of capabilities, since what a server lists may depend on them.
//!
//! Callers for whom every server lists the same share one registry, which is the usual case. Each view has a number for each
//! of its lists, which changes when the list does: a client is notified of a change only if what it was shown has another
//! number now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::Method;
use trunkline_server::ServerChange;

use super::RegistrySnapshot;
use crate::options::HubOptions;
use crate::registry::{HubRegistry, ListDifferences, UpstreamOffer};
use crate::upstream::{ListingKey, Upstream};

/// The registries of one moment.
#[derive(Debug, Default)]
pub(crate) struct CallerViews {
    /// What all callers see together, for whatever does not depend on a caller.
    pub(super) union: Arc<RegistrySnapshot>,
    pub(super) union_versions: ListVersions,
    by_caller: Vec<(ListingKey, CallerView)>,
    /// Whether all callers see the same.
    is_uniform: bool,
}

/// What callers of one era with one set of capabilities see.
#[derive(Clone, Debug)]
pub(super) struct CallerView {
    pub(super) registry: Arc<RegistrySnapshot>,
    pub(super) versions: ListVersions,
}

/// The numbers of the lists of one view, each unique among all views of all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListVersions {
    pub(super) tools: u64,
    pub(super) prompts: u64,
    pub(super) resources: u64,
}

impl ListVersions {
    /// Gives new numbers to the lists that are different.
    fn next(self, differs: ListDifferences, counter: &VersionCounter) -> Self {
        let next = |differs: bool, version: u64| if differs { counter.next() } else { version };
        Self {
            tools: next(differs.tools, self.tools),
            prompts: next(differs.prompts, self.prompts),
            resources: next(differs.resources, self.resources),
        }
    }

    /// Returns the list that a method shows, and its number.
    pub(super) fn version_of(self, method: Method) -> (ServerChange, u64) {
        match method {
            Method::ToolsList => (ServerChange::Tools, self.tools),
            Method::PromptsList => (ServerChange::Prompts, self.prompts),
            _ => (ServerChange::Resources, self.resources),
        }
    }
}

/// Gives out numbers of lists.
#[derive(Debug, Default)]
pub(super) struct VersionCounter(AtomicU64);

impl VersionCounter {
    /// Returns the next number; the first is 1.
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl CallerViews {
    /// Returns what a caller sees, if callers like it were ever served.
    pub(super) fn view_for(&self, caller: ListingKey) -> Option<&CallerView> {
        self.by_caller.iter().find(|(known, _)| *known == caller).map(|(_, view)| view)
    }

    /// Returns the registry for a call, whose caller is looked at only where that makes a difference.
    pub(super) fn for_call(&self, caller: impl FnOnce() -> ListingKey) -> &Arc<RegistrySnapshot> {
        if self.is_uniform {
            return &self.union;
        }
        self.view_for(caller()).map_or(&self.union, |view| &view.registry)
    }

    /// Reports whether a client was shown a list that is no longer what its view, or the union, has.
    pub(super) fn is_outdated(&self, version: u64, list: impl Fn(ListVersions) -> u64) -> bool {
        let versions = self.by_caller.iter().map(|(_, view)| view.versions);
        !versions.chain([self.union_versions]).any(|known| list(known) == version)
    }

    /// Makes the registries anew, for the callers that were served and perhaps one more; returns which lists are different
    /// for any of them.
    pub(super) fn rebuild(
        &self,
        servers: &[Arc<Upstream>],
        options: &HubOptions,
        added: Option<ListingKey>,
        counter: &VersionCounter,
    ) -> (Self, ListDifferences) {
        let mut built = RegistryBuilder { options, registries: Vec::new() };
        let union = built.registry(servers, None);
        let mut differs = union.diff(&self.union);
        let union_versions = self.union_versions.next(differs, counter);
        let callers = self.by_caller.iter().map(|(caller, _)| *caller);
        let added = added.filter(|added| self.view_for(*added).is_none());
        let by_caller: Vec<_> = callers
            .chain(added)
            .map(|caller| {
                let registry = built.registry(servers, Some(caller));
                let (view, changed) = CallerView::next(self.view_for(caller), registry, counter);
                differs = differs.union(changed);
                (caller, view)
            })
            .collect();
        let is_uniform = by_caller.iter().all(|(_, view)| Arc::ptr_eq(&view.registry, &union));
        (Self { union, union_versions, by_caller, is_uniform }, differs)
    }
}

impl CallerView {
    /// Makes the next view of the same callers, whose lists keep their numbers as far as they are the same.
    fn next(
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

/// The registries that were made so far, each with what it was made of.
struct RegistryBuilder<'o> {
    options: &'o HubOptions,
    registries: Vec<(UpstreamOffers, Arc<RegistrySnapshot>)>,
}

impl RegistryBuilder<'_> {
    /// Makes a registry, or returns the one that was made of the same.
    fn registry(&mut self, servers: &[Arc<Upstream>], caller: Option<ListingKey>) -> Arc<RegistrySnapshot> {
        let offers: UpstreamOffers = servers.iter().filter_map(|server| server.offer(caller)).collect();
        let same = |known: &[UpstreamOffer<Arc<Upstream>>]| {
            known.len() == offers.len()
                && known.iter().zip(&offers).all(|(left, right)| {
                    Arc::ptr_eq(&left.owner, &right.owner) && Arc::ptr_eq(&left.catalogue, &right.catalogue)
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
