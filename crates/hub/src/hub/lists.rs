//! What is offered, page by page.

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
use super::{HubInner, RegistrySnapshot};
use crate::loop_detection::ViaPath;
use crate::registry::ListDifferences;
use crate::upstream::{CallerProfile, ListSet, ListingKey, ListingState, Upstream};

/// The items of one page.
const PAGE_SIZE: usize = 1000;

impl HubInner {
    /// Reports whether somebody has already asked what is offered.
    pub(super) fn was_listed(&self) -> bool {
        self.was_listed.load(Ordering::Acquire)
    }

    /// Notes that somebody asks what is offered.
    pub(super) fn note_list_request(&self) {
        self.was_listed.store(true, Ordering::Release);
    }

    /// Waits until every server has listed what it has for a caller, for as long as a list may wait; what takes longer is learnt
    /// in the background.
    async fn wait_until_complete(&self, call: &IncomingCall) {
        let roots = call.context.known_roots().await;
        let party = CallerProfile::from_context(&call.context).with_roots(roots);
        let caller = party.listing_key();
        let servers = self.servers();
        servers.iter().for_each(|server| server.begin_learning(&party));
        let is_missing = |server: &&Arc<Upstream>| server.listing_state(caller) == ListingState::Missing;
        let missing: Vec<_> = servers.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let learning = join_all(missing.iter().map(|server| server.wait_learned(caller)));
        // Hubs that are behind each other wait each for the next, and the first has to hear of the last in time; if they are
        // in a circle, they wait for each other.
        let asks_for_hub = !ViaPath::from_meta(call.params().meta.as_ref()).is_empty();
        let within = self.options.limits.first_list_timeout / if asks_for_hub { 3 } else { 1 };
        let _ = timeout(within, learning).await;
        // Clients are notified of what comes later.
        missing.iter().filter(|server| is_missing(server)).for_each(|server| server.set_late(caller));
    }

    /// Answers a list when every server has listed what it has for the caller, or the list has waited long enough.
    pub(super) fn completed_list(self: &Arc<Self>, call: IncomingCall) -> RouteFuture {
        let inner = self.clone();
        Box::pin(async move {
            inner.wait_until_complete(&call).await;
            inner.list(&call)
        })
    }

    /// Reports whether every server has listed what it has for a caller.
    pub(super) fn is_complete_for(&self, caller: ListingKey) -> bool {
        self.servers().iter().all(|server| server.listing_state(caller) == ListingState::Current)
    }

    /// Answers a list from what the caller's view has. Items for another hub say that they came through this one.
    pub(super) fn list(&self, call: &IncomingCall) -> Result<HandlerOutcome, Refusal> {
        let caller = input_set_of(call);
        let view = self.view_of(caller);
        // What counts is the first page; and templates have no notification of their own.
        if call.params().get("cursor").is_none() && call.method != Method::TemplatesList {
            let (list, version) = view.versions.version_of(call.method);
            call.context.record_listed(&list, version);
            if self.view_of(caller).versions != view.versions {
                // It has changed before this was noted, so that the notification may have passed the client by.
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

/// Returns what the lists that the caller of a request sees depend on.
pub(super) fn input_set_of(call: &IncomingCall) -> ListingKey {
    call.context.with_caller(|caller| ListingKey::of_caller(caller.revision, &caller.capabilities()))
}

/// Answers a list from a snapshot, each item as it is to be shown.
fn list_snapshot(
    registry: &RegistrySnapshot,
    call: &IncomingCall,
    shown: impl Fn(RawJson, Option<&JsonObject>) -> RawJson,
) -> Result<HandlerOutcome, Refusal> {
    let (revision, params) = (call.context.revision(), call.params());
    // What is offered may change at any time, and whoever watches is told.
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
