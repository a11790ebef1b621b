//! The hub as a server: who answers what.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{
    Implementation, ListCapability, Resource, ResourcesCapability, ServerCapabilities,
};
use trunkline_protocol::{Members, Method, Raw, Refusal, shorten};
use trunkline_server::{BoxFuture, Call, Filter, Handler, Outcome, Subscription};

use super::lists::list;
use super::{Hub, Inner, Snapshot, SpeaksFor, resource_tools};
use crate::registry::{Owner, ToolTarget};
use crate::relay::{Errand, relay};
use crate::upstream::{Known, Upstream};

type Answer = BoxFuture<'static, Result<Outcome, Refusal>>;

impl Handler for Hub {
    fn identity(&self) -> Implementation {
        let own = || self.inner.options.identity.clone();
        self.inner.spoken_for().and_then(|known| known.identity.clone()).unwrap_or_else(own)
    }

    fn capabilities(&self) -> ServerCapabilities {
        match self.inner.spoken_for() {
            Some(known) => capabilities_of(&known),
            // Servers come and go, so that everything may be there at any time.
            None => ServerCapabilities {
                tools: Some(ListCapability { list_changed: true }),
                prompts: Some(ListCapability { list_changed: true }),
                resources: Some(ResourcesCapability { subscribe: true, list_changed: true }),
                completions: true,
                logging: true,
                ..ServerCapabilities::default()
            },
        }
    }

    fn instructions(&self) -> Option<String> {
        self.inner.registry().instructions.clone()
    }

    fn mirrored_arguments(&self, tool: &str) -> Option<Arc<MirroredParams>> {
        self.inner.registry().tools.get(tool)?.mirrored()
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.inner.registry().tools.contains_key(tool)
    }

    fn call(&self, call: Call) -> Answer {
        let registry = self.inner.registry();
        match self.inner.route(&registry, call) {
            Routed::Answer(answer) => answer,
            Routed::Unknown(call, refusal) if self.inner.unlisted().is_empty() => {
                self.inner.unknown(call, refusal)
            }
            Routed::Unknown(call, _) => {
                let unlisted = self.inner.unlisted();
                let inner = self.inner.clone();
                Box::pin(async move {
                    inner.learn(&unlisted, &call).await;
                    let registry = inner.registry();
                    let routed = inner.route(&registry, call);
                    drop(registry);
                    match routed {
                        Routed::Answer(answer) => answer.await,
                        // Who cannot be listed now is left out, and hurts nobody else.
                        Routed::Unlisted(call, _) => list(&inner.registry(), &call),
                        Routed::Unknown(call, refusal) => inner.unknown(call, refusal).await,
                    }
                })
            }
            Routed::Unlisted(call, unlisted) => {
                let inner = self.inner.clone();
                Box::pin(async move {
                    inner.learn(&unlisted, &call).await;
                    // Who came meanwhile is told of later.
                    list(&inner.registry(), &call)
                })
            }
        }
    }

    fn prepare_watch(&self, uris: BTreeSet<String>) -> BoxFuture<'static, BTreeSet<String>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.prepare_watch(uris).await })
    }

    fn watch(&self, filter: Filter) -> Subscription {
        self.inner.changes.watch(filter)
    }
}

/// Where a call goes.
enum Routed {
    Answer(Answer),
    /// To nobody whom we know of.
    Unknown(Call, Refusal),
    /// To nobody, but it wants a list on which these are missing.
    Unlisted(Call, Vec<Arc<Upstream>>),
}

impl Inner {
    fn route(&self, registry: &Snapshot, call: Call) -> Routed {
        if !self.is_offered(call.method) {
            return Routed::Answer(ready(Err(Refusal::METHOD_NOT_FOUND)));
        }
        match call.method {
            Method::ToolsCall => self.call_tool(registry, call),
            Method::ToolsList | Method::PromptsList | Method::ResourcesList | Method::TemplatesList => {
                self.note_asked();
                // Whoever was never listed is waited for, and then the list is whole.
                let unlisted = self.unlisted();
                match unlisted.is_empty() {
                    // The newest snapshot, which has everybody who is listed by now.
                    true => Routed::Answer(ready(list(&self.registry(), &call))),
                    false => Routed::Unlisted(call, unlisted),
                }
            }
            Method::PromptsGet => self.get_prompt(registry, call),
            Method::ResourcesRead => self.read_resource(registry, call),
            Method::Complete => self.complete(registry, call),
            _ => Routed::Answer(ready(Err(Refusal::METHOD_NOT_FOUND))),
        }
    }

    fn call_tool(&self, registry: &Snapshot, call: Call) -> Routed {
        let name = match call.params().text("name") {
            Ok(name) => name,
            Err(refusal) => return refused(refusal),
        };
        match registry.tools.get(&*name).map(|entry| &entry.target) {
            Some(ToolTarget::Upstream(server, real)) => {
                let params = renamed(&call, "name", real);
                self.relay(server, call, params)
            }
            Some(ToolTarget::ListResources) => {
                Routed::Answer(ready(Ok(Outcome::Done(resource_tools::list(registry, &call)))))
            }
            Some(ToolTarget::ReadResource) => {
                Routed::Answer(resource_tools::read(registry, call, &self.options))
            }
            None => Routed::Unknown(call, unknown("tool", &name)),
        }
    }

    fn get_prompt(&self, registry: &Snapshot, call: Call) -> Routed {
        let name = match call.params().text("name") {
            Ok(name) => name,
            Err(refusal) => return refused(refusal),
        };
        match registry.prompts.get(&*name) {
            Some(prompt) => {
                let params = renamed(&call, "name", &prompt.real);
                self.relay(&prompt.owner, call, params)
            }
            None => Routed::Unknown(call, unknown("prompt", &name)),
        }
    }

