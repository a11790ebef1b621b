//! List requests, answered page by page.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::CacheHint;
use trunkline_protocol::{JsonObject, Method, RawJson, Refusal};
use trunkline_server::listing::{ListKind, page};
use trunkline_server::{HandlerOutcome, IncomingCall};

use super::route::RouteFuture;
use super::{HubInner, RegistrySnapshot, SpaceRef};
use crate::loop_detection::ViaPath;
use crate::registry::ListDifferences;
use crate::upstream::{CallerProfile, ListSet, ListingKey, ListingState, Upstream};

/// The items of one page.
const PAGE_SIZE: usize = 1000;

impl HubInner {
    /// Reports whether any client has sent a list request.
    pub(super) fn was_listed(&self) -> bool {
        self.was_listed.load(Ordering::Acquire)
    }

    /// Records that a client has sent a list request.
    pub(super) fn note_list_request(&self) {
        self.was_listed.store(true, Ordering::Release);
    }

    /// Waits until every upstream has listed its items for a caller, at most for the list timeout; slower listings
    /// continue in the background.
    async fn wait_until_complete(&self, space: &SpaceRef, call: &IncomingCall) {
        let roots = call.context.known_roots().await;
        let profile = CallerProfile::from_context(&call.context).with_roots(roots);
        let caller = profile.listing_key();
        let servers = self.servers_in(space);
        servers.iter().for_each(|server| server.begin_learning(&profile));
        let is_missing = |server: &&Arc<Upstream>| server.listing_state(caller) == ListingState::Missing;
        let missing: Vec<_> = servers.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let learning = join_all(missing.iter().map(|server| server.wait_learned(caller)));
        // In a chain of hubs each waits for the next, so that an inner hub has to respond before the outer one times
        // out; hubs in a loop wait for each other.
        let is_for_hub = !ViaPath::from_meta(call.params().meta.as_ref()).is_empty();
        let within = self.options.limits.first_list_timeout / if is_for_hub { 3 } else { 1 };
        let _ = timeout(within, learning).await;
        // Clients are notified when a late listing arrives.
        missing.iter().filter(|server| is_missing(server)).for_each(|server| server.set_late(caller));
    }

    /// Answers a list request once every upstream has listed its items for the caller, or the list timeout has
    /// expired.
    pub(super) fn completed_list(self: &Arc<Self>, space: SpaceRef, call: IncomingCall) -> RouteFuture {
        let inner = self.clone();
        Box::pin(async move {
            inner.wait_until_complete(&space, &call).await;
            let own = inner.space_of_call(&call);
            if space.is_none() && own.is_some() {
                // A server has demanded a token meanwhile, so that the caller has an upstream of its own.
                inner.wait_until_complete(&own, &call).await;
            }
            inner.list(&own, &call)
        })
    }

    /// Reports whether every upstream has listed its items for a caller.
    pub(super) fn is_complete_for(&self, space: &SpaceRef, caller: ListingKey) -> bool {
        self.servers_in(space).iter().all(|server| server.listing_state(caller) == ListingState::Current)
    }

    /// Answers a list request from the caller's view. Items for another hub carry this hub's id.
    pub(super) fn list(
        self: &Arc<Self>,
        space: &SpaceRef,
        call: &IncomingCall,
    ) -> Result<HandlerOutcome, Refusal> {
        let view = self.view_for_call(space, call);
        // Only the first page is recorded; and templates have no notification of their own.
        if call.params().get("cursor").is_none() && call.method != Method::TemplatesList {
            let (list, version) = view.versions.version_of(call.method);
            call.context.record_listed(&list, version);
            if self.view_for_call(space, call).versions != view.versions {
                // The list changed before this version was recorded, so that the client may have missed the
                // notification.
                self.announcements.add(ListDifferences::ALL, ListSet::NONE);
            }
        }
        match ViaPath::from_meta(call.params().meta.as_ref()).is_empty() {
            true => list_snapshot(&view.registry, call, |item, _| item),
            false => list_snapshot(&view.registry, call, |item, meta| {
                ViaPath::from_meta(meta).mark_item(item, &self.id)
            }),
        }
    }
}

/// Returns the key of the listings that the caller of a request sees.
pub(super) fn input_set_of(call: &IncomingCall) -> ListingKey {
    call.context.with_caller(|caller| ListingKey::of_caller(caller.revision, &caller.capabilities()))
}

/// Answers a list request from a snapshot, with each item passed through `shown`.
fn list_snapshot(
    registry: &RegistrySnapshot,
    call: &IncomingCall,
    shown: impl Fn(RawJson, Option<&JsonObject>) -> RawJson,
) -> Result<HandlerOutcome, Refusal> {
    let (revision, params) = (call.context.revision(), call.params());
    // The default hint, since lists may change at any time and subscribers are notified.
    let cache = CacheHint::default();
    let reply = match call.method {
        Method::ToolsList => page(ListKind::Tools, &registry.tools, params, PAGE_SIZE, cache, |tool| {
            shown(tool.list_item(revision), tool.tool().meta.as_ref())
        }),
        Method::PromptsList => {
            page(ListKind::Prompts, &registry.prompts, params, PAGE_SIZE, cache, |prompt| {
                shown(prompt.list_item(revision), prompt.item.meta.as_ref())
            })
        }
        Method::ResourcesList => {
            page(ListKind::Resources, &registry.resources, params, PAGE_SIZE, cache, |resource| {
                shown(resource.list_item(revision), resource.item.meta.as_ref())
            })
        }
        _ => page(ListKind::Templates, &registry.templates, params, PAGE_SIZE, cache, |template| {
            shown(template.list_item(revision), template.item.meta.as_ref())
        }),
    };
    reply.map(|reply| HandlerOutcome::Done(ServerResult::List(reply)))
}
