//! The hub as a server: its `Handler` implementation.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Implementation, ListCapability, ResourcesCapability, ServerCapabilities};
use trunkline_protocol::{Method, Refusal};
use trunkline_server::{
    BoxFuture, CallerIdentity, ChangeSubscriber, ChangeSubscription, Handler, IncomingCall, ShownLists,
    SubscriptionFilter,
};

use super::lists::input_set_of;
use super::route::{RouteFuture, RouteOutcome};
use super::{Hub, HubInner, IdentitySource};
use crate::upstream::{KnownServer, Upstream};

impl Handler for Hub {
    fn identity(&self) -> Implementation {
        let own = || self.inner.options.identity.clone();
        self.inner.bridged_server().and_then(|known| known.identity.clone()).unwrap_or_else(own)
    }

    fn capabilities(&self) -> ServerCapabilities {
        match self.inner.bridged_server() {
            Some(known) => bridged_capabilities(&known),
            // Servers are added and removed at run time, so that every kind of item may appear later.
            None => ServerCapabilities {
                tools: Some(ListCapability { list_changed: true }),
                prompts: Some(ListCapability { list_changed: true }),
                resources: Some(ResourcesCapability { subscribe: true, list_changed: true }),
                completions: true,
                logging: true,
                ..ServerCapabilities::default()
            },
        }
    }

    fn instructions(&self, caller: CallerIdentity<'_>) -> Option<String> {
        self.inner.registry_of(caller).instructions.clone()
    }

    fn mirrored_arguments(&self, tool: &str, caller: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        self.inner.registry_of(caller).tools.get(tool)?.mirrored_params()
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.inner.registry().tools.contains_key(tool)
    }

    fn call(&self, call: IncomingCall) -> RouteFuture {
        let space = self.inner.space_of_call(&call);
        let views = self.inner.views_in(&space);
        if views.restricted.is_some() {
            return self.inner.call_restricted(space, &views, call);
        }
        match self.inner.route(&space, views.for_call(|| input_set_of(&call)), call) {
            RouteOutcome::Handled(answer) => answer,
            RouteOutcome::Unknown(call, refusal) => self.inner.unlisted(&space, &views, call, refusal),
            RouteOutcome::Incomplete(call) => self.inner.completed_list(space, call),
        }
    }

    fn prepare_subscription(
        &self,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BoxFuture<'static, Result<BTreeSet<String>, Refusal>> {
        let (inner, listener) = (self.inner.clone(), listener.clone());
        Box::pin(async move { inner.subscribe_at_owners(&listener, uris).await })
    }

    fn subscribe(&self, mut filter: SubscriptionFilter) -> ChangeSubscription {
        // A subscriber without a session counts as having seen the current lists, and is notified of changes from now
        // on.
        if filter.shown_lists.is_none() {
            let now = self.inner.current_versions(filter.subscriber.as_ref());
            filter.shown_lists = Some(ShownLists::from_versions(now.tools, now.prompts, now.resources));
        }
        self.inner.changes.subscribe(filter)
    }
}

impl HubInner {
    async fn subscribe_at_owners(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Refusal> {
        self.check_subscription_scopes(listener.identity(), &uris)?;
        let uris = self.readable_uris(listener.identity(), uris);
        let by_owner = self.group_by_owner(listener, uris);
        let watching = by_owner.iter().map(|(server, theirs)| server.subscribe(listener, theirs.clone()));
        let accepted: BTreeSet<String> = join_all(watching).await.into_iter().flatten().collect();
        if by_owner.iter().any(|(_, theirs)| !theirs.is_subset(&accepted)) {
            self.resubscribe.notify_one();
        }
        Ok(accepted)
    }

    /// Groups resources by the server that owns them for a listener; resources without an owner are left out.
    pub(super) fn group_by_owner(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: impl IntoIterator<Item = String>,
    ) -> Vec<(Arc<Upstream>, BTreeSet<String>)> {
        let mut by_owner: Vec<(Arc<Upstream>, BTreeSet<String>)> = Vec::new();
        let registry = self.views_in(&self.space_of(&listener.principal)).union.clone();
        for uri in uris {
            let Some(server) = registry.owner_of(&uri) else { continue };
            match by_owner.iter_mut().find(|(known, _)| Arc::ptr_eq(known, server)) {
                Some((_, theirs)) => drop(theirs.insert(uri)),
                None => by_owner.push((server.clone(), BTreeSet::from([uri]))),
            }
        }
        by_owner
    }

    /// Returns the only server of a bridge, as far as it is known; `None` for a hub.
    fn bridged_server(&self) -> Option<Arc<KnownServer>> {
        if self.identity_source == IdentitySource::Hub {
            return None;
        }
        match self.servers().as_slice() {
            [only] => {
                let own = || self.users.upstreams().iter().find_map(|server| server.known_server());
                only.known_server().or_else(own)
            }
            _ => None,
        }
    }

    pub(super) fn is_offered(&self, method: Method) -> bool {
        let Some(known) = self.bridged_server() else { return true };
        let offered = bridged_capabilities(&known);
        match method {
            Method::ToolsList | Method::ToolsCall => offered.tools.is_some(),
            Method::PromptsList | Method::PromptsGet => offered.prompts.is_some(),
            Method::ResourcesList | Method::TemplatesList | Method::ResourcesRead => {
                offered.resources.is_some()
            }
            Method::Complete => offered.completions,
            _ => true,
        }
    }
}

/// Returns the capabilities of a bridge: those of its server that the bridge can forward.
fn bridged_capabilities(known: &KnownServer) -> ServerCapabilities {
    let offered = &known.capabilities;
    ServerCapabilities {
        tools: offered.tools,
        prompts: offered.prompts,
        resources: offered.resources,
        // Revisions before 2025-03-26 have completions but no capability to declare them.
        completions: offered.completions || !known.declares_completions(),
        logging: offered.logging,
        experimental: offered.experimental.clone(),
        ..ServerCapabilities::default()
    }
}
