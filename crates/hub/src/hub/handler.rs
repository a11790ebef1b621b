//! The hub as a server: who answers what.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use trunkline_protocol::Method;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Implementation, ListCapability, ResourcesCapability, ServerCapabilities};
use trunkline_server::{BoxFuture, Call, Filter, Handler, Listener, ShownLists, Subscription};

use super::lists::input_of;
use super::route::{Answer, Routed};
use super::{Hub, Inner, SpeaksFor};
use crate::upstream::{Known, Upstream};

impl Handler for Hub {
    fn identity(&self) -> Implementation {
        let own = || self.inner.options.identity.clone();
        self.inner.spoken_for().and_then(|known| known.identity.clone()).unwrap_or_else(own)
    }

    fn capabilities(&self) -> ServerCapabilities {
        match self.inner.spoken_for() {
            Some(known) => capabilities_of(&known),
            // Servers come and go, so that everything may be there at any time.
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

    fn instructions(&self) -> Option<String> {
        self.inner.registry().instructions.clone()
    }

    fn mirrored_arguments(&self, tool: &str) -> Option<Arc<MirroredParams>> {
        self.inner.registry().tools.get(tool)?.mirrored()
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.inner.registry().tools.contains_key(tool)
    }

    fn call(&self, call: Call) -> Answer {
        let views = self.inner.views.load();
        match self.inner.route(views.for_call(|| input_of(&call)), call) {
            Routed::Answer(answer) => answer,
            Routed::Unknown(call, refusal) => self.inner.unlisted(&views, call, refusal),
            Routed::Incomplete(call) => self.inner.completed_list(call),
        }
    }

    fn prepare_watch(
        &self,
        listener: &Listener,
        uris: BTreeSet<String>,
    ) -> BoxFuture<'static, BTreeSet<String>> {
        let (inner, listener) = (self.inner.clone(), listener.clone());
        Box::pin(async move { inner.prepare_watch(&listener, uris).await })
    }

    fn watch(&self, mut filter: Filter) -> Subscription {
        // A subscriber without a session has seen what is there now, and is notified of what changes from here on.
        let now = self.inner.views.load().union_versions;
        let assumed = || ShownLists::assuming(now.tools, now.prompts, now.resources);
        filter.shown.get_or_insert_with(assumed);
        self.inner.changes.watch(filter)
    }
}

impl Inner {
    async fn prepare_watch(&self, listener: &Listener, uris: BTreeSet<String>) -> BTreeSet<String> {
        let by_owner = self.by_owner(uris);
        let watching = by_owner.iter().map(|(server, theirs)| server.watch(listener, theirs.clone()));
        let told: BTreeSet<String> = join_all(watching).await.into_iter().flatten().collect();
        if by_owner.iter().any(|(_, theirs)| !theirs.is_subset(&told)) {
            self.rewatch.notify_one();
        }
        told
    }

    /// Sorts resources by the servers that they belong to; those that belong to none are left out.
    pub(super) fn by_owner(
        &self,
        uris: impl IntoIterator<Item = String>,
    ) -> Vec<(Arc<Upstream>, BTreeSet<String>)> {
        let mut by_owner: Vec<(Arc<Upstream>, BTreeSet<String>)> = Vec::new();
        let registry = self.registry();
        for uri in uris {
            let Some(server) = registry.owner_of(&uri) else { continue };
            match by_owner.iter_mut().find(|(known, _)| Arc::ptr_eq(known, server)) {
                Some((_, theirs)) => drop(theirs.insert(uri)),
                None => by_owner.push((server.clone(), BTreeSet::from([uri]))),
            }
        }
        by_owner
    }

    /// Returns what is known of the only server, if the hub speaks for it.
    fn spoken_for(&self) -> Option<Arc<Known>> {
        if self.speaks_for == SpeaksFor::Itself {
            return None;
        }
        match self.servers().as_slice() {
            [only] => only.known(),
            _ => None,
        }
    }

    pub(super) fn is_offered(&self, method: Method) -> bool {
        let Some(known) = self.spoken_for() else { return true };
        let offered = capabilities_of(&known);
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

/// Says of the hub what its only server says of itself, as far as that passes through.
fn capabilities_of(known: &Known) -> ServerCapabilities {
    let offered = &known.capabilities;
    ServerCapabilities {
        tools: offered.tools,
        prompts: offered.prompts,
        resources: offered.resources,
        // The first revision has completions, and no way to say so.
        completions: offered.completions || !known.declares_completions(),
        logging: offered.logging,
        experimental: offered.experimental.clone(),
        ..ServerCapabilities::default()
    }
}
