//! What is offered, page by page.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_protocol::codec::Reply;
use trunkline_protocol::model::CacheHint;
use trunkline_protocol::{Members, Method, Raw, Refusal};
use trunkline_server::listing::{ListKind, page};
use trunkline_server::{Call, Outcome};

use super::route::Answer;
use super::{Inner, Snapshot};
use crate::registry::Differs;
use crate::trail::Trail;
use crate::upstream::{ListingKey, ListingState, Lists, Party, Upstream};

/// The items of one page.
const PAGE: usize = 1000;

impl Inner {
    /// Reports whether somebody has already asked what is offered.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// Notes that somebody asks what is offered.
    pub(super) fn note_asked(&self) {
        self.is_asked.store(true, Ordering::Release);
    }

    /// Waits until every server has listed what it has for a caller, for as long as a list may wait; what takes longer is learnt
    /// in the background.
    async fn complete_for(&self, call: &Call) {
        let roots = call.context.known_roots().await;
        let party = Party::of(&call.context).with_roots(roots);
        let caller = party.listing_key();
        let servers = self.servers();
        servers.iter().for_each(|server| server.begin_learning(&party));
        let is_missing = |server: &&Arc<Upstream>| server.listing_state(caller) == ListingState::Missing;
        let missing: Vec<_> = servers.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let learning = join_all(missing.iter().map(|server| server.learned(caller)));
        // Hubs that are behind each other wait each for the next, and the first has to hear of the last in time; if they are
        // in a circle, they wait for each other.
        let asks_for_hub = !Trail::of(call.params().meta.as_ref()).is_empty();
        let within = self.options.limits.first_lists_within / if asks_for_hub { 3 } else { 1 };
        let _ = timeout(within, learning).await;
        // Clients are notified of what comes later.
        missing.iter().filter(|server| is_missing(server)).for_each(|server| server.set_late(caller));
    }

    /// Answers a list when every server has listed what it has for the caller, or the list has waited long enough.
    pub(super) fn completed_list(self: &Arc<Self>, call: Call) -> Answer {
        let inner = self.clone();
        Box::pin(async move {
            inner.complete_for(&call).await;
            inner.list(&call)
        })
    }

    /// Reports whether every server has listed what it has for a caller.
    pub(super) fn is_complete_for(&self, caller: ListingKey) -> bool {
        self.servers().iter().all(|server| server.listing_state(caller) == ListingState::Current)
    }

    /// Answers a list from what the caller's view has. Items for another hub say that they came through this one.
    pub(super) fn list(&self, call: &Call) -> Result<Outcome, Refusal> {
        let caller = input_of(call);
        let view = self.view_of(caller);
        // What counts is the first page; and templates have no notification of their own.
        if call.params().get("cursor").is_none() && call.method != Method::TemplatesList {
            let (list, version) = view.versions.of(call.method);
            call.context.note_listed(&list, version);
            if self.view_of(caller).versions != view.versions {
                // It has changed before this was noted, so that the notification may have passed the client by.
                self.announcements.add(Differs::ALL, Lists::NONE);
            }
        }
        match Trail::of(call.params().meta.as_ref()).is_empty() {
            true => list(&view.registry, call, |item, _| item),
            false => list(&view.registry, call, |item, meta| Trail::of(meta).mark(item, &self.id)),
        }
    }
}

/// Returns what the lists that the caller of a request sees depend on.
pub(super) fn input_of(call: &Call) -> ListingKey {
    call.context.with_caller(|caller| ListingKey::of_caller(caller.revision, &caller.capabilities()))
}

/// Answers a list from a snapshot, each item as it is to be shown.
fn list(
    registry: &Snapshot,
    call: &Call,
    shown: impl Fn(Raw, Option<&Members>) -> Raw,
) -> Result<Outcome, Refusal> {
    let (revision, params) = (call.context.revision(), call.params());
    // What is offered may change at any time, and whoever watches is told.
    let cache = CacheHint::default();
    let reply = match call.method {
        Method::ToolsList => page(ListKind::Tools, &registry.tools, params, PAGE, cache, |tool| {
            shown(tool.list_item(revision), tool.described().meta.as_ref())
        }),
        Method::PromptsList => page(ListKind::Prompts, &registry.prompts, params, PAGE, cache, |prompt| {
            shown(prompt.list_item(revision), prompt.item.meta.as_ref())
        }),
        Method::ResourcesList => {
            page(ListKind::Resources, &registry.resources, params, PAGE, cache, |resource| {
                shown(resource.list_item(revision), resource.item.meta.as_ref())
            })
        }
        _ => page(ListKind::Templates, &registry.templates, params, PAGE, cache, |template| {
            shown(template.list_item(revision), template.item.meta.as_ref())
        }),
    };
    reply.map(|reply| Outcome::Done(Reply::List(reply)))
}
