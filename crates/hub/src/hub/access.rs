//! The access rules of a hub, applied to lists, calls and subscriptions.

use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_config::ServerName;
use trunkline_protocol::{Method, Refusal};
use trunkline_server::{CallerIdentity, ChangeSubscriber, IncomingCall};

use super::lists::input_set_of;
use super::restricted_views::{RestrictedCaller, RestrictedViews};
use super::route::{RouteFuture, RouteOutcome};
use super::views::{AddedView, CallerView, CallerViews, ListVersions};
use super::{Hub, HubInner, LOCAL_LISTENER, RegistrySnapshot, SpaceRef};
use crate::access::{AccessDecision, AccessItem, AccessRules, CallerAccess};
use crate::names::ItemKind;
use crate::registry::ListDifferences;
use crate::upstream::{ListSet, ListingKey, Upstream};

impl Hub {
    /// Replaces the access rules. They count from the next request on; clients with lists that may differ are notified,
    /// and resource updates end for those that may not read the resource any more.
    pub fn set_access(&self, rules: &AccessRules) {
        let inner = &self.inner;
        {
            let _rebuilding = inner.rebuild_lock.lock();
            let before = inner.views.load();
            let is_same = match &before.restricted {
                Some(restricted) => restricted.rules().is_same_as(rules),
                None => rules.is_empty(),
            };
            if is_same {
                return;
            }
            let next = CallerViews::clone(&before).with_restricted(RestrictedViews::new(rules));
            inner.views.store(Arc::new(next));
        }
        inner.rebuild_spaces();
        inner.resubscribe.notify_one();
        inner.announcements.add(ListDifferences::ALL, ListSet::NONE);
    }

    /// Returns the current access rules.
    pub fn access(&self) -> AccessRules {
        let views = self.inner.views.load();
        views.restricted.as_ref().map(|restricted| restricted.rules().clone()).unwrap_or_default()
    }

    /// Decides whether a caller may use an item of the hub. A tool or a prompt is given by its exposed name, a resource
    /// by its URI. `None` if no server has the item, or the item has no server.
    pub fn access_to(
        &self,
        caller: CallerIdentity<'_>,
        method: Method,
        name: &str,
    ) -> Option<AccessDecision> {
        let views = self.inner.views.load();
        let access = views.restricted.as_ref().map(|restricted| restricted.access_of(caller));
        let decide = |item: AccessItem<'_>| match &access {
            Some(access) => access.decide(item),
            None => AccessDecision::Unrestricted,
        };
        let registry = &views.union;
        match method {
            Method::ToolsCall => registry.tools.get(name)?.access_item(server_name).map(decide),
            Method::PromptsGet => {
                let prompt = registry.prompts.get(name)?;
                Some(decide(prompt_item(&prompt.owner, &prompt.upstream_name)))
            }
            Method::ResourcesRead => Some(decide(resource_item(registry.owner_of(name)?, name))),
            _ => None,
        }
    }
}

impl HubInner {
    /// Returns what a caller may use; `None` without access rules.
    fn access_of(&self, caller: CallerIdentity<'_>) -> Option<Arc<CallerAccess>> {
        self.views.load().restricted.as_ref().map(|restricted| restricted.access_of(caller))
    }

    /// Returns what the caller of a request may use; `None` without access rules.
    pub(super) fn access_of_call(&self, call: &IncomingCall) -> Option<Arc<CallerAccess>> {
        let views = self.views.load();
        let restricted = views.restricted.as_ref()?;
        Some(call.context.with_caller(|caller| restricted.access_of(caller.identity())))
    }

    /// Answers a call under access rules.
    pub(super) fn call_restricted(
        self: &Arc<Self>,
        space: SpaceRef,
        views: &Arc<CallerViews>,
        call: IncomingCall,
    ) -> RouteFuture {
        let registry = self.view_for_call(&space, &call).registry;
        match self.route(&space, &registry, call) {
            RouteOutcome::Handled(answer) => answer,
            RouteOutcome::Unknown(call, refusal) => self.unlisted(&space, views, call, refusal),
            RouteOutcome::Incomplete(call) => self.completed_list(space, call),
        }
    }

    /// Returns the view of the caller of a request.
    pub(super) fn view_for_call(self: &Arc<Self>, space: &SpaceRef, call: &IncomingCall) -> CallerView {
        let listing = input_set_of(call);
        let restricted = self.restricted_view(space, Some(listing), || self.access_of_call(call));
        restricted.unwrap_or_else(|| self.view_of(space, listing))
    }

