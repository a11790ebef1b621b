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

use super::{Inner, Snapshot, SpeaksFor};
use crate::trail::Trail;
use crate::upstream::{Party, Upstream};

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

    /// Returns the servers of which it is not known what they offer, although somebody asks.
    pub(super) fn unlisted(&self) -> Vec<Arc<Upstream>> {
        self.servers().into_iter().filter(|server| server.is_unlisted()).collect()
    }

    /// Returns the servers of which it is not known what they offer to this caller.
    ///
    /// Many servers are not all connected to again for a caller that can be asked more than those before; what they have for
    /// it is learnt when it calls them. Who stands in for one server shows what that would show.
    pub(super) fn unlisted_for(&self, call: &Call) -> Vec<Arc<Upstream>> {
        let unlisted = self.unlisted();
        if !unlisted.is_empty() || self.speaks_for == SpeaksFor::Itself {
            return unlisted;
        }
        let party = Party::of(&call.context);
        self.servers().into_iter().filter(|server| server.shows_less_than(&party)).collect()
    }

    /// Waits until it is known what servers offer, for as long as the first lists may take.
    pub(super) async fn learn(&self, unlisted: &[Arc<Upstream>], call: &Call) {
        let roots = call.context.known_roots().await;
        let party = Party::of(&call.context).with_roots(roots);
        let stands_in = self.speaks_for == SpeaksFor::ItsServer;
        let learning = join_all(unlisted.iter().map(|server| async {
            server.first_listing(Some(&party)).await;
            if stands_in {
                server.listing_for(&party).await;
            }
        }));
        // Hubs that are behind each other wait each for the next, and the first has to hear of the last in time; if they are
        // in a circle, they wait for each other.
        let asks_for_hub = !Trail::of(call.params().meta.as_ref()).is_empty();
        let within = self.options.limits.first_lists_within / if asks_for_hub { 3 } else { 1 };
        if timeout(within, learning).await.is_err() {
            unlisted.iter().for_each(|server| server.is_late());
        }
        if stands_in {
            unlisted.iter().for_each(|server| server.is_late_for(&party));
            // Whoever asked is not to see an older snapshot than the one that was waited for.
            self.rebuild();
        }
    }

    /// Answers a list. Another hub is told on each item that it came through this one.
    pub(super) fn list(&self, call: &Call) -> Result<Outcome, Refusal> {
        match Trail::of(call.params().meta.as_ref()).is_empty() {
            true => list(&self.registry(), call, |item, _| item),
            false => list(&self.registry(), call, |item, meta| Trail::of(meta).mark(item, &self.id)),
        }
    }
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
