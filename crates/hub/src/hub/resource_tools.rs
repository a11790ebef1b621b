//! Runs the two tools that give access to resources to agents without resource support.

use std::sync::Arc;

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{CallToolResult, Content, ReadResourceResult, Resource};
use trunkline_protocol::{JsonObject, Method, RawJson, Refusal, shorten};
use trunkline_server::{BoxFuture, HandlerOutcome, IncomingCall};

use super::RegistrySnapshot;
use super::access::resource_item;
use crate::relay::{ParamRewrite, RelayRequest, relay};
use crate::upstream::Upstream;

/// Lists the resources of one server or of all servers.
pub(super) fn list(registry: &RegistrySnapshot, call: &IncomingCall) -> ServerResult {
    let server = argument(call, "server");
    if let Some(name) = server.as_deref().filter(|name| registry.with_resources_named(name).is_none()) {
        let known: Vec<_> =
            registry.visible_with_resources().map(|(server, _)| format!("`{server}`")).collect();
        let problem = format!("`{}` has no resources; {} have", shorten(name), known.join(", "));
        return ServerResult::Tool(CallToolResult::error(problem));
    }
    let wanted = |name: &str| server.as_deref().is_none_or(|server| server == name);
    let listed: Vec<_> = registry
        .resources
        .values()
        .filter(|entry| wanted(entry.owner.name().as_str()))
        .map(|entry| resource_json(entry.owner.name().as_str(), &entry.item))
        .collect();
    ServerResult::Tool(CallToolResult::text(serde_json::Value::Array(listed).to_string()))
}

/// A resource to read, and the server that has it.
pub(super) struct FoundResource {
    pub(super) server: Arc<Upstream>,
    pub(super) uri: String,
}

/// Returns the server and the parameters for reading the resource that a call names.
///
/// # Errors
/// Returns an error result for the model if the arguments are wrong.
pub(super) fn find_resource<'r>(
    registry: &'r RegistrySnapshot,
    call: &IncomingCall,
    owner_of: impl FnOnce(&str) -> Option<&'r Arc<Upstream>>,
) -> Result<FoundResource, ServerResult> {
    let failed = |problem: String| ServerResult::Tool(CallToolResult::error(problem));
    let uri = argument(call, "uri").ok_or_else(|| failed("`uri` must be a string".to_owned()))?;
    let server = match argument(call, "server") {
        Some(name) => {
            let named = registry.with_resources_named(&name);
            let named = named.ok_or_else(|| failed(format!("`{}` has no resources", shorten(&name))))?;
            Some(named).filter(|server| registry.is_visible(resource_item(server, &uri)))
        }
        None => owner_of(&uri),
    };
    match server.cloned() {
        Some(server) => Ok(FoundResource { server, uri }),
        None => Err(failed(format!("no server has the resource {}", shorten(&uri)))),
    }
}

/// Reads a resource, and returns its contents as a tool result.
pub(super) fn read(
    found: FoundResource,
    call: IncomingCall,
) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
    let mut params = JsonObject::new();
    params.set("uri", RawJson::from_text(&found.uri));
    let request =
        RelayRequest { method: Method::ResourcesRead, rewrite: ParamRewrite::Replaced(params), call };
    let reading = relay(found.server, request);
    Box::pin(async move {
        Ok(match reading.await {
            Ok(HandlerOutcome::Done(ServerResult::Relayed(read))) => {
                HandlerOutcome::Done(ServerResult::Tool(as_tool_result(read.raw())))
            }
            Ok(other) => other,
            // As a tool result the model can read the reason, and try something else.
            Err(refusal) => {
                HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(refusal.to_string())))
            }
        })
    })
}

fn as_tool_result(read: &RawJson) -> CallToolResult {
    match ReadResourceResult::read(read) {
        Ok(read) => CallToolResult {
            content: read.contents.into_iter().map(Content::embedded).collect(),
            ..CallToolResult::default()
        },
        Err(problem) => CallToolResult::error(format!("the resource is not legible: {problem}")),
    }
}

fn argument(call: &IncomingCall, name: &str) -> Option<String> {
    let arguments = call.arguments().members().ok()?;
    arguments.text(name).map(|text| text.to_string())
}

/// Describes a resource as an element of the textual list.
fn resource_json(server: &str, resource: &Resource) -> serde_json::Value {
    serde_json::json!({
        "server": server,
        "uri": resource.uri,
        "name": resource.title.as_ref().unwrap_or(&resource.name),
        "description": resource.description,
        "mimeType": resource.mime_type,
    })
}
