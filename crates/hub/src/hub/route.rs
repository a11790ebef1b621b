//! Where a call goes.

use std::sync::Arc;

use trunkline_protocol::codec::Reply;
use trunkline_protocol::{Method, Raw, Refusal, shorten};
use trunkline_server::{BoxFuture, Call, Outcome};

use super::lists::input_of;
use super::{Inner, Snapshot, resource_tools};
use crate::registry::ToolTarget;
use crate::relay::{Errand, Wanted, relay};
use crate::scope::SharingScope;
use crate::trail::Trail;
use crate::upstream::Upstream;

pub(super) type Answer = BoxFuture<'static, Result<Outcome, Refusal>>;

/// Where a call goes.
pub(super) enum Routed {
    Answer(Answer),
    /// To nobody whom we know of.
    Unknown(Call, Refusal),
    /// It asks for a list that is not complete for its caller.
    Incomplete(Call),
}

impl Inner {
    pub(super) fn route(&self, registry: &Snapshot, call: Call) -> Routed {
        if !self.is_offered(call.method) {
            return Routed::Answer(ready(Err(Refusal::METHOD_NOT_FOUND)));
        }
        // What is called by its name is on a list, on which nothing is that leads back here.
        let is_listed = matches!(call.method, Method::ToolsCall | Method::PromptsGet);
        if !is_listed && let Err(refusal) = Trail::of(call.params().meta.as_ref()).check(&self.id) {
            return refused(refusal);
        }
        match call.method {
            Method::ToolsCall => self.call_tool(registry, call),
            Method::ToolsList | Method::PromptsList | Method::ResourcesList | Method::TemplatesList => {
                self.note_asked();
                match self.is_complete_for(input_of(&call)) {
                    true => Routed::Answer(ready(self.list(&call))),
                    false => Routed::Incomplete(call),
                }
            }
            Method::PromptsGet => self.get_prompt(registry, call),
            Method::ResourcesRead => self.read_resource(registry, call),
            Method::Complete => self.complete(registry, call),
            _ => Routed::Answer(ready(Err(Refusal::METHOD_NOT_FOUND))),
        }
    }

    fn call_tool(&self, registry: &Snapshot, call: Call) -> Routed {
        let target = match call.params().borrowed_text("name") {
            Ok(name) => match registry.tools.get(&*name) {
                Some(entry) => &entry.target,
                None => {
                    let refusal = unknown("tool", &name);
                    return Routed::Unknown(call, refusal);
                }
            },
            Err(refusal) => return refused(refusal),
        };
        match target {
            ToolTarget::Upstream(server, real) => {
                self.relay(registry, server, call, Wanted::Named(real.written.clone()))
            }
            ToolTarget::ListResources => {
                Routed::Answer(ready(Ok(Outcome::Done(resource_tools::list(registry, &call)))))
            }
            ToolTarget::ReadResource => {
                let owner = |uri: &str| self.owner_of(registry, &call, uri);
                match resource_tools::whose(registry, &call, owner) {
                    Ok((server, params)) => Routed::Answer(resource_tools::read(server, params, call)),
                    Err(problem) => Routed::Answer(ready(Ok(Outcome::Done(problem)))),
                }
            }
        }
    }

    fn get_prompt(&self, registry: &Snapshot, call: Call) -> Routed {
        let name = match call.params().text("name") {
            Ok(name) => name,
            Err(refusal) => return refused(refusal),
        };
        match registry.prompts.get(&*name) {
            Some(prompt) => {
                self.relay(registry, &prompt.owner, call, Wanted::Named(Raw::from_text(&prompt.real)))
            }
            None => Routed::Unknown(call, unknown("prompt", &name)),
        }
    }

    fn read_resource(&self, registry: &Snapshot, call: Call) -> Routed {
        let uri = match call.params().text("uri") {
            Ok(uri) => uri,
            Err(refusal) => return refused(refusal),
        };
        match self.owner_of(registry, &call, &uri) {
            Some(server) => self.relay(registry, server, call, Wanted::Same),
            None => Routed::Unknown(call, Refusal::resource_not_found(&uri)),
        }
    }

