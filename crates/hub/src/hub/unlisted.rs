//! Calls of items that no server has listed yet: they wait for the servers that may have the item, and for no other.

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
    /// Answers a call of an item that was not found in `views`.
    pub(super) fn unlisted(
        self: &Arc<Self>,
        views: &Arc<CallerViews>,
        call: IncomingCall,
        refusal: Refusal,
    ) -> RouteFuture {
        let candidates = self.possible_owners(&call);
        // A server that has listed since `views` was read is no candidate any more; the current views have its tools.
        let now = self.views.load();
        let again = match Arc::ptr_eq(&now, views) {
            true => RouteOutcome::Unknown(call, refusal),
            false => {
                let registry = self.view_for_call(&call).registry;
                self.route(&registry, call)
            }
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

    /// Returns the servers that may have the item that a call names, and have not listed their items for its caller.
    fn possible_owners(&self, call: &IncomingCall) -> Vec<Arc<Upstream>> {
        let caller = input_set_of(call);
        let access = self.access_of_call(call);
        let name = match call.method {
            Method::ToolsCall | Method::PromptsGet => call.name(),
            _ => None,
        };
        let may_have = |server: &Arc<Upstream>| match (&name, server.listing_state(caller)) {
            (_, ListingState::Current) => false,
            // Names of the in-process server have no prefix.
            (Some(_), _) if server.in_process().is_some() => true,
            (Some(name), _) => self.options.names.could_match(server.name().as_str(), name),
            // Any server may have a URI; a server that list requests do not wait for is not waited for here either.
            (None, state) => state == ListingState::Missing,
        };
        // Waiting for a server that the caller may not use would tell that there is one.
        let is_visible = |server: &Arc<Upstream>| {
            access.as_ref().is_none_or(|access| access.may_use_server(server.name().as_str()))
        };
        self.servers().into_iter().filter(is_visible).filter(may_have).collect()
    }

    /// Waits until one of the servers has listed the item that the call names, and routes the call to it.
    async fn find_owner(
        &self,
        candidates: Vec<Arc<Upstream>>,
        mut call: IncomingCall,
        mut refusal: Refusal,
    ) -> Result<HandlerOutcome, Refusal> {
        let roots = call.context.known_roots().await;
        let profile = CallerProfile::from_context(&call.context).with_roots(roots);
        let caller = profile.listing_key();
        candidates.iter().for_each(|server| server.begin_learning(&profile));
        let mut learning: FuturesUnordered<_> =
            candidates.iter().map(|server| server.wait_learned(caller)).collect();
        let searching = async {
            while learning.next().await.is_some() {
                let view = self.view_for_call(&call);
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
                        Err(not_listed_refusal(server.name(), server.failure_kind()))
                    }
                    _ => self.answer_unknown(call, refusal).await,
                }
            }
            Err(_) => match candidates.first() {
                Some(server) => Err(not_listed_refusal(server.name(), server.failure_kind())),
                None => Err(Refusal::INTERNAL),
            },
        }
    }
}