    fn read_resource(&self, registry: &Snapshot, call: Call) -> Routed {
        let uri = match call.params().text("uri") {
            Ok(uri) => uri,
            Err(refusal) => return refused(refusal),
        };
        match registry.owner_of(&uri) {
            Owner::One(server) => {
                let (server, params) = (server.clone(), call.params().members.clone());
                self.relay(&server, call, params)
            }
            Owner::Several(servers) => refused(ambiguous(&uri, &servers)),
            Owner::Nobody => Routed::Unknown(call, Refusal::resource_not_found(&uri)),
        }
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
                self.relay(&prompt.owner, call, params)
            }
            "ref/resource" => {
                let uri = reference.text("uri").unwrap_or_default();
                let owner = match registry.templates.get(&*uri) {
                    Some(template) => Owner::One(&template.owner),
                    None => registry.owner_of(&uri),
                };
                match owner {
                    Owner::One(server) => {
                        let (server, params) = (server.clone(), call.params().members.clone());
                        self.relay(&server, call, params)
                    }
                    Owner::Several(servers) => refused(ambiguous(&uri, &servers)),
                    Owner::Nobody => Routed::Unknown(call, unknown("resource template", &uri)),
                }
            }
            other => {
                let problem = format!("`ref.type` has no meaning: {}", shorten(other));
                refused(Refusal::INVALID_PARAMS.because(problem))
            }
        }
    }

    /// Answers a call of what nobody has. The server in this process may have more to say of a tool that is not there.
    fn unknown(&self, call: Call, refusal: Refusal) -> Answer {
        let servers = self.servers();
        let own = servers.iter().filter(|server| server.is_enabled()).find_map(|server| server.in_process());
        match (own, call.method, call.name()) {
            // One that it has, and that is not offered, is not called by guess.
            (Some(own), Method::ToolsCall, Some(name)) if !own.has_tool(&name) => own.call(call),
            _ => ready(Err(refusal)),
        }
    }

    fn relay(&self, server: &Arc<Upstream>, call: Call, params: Members) -> Routed {
        if let Some(own) = server.in_process() {
            return Routed::Answer(own.call(call));
        }
        let errand = Errand { method: call.method, params, call };
        Routed::Answer(Box::pin(relay(server.clone(), errand, self.options.clone())))
    }

    async fn prepare_watch(&self, uris: BTreeSet<String>) -> BTreeSet<String> {
        let mut by_server: Vec<(Arc<Upstream>, BTreeSet<String>)> = Vec::new();
        {
            let registry = self.registry();
            for uri in uris {
                let Owner::One(server) = registry.owner_of(&uri) else { continue };
                match by_server.iter_mut().find(|(known, _)| Arc::ptr_eq(known, server)) {
                    Some((_, theirs)) => drop(theirs.insert(uri)),
                    None => by_server.push((server.clone(), BTreeSet::from([uri]))),
                }
            }
        }
        let watching = by_server.iter().map(|(server, theirs)| server.watch(theirs.clone()));
        join_all(watching).await.into_iter().flatten().collect()
    }

    /// Returns what is known of the only server, if the hub speaks for it.
    fn spoken_for(&self) -> Option<Arc<Known>> {
        if self.speaks_for == SpeaksFor::Itself {
            return None;
        }
        match self.servers().as_slice() {
            [only] => only.known(),
            _ => None,
        }
    }

    fn is_offered(&self, method: Method) -> bool {
        let Some(known) = self.spoken_for() else { return true };
        let offered = capabilities_of(&known);
        match method {
            Method::ToolsList | Method::ToolsCall => offered.tools.is_some(),
            Method::PromptsList | Method::PromptsGet => offered.prompts.is_some(),
            Method::ResourcesList | Method::TemplatesList | Method::ResourcesRead => {
                offered.resources.is_some()
            }
            Method::Complete => offered.completions,
            _ => true,
        }
    }
}

/// Says of the hub what its only server says of itself, as far as that passes through.
fn capabilities_of(known: &Known) -> ServerCapabilities {
    let offered = &known.capabilities;
    ServerCapabilities {
        tools: offered.tools,
        prompts: offered.prompts,
        resources: offered.resources,
        // The first revision has completions, and no way to say so.
        completions: offered.completions || !known.declares_completions(),
        logging: offered.logging,
        experimental: offered.experimental.clone(),
        ..ServerCapabilities::default()
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

/// Refuses to guess whose a resource is.
pub(super) fn ambiguous(uri: &str, servers: &[trunkline_config::ServerName]) -> Refusal {
    let names: Vec<_> = servers.iter().map(|server| format!("`{server}`")).collect();
    let problem = format!("{} could be a resource of {}", shorten(uri), names.join(" and "));
    Refusal::INVALID_PARAMS.because(problem)
}

/// Returns the parameters with another name in them.
fn renamed(call: &Call, member: &'static str, real: &str) -> Members {
    let mut params = call.params().members.clone();
    params.set(member, Raw::from_text(real));
    params
}

/// Says what a resource is, for whoever lists it as text.
pub(super) fn described(server: &str, resource: &Resource) -> serde_json::Value {
    serde_json::json!({
        "server": server,
        "uri": resource.uri,
        "name": resource.title.as_ref().unwrap_or(&resource.name),
        "description": resource.description,
        "mimeType": resource.mime_type,
    })
}
