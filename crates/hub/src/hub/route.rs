//! Routes a call to the upstream that owns the named item.

use std::sync::Arc;

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::{Method, RawJson, Refusal, shorten};
use trunkline_server::{BoxFuture, HandlerOutcome, IncomingCall};

use super::access::{prompt_item, resource_item, server_name};
use super::lists::input_set_of;
use super::{HubInner, RegistrySnapshot, SpaceRef, resource_tools};
use crate::access::AccessItem;
use crate::loop_detection::ViaPath;
use crate::registry::ToolTarget;
use crate::relay::{ParamRewrite, RelayRequest, call_login_tool, relay};
use crate::scope::SharingScope;
use crate::upstream::Upstream;

pub(super) type RouteFuture = BoxFuture<'static, Result<HandlerOutcome, Refusal>>;

/// Where a call is routed to.
pub(super) enum RouteOutcome {
    Handled(RouteFuture),
    /// No known server has the named item.
    Unknown(IncomingCall, Refusal),
    /// A request for a list that is not complete for its caller.
    Incomplete(IncomingCall),
}

impl HubInner {
    pub(super) fn route(
        self: &Arc<Self>,
        space: &SpaceRef,
        registry: &RegistrySnapshot,
        call: IncomingCall,
    ) -> RouteOutcome {
        if !self.is_offered(call.method) {
            return RouteOutcome::Handled(ready_future(Err(Refusal::METHOD_NOT_FOUND)));
        }
        // Tools and prompts are called by a listed name, and items that lead back to this hub are not listed.
        let is_listed = matches!(call.method, Method::ToolsCall | Method::PromptsGet);
        if !is_listed
            && let Err(refusal) = ViaPath::from_meta(call.params().meta.as_ref()).check_loop(&self.id)
        {
            return refused_route(refusal);
        }
        match call.method {
            Method::ToolsCall => self.call_tool(registry, call),
            Method::ToolsList | Method::PromptsList | Method::ResourcesList | Method::TemplatesList => {
                self.note_list_request();
                match self.is_complete_for(space, input_set_of(&call)) {
                    true => RouteOutcome::Handled(ready_future(self.list(space, &call))),
                    false => RouteOutcome::Incomplete(call),
                }
            }
            Method::PromptsGet => self.get_prompt(registry, call),
            Method::ResourcesRead => self.read_resource(registry, call),
            Method::Complete => self.complete(registry, call),
            _ => RouteOutcome::Handled(ready_future(Err(Refusal::METHOD_NOT_FOUND))),
        }
    }

    fn call_tool(&self, registry: &RegistrySnapshot, call: IncomingCall) -> RouteOutcome {
        let entry = match call.params().borrowed_text("name") {
            Ok(name) => match registry.tools.get(&*name) {
                Some(entry) => entry,
                None => {
                    let refusal = not_found_refusal("tool", &name);
                    return RouteOutcome::Unknown(call, refusal);
                }
            },
            Err(refusal) => return refused_route(refusal),
        };
        match &entry.target {
            ToolTarget::Upstream(server, real) => {
                if let Some(refusal) = lacking_scope(registry, entry.access_item(server_name)) {
                    return refused_route(refusal);
                }
                self.relay(registry, server, call, ParamRewrite::Renamed(real.json.clone()))
            }
            ToolTarget::Login(server) => {
                if let Some(refusal) = lacking_scope(registry, entry.access_item(server_name)) {
                    return refused_route(refusal);
                }
                RouteOutcome::Handled(Box::pin(call_login_tool(server.clone(), call)))
            }
            ToolTarget::ListResources => RouteOutcome::Handled(ready_future(Ok(HandlerOutcome::Done(
                resource_tools::list(registry, &call),
            )))),
            ToolTarget::ReadResource => {
                let owner = |uri: &str| self.owner_of(registry, &call, uri);
                match resource_tools::find_resource(registry, &call, owner) {
                    Ok(read) => {
                        let lacking = lacking_scope(registry, Some(resource_item(&read.server, &read.uri)));
                        match lacking.or_else(|| self.admit(&call, &read.server).err()) {
                            Some(refusal) => refused_route(refusal),
                            None => RouteOutcome::Handled(resource_tools::read(read, call)),
                        }
                    }
                    Err(problem) => RouteOutcome::Handled(ready_future(Ok(HandlerOutcome::Done(problem)))),
                }
            }
        }
    }

