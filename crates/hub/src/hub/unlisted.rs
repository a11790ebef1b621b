//! Calls of items that no server has listed yet: they wait for the servers that may have the item, and for no other.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;
use trunkline_protocol::{Method, Refusal};
use trunkline_server::{HandlerOutcome, IncomingCall};

use super::lists::input_set_of;
use super::route::{RouteFuture, RouteOutcome};
use super::views::CallerViews;
use super::{HubInner, SpaceRef};
use crate::relay::{not_listed_refusal, require_login};
use crate::upstream::{CallerProfile, ListingState, Upstream};

impl HubInner {
    /// Answers a call of an item that was not found in `views`.
    pub(super) fn unlisted(
        self: &Arc<Self>,
        space: &SpaceRef,
        views: &Arc<CallerViews>,
        call: IncomingCall,
        refusal: Refusal,
    ) -> RouteFuture {
        let candidates = self.possible_owners(space, &call);
        // A server that has listed since `views` was read is no candidate any more; the current views have its tools.
        let now = self.views_in(space);
        let again = match Arc::ptr_eq(&now, views) {
            true => RouteOutcome::Unknown(call, refusal),
            false => {
                let registry = self.view_for_call(space, &call).registry;
                self.route(space, &registry, call)
            }
        };
        match again {
            RouteOutcome::Unknown(call, refusal) if candidates.is_empty() => {
                self.answer_unknown(call, refusal)
            }
            RouteOutcome::Unknown(call, refusal) => {
                let (inner, space) = (self.clone(), space.clone());
                Box::pin(async move { inner.find_owner(&space, candidates, call, refusal).await })
            }
            RouteOutcome::Handled(answer) => answer,
            RouteOutcome::Incomplete(call) => self.completed_list(space.clone(), call),
        }
    }

    /// Returns the servers that may have the item that a call names, and have not listed their items for its caller.
    fn possible_owners(&self, space: &SpaceRef, call: &IncomingCall) -> Vec<Arc<Upstream>> {
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
        // Waiting for a server that the caller may not use would reveal that there is one.
        let is_visible = |server: &Arc<Upstream>| {
            access.as_ref().is_none_or(|access| access.may_use_server(server.name().as_str()))
        };
        self.servers_in(space).into_iter().filter(is_visible).filter(may_have).collect()
    }

    /// Waits until one of the servers has listed the item that the call names, and routes the call to it. If that
    /// server demands a login, one is requested of its user, once.
    async fn find_owner(
        self: &Arc<Self>,
        space: &SpaceRef,
        candidates: Vec<Arc<Upstream>>,
        mut call: IncomingCall,
        mut refusal: Refusal,
    ) -> Result<HandlerOutcome, Refusal> {
        let mut has_asked = false;
        loop {
            let caller = input_set_of(&call);
            match self.search(space, &candidates, call, refusal).await {
                SearchOutcome::Found(answer) => return answer.await,
                SearchOutcome::NotListed(again, reason) => (call, refusal) = (again, reason),
                SearchOutcome::TimedOut => {
                    let server = candidates.first().ok_or(Refusal::INTERNAL)?;
                    return Err(not_listed_refusal(server.name(), server.failure().as_ref()));
                }
            }
            if space.is_none()
                && let own @ Some(_) = self.space_of_call(&call)
            {
                // A server has demanded a token meanwhile, so that the caller has an upstream of its own.
                let candidates = self.possible_owners(&own, &call);
                return Box::pin(self.find_owner(&own, candidates, call, refusal)).await;
            }
            let is_waiting = |server: &&Arc<Upstream>| server.listing_state(caller) != ListingState::Current;
            match candidates.iter().find(is_waiting).filter(|_| call.name().is_some()) {
                Some(server) if call.method != Method::ResourcesRead => {
                    if has_asked || !server.demands_login() {
                        return Err(not_listed_refusal(server.name(), server.failure().as_ref()));
                    }
                    has_asked = true;
                    if let Some(answer) = Box::pin(require_login(server, &call)).await {
                        return answer;
                    }
                }
                _ => return self.answer_unknown(call, refusal).await,
            }
        }
    }

    /// Waits until one of the servers has listed the item that the call names, or all have listed their items.
    async fn search(
        self: &Arc<Self>,
        space: &SpaceRef,
        candidates: &[Arc<Upstream>],
        mut call: IncomingCall,
        mut refusal: Refusal,
    ) -> SearchOutcome {
        let roots = call.context.known_roots().await;
        let profile = CallerProfile::from_context(&call.context).with_roots(roots);
        let caller = profile.listing_key();
        candidates.iter().for_each(|server| server.begin_learning(&profile));
        let mut learning: FuturesUnordered<_> =
            candidates.iter().map(|server| server.wait_learned(caller)).collect();
        let searching = async {
            while learning.next().await.is_some() {
                let view = self.view_for_call(space, &call);
                match self.route(space, &view.registry, call) {
                    RouteOutcome::Handled(answer) => return SearchOutcome::Found(answer),
                    RouteOutcome::Unknown(again, reason) => (call, refusal) = (again, reason),
                    RouteOutcome::Incomplete(again) => call = again,
                }
            }
            SearchOutcome::NotListed(call, refusal)
        };
        timeout(self.options.limits.first_call_timeout, searching).await.unwrap_or(SearchOutcome::TimedOut)
    }
}

/// What came of waiting for the server of an item.
enum SearchOutcome {
    Found(RouteFuture),
    /// All servers that could be connected have listed their items, and none has this one.
    NotListed(IncomingCall, Refusal),
    TimedOut,
}
