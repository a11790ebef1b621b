//! Calls of what no server has listed yet: they wait for the server that may have it, and for no other.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;
use trunkline_protocol::{Method, Refusal};
use trunkline_server::{HandlerOutcome, IncomingCall};

use super::HubInner;
use super::lists::input_set_of;
use super::route::{RouteFuture, RouteOutcome};
use super::views::CallerViews;
use crate::relay::not_listed_refusal;
use crate::upstream::{CallerProfile, ListingState, Upstream};

impl HubInner {
    /// Answers a call of what is in none of the views that it was looked up in.
    pub(super) fn unlisted(
        self: &Arc<Self>,
        views: &Arc<CallerViews>,
        call: IncomingCall,
        refusal: Refusal,
    ) -> RouteFuture {
        let candidates = self.possible_owners(&call);
        // A server that has listed since the views were read is no candidate any more; the views of now have its tools.
        let now = self.views.load();
        let again = match Arc::ptr_eq(&now, views) {
            true => RouteOutcome::Unknown(call, refusal),
            false => self.route(now.for_call(|| input_set_of(&call)), call),
        };
        match again {
            RouteOutcome::Unknown(call, refusal) if candidates.is_empty() => {
                self.answer_unknown(call, refusal)
            }
            RouteOutcome::Unknown(call, refusal) => {
                let inner = self.clone();
                Box::pin(async move { inner.find_owner(candidates, call, refusal).await })
            }
            RouteOutcome::Handled(answer) => answer,
            RouteOutcome::Incomplete(call) => self.completed_list(call),
        }
    }

    /// Returns the servers that may have what a call names, and have not listed what they have for its caller.
    fn possible_owners(&self, call: &IncomingCall) -> Vec<Arc<Upstream>> {
        let caller = input_set_of(call);
        let name = match call.method {
            Method::ToolsCall | Method::PromptsGet => call.name(),
            _ => None,
        };
        let may_have = |server: &Arc<Upstream>| match (&name, server.listing_state(caller)) {
            (_, ListingState::Current) => false,
            // A server within the hub keeps its own names.
            (Some(_), _) if server.in_process().is_some() => true,
            (Some(name), _) => self.options.names.could_match(server.name().as_str(), name),
            // Any server may have an address; one that lists do not wait for is not waited for here either.
            (None, state) => state == ListingState::Missing,
        };
        self.servers().into_iter().filter(may_have).collect()
    }

    /// Waits until one of the servers has listed what the call names, and makes the call there.
    async fn find_owner(
        &self,
        candidates: Vec<Arc<Upstream>>,
        mut call: IncomingCall,
        mut refusal: Refusal,
    ) -> Result<HandlerOutcome, Refusal> {
        let roots = call.context.known_roots().await;
        let party = CallerProfile::from_context(&call.context).with_roots(roots);
        let caller = party.listing_key();
        candidates.iter().for_each(|server| server.begin_learning(&party));
        let mut learning: FuturesUnordered<_> =
            candidates.iter().map(|server| server.wait_learned(caller)).collect();
        let searching = async {
            while learning.next().await.is_some() {
                let view = self.view_of(caller);
                match self.route(&view.registry, call) {
                    RouteOutcome::Handled(answer) => return Ok(answer),
                    RouteOutcome::Unknown(again, reason) => (call, refusal) = (again, reason),
                    RouteOutcome::Incomplete(again) => call = again,
                }
            }
            Err((call, refusal))
        };
        match timeout(self.options.limits.first_call_timeout, searching).await {
            Ok(Ok(answer)) => answer.await,
            Ok(Err((call, refusal))) => {
                let is_waiting =
                    |server: &&Arc<Upstream>| server.listing_state(caller) != ListingState::Current;
                match candidates.iter().find(is_waiting).filter(|_| call.name().is_some()) {
                    Some(server) if call.method != Method::ResourcesRead => {
                        Err(not_listed_refusal(server.name(), server.has_failed()))
                    }
                    _ => self.answer_unknown(call, refusal).await,
                }
            }
            Err(_) => match candidates.first() {
                Some(server) => Err(not_listed_refusal(server.name(), server.has_failed())),
                None => Err(Refusal::INTERNAL),
            },
        }
    }
}