    fn get_prompt(&self, registry: &RegistrySnapshot, call: IncomingCall) -> RouteOutcome {
        let name = match call.params().text("name") {
            Ok(name) => name,
            Err(refusal) => return refused_route(refusal),
        };
        match registry.prompts.get(&*name) {
            Some(prompt) => {
                let item = prompt_item(&prompt.owner, &prompt.upstream_name);
                if let Some(refusal) = lacking_scope(registry, Some(item)) {
                    return refused_route(refusal);
                }
                let renamed = ParamRewrite::Renamed(RawJson::from_text(&prompt.upstream_name));
                self.relay(registry, &prompt.owner, call, renamed)
            }
            None => RouteOutcome::Unknown(call, not_found_refusal("prompt", &name)),
        }
    }

    fn read_resource(&self, registry: &RegistrySnapshot, call: IncomingCall) -> RouteOutcome {
        let uri = match call.params().text("uri") {
            Ok(uri) => uri,
            Err(refusal) => return refused_route(refusal),
        };
        match self.owner_of(registry, &call, &uri) {
            Some(server) => match lacking_scope(registry, Some(resource_item(server, &uri))) {
                Some(refusal) => refused_route(refusal),
                None => self.relay(registry, server, call, ParamRewrite::Unchanged),
            },
            None => RouteOutcome::Unknown(call, Refusal::resource_not_found(&uri)),
        }
    }

