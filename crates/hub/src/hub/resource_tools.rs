//! The two tools for agents that know nothing of resources, as they are run.

use std::sync::Arc;

use trunkline_protocol::codec::Reply;
use trunkline_protocol::model::{CallToolResult, Content, ReadResult, Resource};
use trunkline_protocol::{Members, Method, Raw, Refusal, shorten};
use trunkline_server::{BoxFuture, Call, Outcome};

use super::Snapshot;
use crate::relay::{Errand, Wanted, relay};
use crate::upstream::Upstream;

/// Lists the resources of one server or of all.
pub(super) fn list(registry: &Snapshot, call: &Call) -> Reply {
    let server = argument(call, "server");
    if let Some(name) = server.as_deref().filter(|name| registry.with_resources_named(name).is_none()) {
        let known: Vec<_> = registry.with_resources.iter().map(|(server, _)| format!("`{server}`")).collect();
        let problem = format!("`{}` has no resources; {} have", shorten(name), known.join(", "));
        return Reply::Tool(CallToolResult::error(problem));
    }
    let wanted = |name: &str| server.as_deref().is_none_or(|server| server == name);
    let listed: Vec<_> = registry
        .resources
        .values()
        .filter(|entry| wanted(entry.owner.name().as_str()))
        .map(|entry| described(entry.owner.name().as_str(), &entry.item))
        .collect();
    Reply::Tool(CallToolResult::text(serde_json::Value::Array(listed).to_string()))
}

/// Finds out which resource is to be read, and at which server.
///
/// # Errors
/// What is wrong with the arguments, for the model to read.
pub(super) fn whose<'r>(
    registry: &'r Snapshot,
    call: &Call,
    owner_of: impl FnOnce(&str) -> Option<&'r Arc<Upstream>>,
) -> Result<(Arc<Upstream>, Members), Reply> {
    let said = |problem: String| Reply::Tool(CallToolResult::error(problem));
    let uri = argument(call, "uri").ok_or_else(|| said("`uri` must be a string".to_owned()))?;
    let server = match argument(call, "server") {
        Some(name) => registry
            .with_resources_named(&name)
            .ok_or_else(|| said(format!("`{}` has no resources", shorten(&name))))?,
        None => match owner_of(&uri) {
            Some(server) => server,
            None => return Err(said(format!("no server has the resource {}", shorten(&uri)))),
        },
    };
    let mut params = Members::new();
    params.set("uri", Raw::from_text(&uri));
    Ok((server.clone(), params))
}

/// Reads a resource, and gives its contents as the result of a tool.
pub(super) fn read(
    server: Arc<Upstream>,
    params: Members,
    call: Call,
) -> BoxFuture<'static, Result<Outcome, Refusal>> {
    let errand = Errand { method: Method::ResourcesRead, wanted: Wanted::Other(params), call };
    let reading = relay(server, errand);
    Box::pin(async move {
        Ok(match reading.await {
            Ok(Outcome::Done(Reply::Carried(read))) => Outcome::Done(Reply::Tool(as_tool_result(read.raw()))),
            Ok(other) => other,
            // The model can read why, and ask for something else.
            Err(refusal) => Outcome::Done(Reply::Tool(CallToolResult::error(refusal.to_string()))),
        })
    })
}

fn as_tool_result(read: &Raw) -> CallToolResult {
    match ReadResult::read(read) {
        Ok(read) => CallToolResult {
            content: read.contents.into_iter().map(Content::embedded).collect(),
            ..CallToolResult::default()
        },
        Err(problem) => CallToolResult::error(format!("the resource is not legible: {problem}")),
    }
}

fn argument(call: &Call, name: &str) -> Option<String> {
    let arguments = call.arguments().members().ok()?;
    arguments.text(name).map(|text| text.to_string())
}

/// Says what a resource is, for whoever lists it as text.
fn described(server: &str, resource: &Resource) -> serde_json::Value {
    serde_json::json!({
        "server": server,
        "uri": resource.uri,
        "name": resource.title.as_ref().unwrap_or(&resource.name),
        "description": resource.description,
        "mimeType": resource.mime_type,
    })
}
