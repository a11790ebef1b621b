//! What is offered, page by page.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline_protocol::codec::Reply;
use trunkline_protocol::model::CacheHint;
use trunkline_protocol::{Method, Refusal};
use trunkline_server::listing::{ListKind, page};
use trunkline_server::{Call, Outcome};

use super::{Inner, Snapshot};
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

    /// Waits until it is known what servers offer, for as long as the first lists may take.
    pub(super) async fn learn(&self, unlisted: &[Arc<Upstream>], call: &Call) {
        let roots = call.context.known_roots().await;
        let party = Party::of(&call.context).with_roots(roots);
        let learning = join_all(unlisted.iter().map(|server| server.first_listing(Some(&party))));
        if timeout(self.options.limits.first_lists_within, learning).await.is_err() {
            unlisted.iter().for_each(|server| server.is_late());
        }
    }
}

/// Answers a list from a snapshot.
pub(super) fn list(registry: &Snapshot, call: &Call) -> Result<Outcome, Refusal> {
    let (revision, params) = (call.context.revision(), call.params());
    // What is offered may change at any time, and whoever watches is told.
    let cache = CacheHint::default();
    let reply = match call.method {
        Method::ToolsList => {
            page(ListKind::Tools, &registry.tools, params, PAGE, cache, |tool| tool.list_item(revision))
        }
        Method::PromptsList => page(ListKind::Prompts, &registry.prompts, params, PAGE, cache, |prompt| {
            prompt.list_item(revision)
        }),
        Method::ResourcesList => {
            page(ListKind::Resources, &registry.resources, params, PAGE, cache, |resource| {
                resource.list_item(revision)
            })
        }
        _ => page(ListKind::Templates, &registry.templates, params, PAGE, cache, |template| {
            template.list_item(revision)
        }),
    };
    reply.map(|reply| Outcome::Done(Reply::List(reply)))
}