    /// Returns the server to which a resource belongs: the one that claims its address, then the first of those that pointed
    /// at it in a result, then the one that would take any address.
    fn owner_of<'r>(&self, registry: &'r Snapshot, call: &Call, uri: &str) -> Option<&'r Arc<Upstream>> {
        let pointed = || {
            let servers = self.seen.servers_of(&self.scope_of(call)?, uri);
            registry.first_with_resources(&servers)
        };
        registry.claimed(uri).or_else(pointed).or_else(|| registry.owner_of(uri))
    }

    /// Returns with whom the caller shares what is remembered of results; nothing if its next call will not be known as its.
    fn scope_of(&self, call: &Call) -> Option<SharingScope> {
        call.context.with_caller(|caller| SharingScope::of(caller, self.options.anonymous))
    }

    /// Asks whoever has the prompt or the template, under the name that it has there.
    fn complete(&self, registry: &Snapshot, call: Call) -> Routed {
        let reference = call.params().get("ref").and_then(|raw| raw.members().ok());
        let Some(mut reference) = reference else {
            return refused(Refusal::INVALID_PARAMS.because("`ref` must be an object"));
        };
        let kind = reference.text("type").unwrap_or_default();
        match &*kind {
            "ref/prompt" => {
                let name = reference.text("name").unwrap_or_default();
                let Some(prompt) = registry.prompts.get(&*name) else {
                    return Routed::Unknown(call, unknown("prompt", &name));
                };
                reference.set("name", Raw::from_text(&prompt.real));
                let mut params = call.params().members.clone();
                params.set("ref", reference.to_raw());
                self.relay(registry, &prompt.owner, call, Wanted::Other(params))
            }
            "ref/resource" => {
                let uri = reference.text("uri").unwrap_or_default();
                let template = registry.templates.get(&*uri).map(|template| &template.owner);
                match template.or_else(|| registry.owner_of(&uri)) {
                    Some(server) => self.relay(registry, server, call, Wanted::Same),
                    None => Routed::Unknown(call, unknown("resource template", &uri)),
                }
            }
            other => {
                let problem = format!("`ref.type` has no meaning: {}", shorten(other));
                refused(Refusal::INVALID_PARAMS.because(problem))
            }
        }
    }

    /// Answers a call of what nobody has. The server in this process may have more to say of a tool that is not there.
    pub(super) fn unknown(&self, call: Call, refusal: Refusal) -> Answer {
        let servers = self.servers();
        let own = servers.iter().filter(|server| server.is_enabled()).find_map(|server| server.in_process());
        match (own, call.method, call.name()) {
            // One that it has, and that is not offered, is not called by guess.
            (Some(own), Method::ToolsCall, Some(name)) if !own.has_tool(&name) => own.call(call),
            _ => ready(Err(refusal)),
        }
    }

    fn relay(&self, registry: &Snapshot, server: &Arc<Upstream>, call: Call, wanted: Wanted) -> Routed {
        if let Some(own) = server.in_process() {
            return Routed::Answer(own.call(call));
        }
        // Where only one server has resources, whatever nobody lists is its own.
        let is_noted = call.method.may_ask() && registry.with_resources.len() > 1;
        let scope = is_noted.then(|| self.scope_of(&call)).flatten();
        let pointed = scope.map(|scope| (self.seen.clone(), scope, server.name().clone()));
        let errand = Errand { method: call.method, wanted, call };
        let relayed = relay(server.clone(), errand);
        let Some((seen, scope, name)) = pointed else { return Routed::Answer(Box::pin(relayed)) };
        Routed::Answer(Box::pin(async move {
            let outcome = relayed.await;
            if let Ok(Outcome::Done(Reply::Carried(result))) = &outcome {
                seen.note(&scope, &name, result);
            }
            outcome
        }))
    }
}

fn ready(answer: Result<Outcome, Refusal>) -> Answer {
    Box::pin(std::future::ready(answer))
}

fn refused(refusal: Refusal) -> Routed {
    Routed::Answer(ready(Err(refusal)))
}

fn unknown(kind: &str, name: &str) -> Refusal {
    Refusal::INVALID_PARAMS.because(format!("Unknown {kind}: {}", shorten(name)))
}