    /// Returns the union of all listings, as far as a caller may see it.
    pub(super) fn registry_of(self: &Arc<Self>, caller: CallerIdentity<'_>) -> Arc<RegistrySnapshot> {
        let space = self.space_of(caller.principal);
        let restricted = self.restricted_view(&space, None, || self.access_of(caller));
        restricted.map_or_else(|| self.views_in(&space).union.clone(), |view| view.registry)
    }

    /// Returns the versions of the lists that a new subscriber counts as having seen.
    pub(super) fn current_versions(self: &Arc<Self>, subscriber: Option<&ChangeSubscriber>) -> ListVersions {
        let subscriber = subscriber.unwrap_or(&LOCAL_LISTENER);
        let space = self.space_of(&subscriber.principal);
        let restricted = self.restricted_view(&space, None, || self.access_of(subscriber.identity()));
        restricted.map_or_else(|| self.views_in(&space).union_versions, |view| view.versions)
    }

    /// Returns the view under the access rules; `None` without any.
    fn restricted_view(
        self: &Arc<Self>,
        space: &SpaceRef,
        listing: Option<ListingKey>,
        access: impl Fn() -> Option<Arc<CallerAccess>>,
    ) -> Option<CallerView> {
        // The rules may be replaced at any time, and then they are evaluated again.
        loop {
            let caller = RestrictedCaller { listing, access: access()? };
            let find = |views: &CallerViews| views.restricted.as_ref()?.view_for(&caller).cloned();
            if let Some(view) = find(&self.views_in(space)) {
                return Some(view);
            }
            let added = AddedView::Restricted(caller.clone());
            let different = match space {
                Some(space) => self.rebuild_space(space, &added),
                None => self.rebuild_views(&added),
            };
            self.announcements.add(different, ListSet::NONE);
            if let Some(view) = find(&self.views_in(space)) {
                return Some(view);
            }
        }
    }

    /// Reports whether a caller may read a resource of a server.
    pub(super) fn may_read_from(&self, caller: CallerIdentity<'_>, server: &ServerName, uri: &str) -> bool {
        let item = AccessItem::new(server.as_str(), ItemKind::Resource, uri);
        self.access_of(caller).is_none_or(|access| access.decide(item).is_allowed())
    }

    /// Reports whether a caller may read a resource. One that no server has is not found later.
    fn may_read(self: &Arc<Self>, caller: CallerIdentity<'_>, uri: &str) -> bool {
        self.read_decision(caller, uri).is_none_or(|decision| decision.is_allowed())
    }

    /// Returns the resources that a caller may read.
    pub(super) fn readable_uris(
        self: &Arc<Self>,
        caller: CallerIdentity<'_>,
        mut uris: BTreeSet<String>,
    ) -> BTreeSet<String> {
        uris.retain(|uri| self.may_read(caller, uri));
        uris
    }

    /// Refuses a subscription to resources for which the caller lacks only a scope, naming all scopes.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn check_subscription_scopes(
        self: &Arc<Self>,
        caller: CallerIdentity<'_>,
        uris: &BTreeSet<String>,
    ) -> Result<(), Refusal> {
        let mut lacking: Vec<Box<str>> = Vec::new();
        for uri in uris {
            if let Some(AccessDecision::NeedsScope { scopes, .. }) = self.read_decision(caller, uri) {
                let fresh: Vec<_> = scopes.iter().filter(|scope| !lacking.contains(scope)).cloned().collect();
                lacking.extend(fresh);
            }
        }
        if lacking.is_empty() { Ok(()) } else { Err(Refusal::insufficient_scope(&lacking)) }
    }

    /// Decides on reading a resource; `None` without access rules, or if no server has the resource.
    fn read_decision(self: &Arc<Self>, caller: CallerIdentity<'_>, uri: &str) -> Option<AccessDecision> {
        let views = self.views.load();
        let access = views.restricted.as_ref()?.access_of(caller);
        let own = self.views_in(&self.space_of(caller.principal));
        let owner = own.union.owner_of(uri)?;
        Some(access.decide(resource_item(owner, uri)))
    }
}

pub(super) fn server_name(server: &Arc<Upstream>) -> &str {
    server.name().as_str()
}

pub(super) fn prompt_item<'a>(server: &'a Arc<Upstream>, name: &'a str) -> AccessItem<'a> {
    AccessItem::new(server_name(server), ItemKind::Prompt, name)
}

pub(super) fn resource_item<'a>(server: &'a Arc<Upstream>, uri: &'a str) -> AccessItem<'a> {
    AccessItem::new(server_name(server), ItemKind::Resource, uri)
}