    /// Returns the server that owns a resource: the one that claims its URI, then the first that linked to it in a
    /// result, then the one with a catch-all template. A resource that the caller may not see has none.
    fn owner_of<'r>(
        &self,
        registry: &'r RegistrySnapshot,
        call: &IncomingCall,
        uri: &str,
    ) -> Option<&'r Arc<Upstream>> {
        let pointed = || {
            let servers = self.link_owners.servers_of(&self.scope_of(call)?, uri);
            registry.first_with_resources(&servers)
        };
        let owner = registry.claiming_owner(uri).or_else(pointed).or_else(|| registry.owner_of(uri));
        owner.filter(|server| registry.is_visible(resource_item(server, uri)))
    }

    /// Returns the scope in which links of the caller's results are remembered; `None` if its next call cannot be
    /// attributed to it.
    fn scope_of(&self, call: &IncomingCall) -> Option<SharingScope> {
        call.context.with_caller(|caller| SharingScope::of_caller(caller, self.options.anonymous))
    }

    /// Forwards a completion request to the server that owns the prompt or the template, under the upstream's name.
    fn complete(&self, registry: &RegistrySnapshot, call: IncomingCall) -> RouteOutcome {
        let reference = call.params().get("ref").and_then(|raw| raw.members().ok());
        let Some(mut reference) = reference else {
            return refused_route(Refusal::INVALID_PARAMS.with_message("`ref` must be an object"));
        };
        let kind = reference.text("type").unwrap_or_default();
        match &*kind {
            "ref/prompt" => {
                let name = reference.text("name").unwrap_or_default();
                let Some(prompt) = registry.prompts.get(&*name) else {
                    return RouteOutcome::Unknown(call, not_found_refusal("prompt", &name));
                };
                let item = prompt_item(&prompt.owner, &prompt.upstream_name);
                if let Some(refusal) = lacking_scope(registry, Some(item)) {
                    return refused_route(refusal);
                }
                reference.set("name", RawJson::from_text(&prompt.upstream_name));
                let mut params = call.params().members.clone();
                params.set("ref", reference.to_raw());
                self.relay(registry, &prompt.owner, call, ParamRewrite::Replaced(params))
            }
            "ref/resource" => {
                let uri = reference.text("uri").unwrap_or_default();
                let template = registry.templates.get(&*uri).map(|template| &template.owner);
                let owner = template.or_else(|| registry.owner_of(&uri));
                match owner.filter(|server| registry.is_visible(resource_item(server, &uri))) {
                    Some(server) => match lacking_scope(registry, Some(resource_item(server, &uri))) {
                        Some(refusal) => refused_route(refusal),
                        None => self.relay(registry, server, call, ParamRewrite::Unchanged),
                    },
                    None => RouteOutcome::Unknown(call, not_found_refusal("resource template", &uri)),
                }
            }
            other => {
                let problem = format!("`ref.type` has no meaning: {}", shorten(other));
                refused_route(Refusal::INVALID_PARAMS.with_message(problem))
            }
        }
    }

    /// Answers a call of an item that no server has. The in-process server gets unknown tools, since its error
    /// message is more helpful.
    pub(super) fn answer_unknown(&self, call: IncomingCall, refusal: Refusal) -> RouteFuture {
        let servers = self.servers();
        let own = servers.iter().filter(|server| server.is_enabled()).find_map(|server| server.in_process());
        if self.access_of_call(&call).is_some() {
            // Its message would distinguish a tool that does not exist from one that is denied.
            return ready_future(Err(refusal));
        }
        match (own, call.method, call.name()) {
            // A tool that it has but that is not exposed must not be reachable by guessing its name.
            (Some(own), Method::ToolsCall, Some(name)) if !own.has_tool(&name) => own.call(call),
            _ => ready_future(Err(refusal)),
        }
    }

    /// Counts the request of a call against the limits of its caller and of its server.
    fn admit(&self, call: &IncomingCall, server: &Upstream) -> Result<(), Refusal> {
        self.rates.admit(call, server.name(), server.config().rate)
    }

    fn relay(
        &self,
        registry: &RegistrySnapshot,
        server: &Arc<Upstream>,
        call: IncomingCall,
        wanted: ParamRewrite,
    ) -> RouteOutcome {
        if let Err(refusal) = self.admit(&call, server) {
            return refused_route(refusal);
        }
        if let Some(own) = server.in_process() {
            return RouteOutcome::Handled(own.call(call));
        }
        // If only one server has resources, it owns every unlisted URI, and links need not be remembered.
        let is_noted = call.method.may_require_input() && registry.with_resources.len() > 1;
        let scope = is_noted.then(|| self.scope_of(&call)).flatten();
        let pointed = scope.map(|scope| (self.link_owners.clone(), scope, server.name().clone()));
        let request = RelayRequest { method: call.method, rewrite: wanted, call };
        let relayed = relay(server.clone(), request);
        let Some((seen, scope, name)) = pointed else { return RouteOutcome::Handled(Box::pin(relayed)) };
        RouteOutcome::Handled(Box::pin(async move {
            let outcome = relayed.await;
            if let Ok(HandlerOutcome::Done(ServerResult::Relayed(result))) = &outcome {
                seen.record(&scope, &name, result);
            }
            outcome
        }))
    }
}

fn ready_future(answer: Result<HandlerOutcome, Refusal>) -> RouteFuture {
    Box::pin(std::future::ready(answer))
}

fn refused_route(refusal: Refusal) -> RouteOutcome {
    RouteOutcome::Handled(ready_future(Err(refusal)))
}

/// Refuses a call of an item for which its caller lacks only a scope.
fn lacking_scope(registry: &RegistrySnapshot, item: Option<AccessItem<'_>>) -> Option<Refusal> {
    registry.access.as_ref()?.decide(item?).scope_refusal()
}

fn not_found_refusal(kind: &str, name: &str) -> Refusal {
    Refusal::INVALID_PARAMS.with_message(format!("Unknown {kind}: {}", shorten(name)))
}
