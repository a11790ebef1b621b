//! How our own servers describe themselves and their parts.

use serde_json::json;
use trunkline_client::protocol::model::{ResourceBody, Role};
use trunkline_client::{CompletionRequest, Error};

use crate::peer::Peer;
use crate::report::{Checked, require, same};

const TOOLS: &[&str] = &[
    "add",
    "fail",
    "count",
    "hold",
    "released",
    "log",
    "interrupt",
    "ask_name",
    "ask_page",
    "ask_twice",
    "ask_model",
    "ask_roots",
    "change",
    "touch",
];

pub(super) async fn about(peer: &Peer<'_>) -> Checked {
    let server = peer.client.server();
    same(server.instructions.as_deref(), Some("Call add first."))?;
    let capabilities = &server.capabilities;
    require(capabilities.tools.is_some_and(|tools| tools.list_changed), "tools do not change")?;
    require(capabilities.prompts.is_some_and(|prompts| prompts.list_changed), "prompts do not change")?;
    let resources = capabilities.resources.unwrap_or_default();
    require(resources.list_changed && resources.subscribe, format_args!("{resources:?}"))?;
    require(capabilities.completions && capabilities.logging, format_args!("{capabilities:?}"))
}

pub(super) async fn lists(peer: &Peer<'_>) -> Checked {
    let tools = peer.client.tools().await?;
    require(tools.skipped.is_empty(), format_args!("left out: {:?}", tools.skipped))?;
    for name in TOOLS {
        require(tools.iter().any(|tool| tool.name == *name), format_args!("there is no tool `{name}`"))?;
    }
    let add = tools.iter().find(|tool| tool.name == "add").ok_or("no `add`")?;
    same(add.display_name(), "Adder")?;
    same(add.description.as_deref(), Some("Adds two integers."))?;
    require(add.output_schema.is_some(), "`add` has no schema for its result")?;
    let hints = add.annotations.as_ref().ok_or("`add` has no hints")?;
    same((hints.read_only, hints.open_world), (Some(true), Some(false)))?;
    lists_beside_tools(peer).await
}

/// What is listed beside tools, which is the same in every revision.
pub(super) async fn lists_beside_tools(peer: &Peer<'_>) -> Checked {
    let prompts = peer.client.prompts().await?;
    let greet = prompts.iter().find(|prompt| prompt.name == "greet").ok_or("no `greet`")?;
    let arguments: Vec<_> = greet.arguments.iter().map(|argument| argument.name.as_str()).collect();
    same(arguments, ["name", "style"])?;
    let resources = peer.client.resources().await?;
    for uri in ["note://plain", "note://bytes", "note://watched"] {
        require(resources.iter().any(|resource| resource.uri == uri), format_args!("no `{uri}`"))?;
    }
    let templates = peer.client.templates().await?;
    let templates: Vec<_> = templates.iter().map(|template| template.uri_template.as_str()).collect();
    same(templates, ["note://numbered/{number}"])
}

pub(super) async fn read(peer: &Peer<'_>) -> Checked {
    for (uri, mime, body) in [
        ("note://plain", "text/plain", ResourceBody::Text("plain words".to_owned())),
        ("note://bytes", "application/octet-stream", ResourceBody::Blob("AP8B".to_owned())),
        ("note://numbered/7", "text/plain", ResourceBody::Text("number 7".to_owned())),
    ] {
        let read = peer.client.read(uri).await?;
        let [contents] = &*read.contents else { return Err(format!("{uri}: {read:?}").into()) };
        same(contents.uri.as_str(), uri)?;
        same(&contents.body, &body)?;
        require(
            contents.mime_type.as_deref().is_none_or(|found| found == mime),
            format_args!("{contents:?}"),
        )?;
    }
    Ok(())
}

pub(super) async fn read_unknown(peer: &Peer<'_>) -> Checked {
    match peer.client.read("note://nothing/at/all").await {
        Err(Error::ErrorResponse(refused)) => {
            require(!refused.message.is_empty(), "the refusal has no words")
        }
        other => Err(format!("{other:?}").into()),
    }
}

pub(super) async fn prompt(peer: &Peer<'_>) -> Checked {
    for (arguments, expected) in [
        (json!({ "name": "Ann" }), "Greet Ann in a plain way."),
        (json!({ "name": "Ann", "style": "formal" }), "Greet Ann in a formal way."),
    ] {
        let prompt = peer.client.get_prompt("greet", arguments).await?;
        let [message] = &*prompt.messages else { return Err(format!("{prompt:?}").into()) };
        same(message.role, Role::User)?;
        same(message.content.as_text(), Some(expected))?;
    }
    match peer.client.get_prompt("nothing", json!({})).await {
        Err(Error::ErrorResponse(refused)) => {
            require(!refused.message.is_empty(), "the refusal has no words")
        }
        other => Err(format!("{other:?}").into()),
    }
}

pub(super) async fn completion(peer: &Peer<'_>) -> Checked {
    for (completion, expected) in [
        (CompletionRequest::prompt("greet", "style", "f"), &["formal", "friendly"][..]),
        (CompletionRequest::prompt("greet", "style", "fr"), &["friendly"]),
        (CompletionRequest::prompt("greet", "style", "f").context(json!({ "name": "king" })), &["formal"]),
        (CompletionRequest::template("note://numbered/{number}", "number", "1"), &["1", "10"]),
    ] {
        same(&peer.client.complete(completion).await?.values, expected)?;
    }
    Ok(())
}
