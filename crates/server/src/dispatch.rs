//! Dispatches a method to the part that answers it.

use std::collections::BTreeMap;

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::{JsonObject, Method, Params, RawJson, Refusal};

use crate::call::{BoxFuture, HandlerOutcome, IncomingCall};
use crate::prompt::read_texts;
use crate::registry::{ListKind, PartRegistry, page};
use crate::server::ServerHandle;
use trunkline_protocol::shorten;

type DispatchFuture = BoxFuture<'static, Result<HandlerOutcome, Refusal>>;

/// Answers a call from the server's current registry.
///
/// The snapshot is released before the returned future runs.
pub(crate) fn answer(server: &ServerHandle, call: IncomingCall) -> DispatchFuture {
    let registry = server.registry();
    if call.method == Method::ToolsCall && registry.features.tools {
        // The hot path: the handler's own future is the only one that is boxed.
        return call_tool(&registry, call);
    }
    answer_other(server, &registry, call)
}

/// Answers every method but `tools/call`: separate, so that the code of the hot path stays small.
#[inline(never)]
fn answer_other(server: &ServerHandle, registry: &PartRegistry, call: IncomingCall) -> DispatchFuture {
    if !is_offered(call.method, registry) {
        return ready(Err(Refusal::METHOD_NOT_FOUND));
    }
    match call.method {
        Method::ToolsList | Method::PromptsList | Method::ResourcesList | Method::TemplatesList => {
            ready(list(server, registry, &call))
        }
        Method::PromptsGet => get_prompt(registry, call),
        Method::ResourcesRead => read_resource(registry, &call),
        Method::Complete => complete(registry, call.params()).unwrap_or_else(|refusal| ready(Err(refusal))),
        _ => ready(Err(Refusal::METHOD_NOT_FOUND)),
    }
}

fn ready(answer: Result<HandlerOutcome, Refusal>) -> DispatchFuture {
    Box::pin(std::future::ready(answer))
}

fn is_offered(method: Method, registry: &PartRegistry) -> bool {
    match method {
        Method::ToolsList | Method::ToolsCall => registry.features.tools,
        Method::PromptsList | Method::PromptsGet => registry.features.prompts,
        Method::ResourcesList | Method::TemplatesList | Method::ResourcesRead => registry.features.resources,
        Method::Complete => registry.features.completions,
        // The other methods belong to the protocol, and the edges answer them.
        _ => false,
    }
}

fn call_tool(registry: &PartRegistry, call: IncomingCall) -> DispatchFuture {
    match call.name().and_then(|name| registry.tool(&name)) {
        Some(tool) => tool.call(call),
        None => no_such_tool(&call),
    }
}

#[cold]
fn no_such_tool(call: &IncomingCall) -> DispatchFuture {
    let named = call.params().text("name");
    ready(Err(named.map_or_else(|refusal| refusal, |name| unknown("tool", &name))))
}

fn unknown(kind: &str, name: &str) -> Refusal {
    Refusal::INVALID_PARAMS.with_message(format!("Unknown {kind}: {}", shorten(name)))
}

fn list(
    server: &ServerHandle,
    registry: &PartRegistry,
    call: &IncomingCall,
) -> Result<HandlerOutcome, Refusal> {
    let revision = call.context.revision();
    let (size, cache, params) = (server.page_size(), server.list_cache(), call.params());
    let reply = match call.method {
        Method::ToolsList => {
            page(ListKind::Tools, &registry.tools, params, size, cache, |tool| tool.list_item(revision))
        }
        Method::PromptsList => page(ListKind::Prompts, &registry.prompts, params, size, cache, |prompt| {
            prompt.list_item(revision)
        }),
        Method::ResourcesList => {
            page(ListKind::Resources, &registry.resources, params, size, cache, |resource| {
                resource.list_item(revision)
            })
        }
        _ => page(ListKind::Templates, &registry.templates, params, size, cache, |template| {
            template.list_item(revision)
        }),
    };
    reply.map(|reply| HandlerOutcome::Done(ServerResult::List(reply)))
}

fn get_prompt(registry: &PartRegistry, call: IncomingCall) -> DispatchFuture {
    let name = match call.params().text("name") {
        Ok(name) => name,
        Err(refusal) => return ready(Err(refusal)),
    };
    match registry.prompts.get(&*name) {
        Some(prompt) => prompt.get(call),
        None => ready(Err(unknown("prompt", &name))),
    }
}

fn read_resource(registry: &PartRegistry, call: &IncomingCall) -> DispatchFuture {
    let uri = match call.params().text("uri") {
        Ok(uri) => uri,
        Err(refusal) => return ready(Err(refusal)),
    };
    if let Some(resource) = registry.resources.get(&*uri) {
        return resource.read(call.context.clone());
    }
    let expanded = registry.template_order.iter().find_map(|template| template.read(&call.context, &uri));
    expanded.unwrap_or_else(|| ready(Err(Refusal::resource_not_found(&uri))))
}

fn complete(registry: &PartRegistry, params: &Params) -> Result<DispatchFuture, Refusal> {
    let reference = object(params.get("ref"), "ref")?;
    let argument = object(params.get("argument"), "argument")?;
    let name = text(&argument, "argument", "name")?;
    let value = text(&argument, "argument", "value")?;
    let given = given_arguments(params)?;
    match text(&reference, "ref", "type")?.as_str() {
        "ref/prompt" => {
            let prompt = text(&reference, "ref", "name")?;
            let entry = registry.prompts.get(&*prompt).ok_or_else(|| unknown("prompt", &prompt))?;
            Ok(entry.completers().complete(&name, value, given))
        }
        "ref/resource" => {
            let uri = text(&reference, "ref", "uri")?;
            match registry.templates.get(&*uri) {
                Some(template) => Ok(template.completers().complete(&name, value, given)),
                None => Err(unknown("resource template", &uri)),
            }
        }
        other => {
            Err(Refusal::INVALID_PARAMS
                .with_message(format!("`ref.type` has no meaning: {}", shorten(other))))
        }
    }
}

/// Reads the other arguments of a completion request, which are already filled in.
fn given_arguments(params: &Params) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(context) = params.get("context").filter(|raw| !raw.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let context = object(Some(context), "context")?;
    match context.get("arguments").filter(|raw| !raw.is_null()) {
        Some(arguments) => Ok(read_texts(arguments, "context.arguments")?.into_iter().collect()),
        None => Ok(BTreeMap::new()),
    }
}

fn object(value: Option<&RawJson>, place: &str) -> Result<JsonObject, Refusal> {
    let members = value.and_then(|raw| raw.members().ok());
    members.ok_or_else(|| Refusal::INVALID_PARAMS.with_message(format!("`{place}` must be an object")))
}

fn text(object: &JsonObject, place: &str, key: &str) -> Result<String, Refusal> {
    let text = object.get(key).and_then(RawJson::as_text).map(std::borrow::Cow::into_owned);
    text.ok_or_else(|| Refusal::INVALID_PARAMS.with_message(format!("`{place}.{key}` must be a string")))
}
