//! `@modelcontextprotocol/server-everything`, over standard streams, HTTP+SSE and Streamable HTTP.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use trunkline_client::protocol::LoggingLevel;
use trunkline_client::protocol::model::{Content, ElicitAction, InputRequest, ResourceBody};
use trunkline_client::{ChangeEvent, ChangeFilter, CompletionRequest, Error, InputOrigin};

use super::{LEGACY, Server, checks};
use crate::answers::{Answers, MODEL_SAYS};
use crate::options::Options;
use crate::peer::Peer;
use crate::report::{Checked, at, has, require, same};
use crate::seen::Seen;

const FIRST_ROOT: &str = "file:///interop/first";
const SECOND_ROOT: &str = "file:///interop/second";

pub(super) const SERVER: Server = Server {
    name: "everything",
    identity: "mcp-servers/everything",
    eras: LEGACY,
    prepare,
    checks: checks![
        asked_for_roots,
        lists,
        call,
        contents,
        progress,
        cancel,
        form,
        page,
        page_first,
        model,
        roots_follow,
        log,
        resources,
        watched_resource,
        list_changes,
        prompts,
        completion,
        ping,
    ],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

fn prepare(_: &Options, answers: &Answers) -> Checked {
    answers.have_roots([FIRST_ROOT.to_owned()]);
    Ok(())
}

/// The server requests the roots as soon as the session is open, outside of any call.
async fn asked_for_roots(peer: &Peer<'_>) -> Checked {
    let (origin, _) = peer.answers.asked().wait_for(|(_, question)| *question == InputRequest::Roots).await;
    same(origin, InputOrigin::Session)
}

async fn lists(peer: &Peer<'_>) -> Checked {
    let tools = peer.client.tools().await?;
    require(tools.skipped.is_empty(), format_args!("left out: {:?}", tools.skipped))?;
    // The last three are there only for clients that can answer.
    for name in
        ["echo", "get-sum", "get-roots-list", "trigger-elicitation-request", "trigger-sampling-request"]
    {
        require(tools.iter().any(|tool| tool.name == name), format_args!("there is no tool `{name}`"))?;
    }
    same(peer.client.prompts().await?.len(), 4)?;
    require(peer.client.resources().await?.len() >= 5, "the documents are missing")?;
    same(peer.client.templates().await?.len(), 2)?;
    require(peer.client.server().instructions.is_some(), "there are no instructions")
}

async fn call(peer: &Peer<'_>) -> Checked {
    same(peer.tell("echo", json!({ "message": "hi" })).await?.as_str(), "Echo: hi")?;
    has(&peer.tell("get-sum", json!({ "a": 2, "b": 3 })).await?, "5")?;
    let weather = peer.client.call("get-structured-content", json!({ "location": "Chicago" })).await?;
    same(at(&weather.decode::<Value>()?, "/humidity").as_i64(), Some(82))?;
    let wrong = peer.client.call("get-sum", json!({ "a": "two" })).await;
    let refused =
        matches!(&wrong, Err(Error::ErrorResponse(_))) || wrong.as_ref().is_ok_and(|result| result.is_error);
    require(refused, format_args!("{wrong:?}"))
}

async fn contents(peer: &Peer<'_>) -> Checked {
    let image = peer.client.call("get-tiny-image", json!({})).await?;
    let is_image = |block: &Content| matches!(block, Content::Image(media) if media.mime_type == "image/png");
    require(image.content.iter().any(is_image), format_args!("{image:?}"))?;
    let links = peer.client.call("get-resource-links", json!({ "count": 3 })).await?;
    let count = links.content.iter().filter(|block| matches!(block, Content::ResourceLink(_))).count();
    same(count, 3)?;
    let reference = peer
        .client
        .call("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 }))
        .await?;
    let is_embedded = |block: &Content| matches!(block, Content::Resource(_));
    require(reference.content.iter().any(is_embedded), format_args!("{reference:?}"))?;
    let annotated = peer
        .client
        .call("get-annotated-message", json!({ "messageType": "error", "includeImage": true }))
        .await?;
    let priority = annotated.content.iter().find_map(|block| match block {
        Content::Text(text) => text.annotations.as_ref()?.priority,
        _ => None,
    });
    same(priority, Some(1.0))
}

async fn progress(peer: &Peer<'_>) -> Checked {
    let seen = Arc::new(Seen::default());
    let told = seen.clone();
    let arguments = json!({ "duration": 0.2, "steps": 4 });
    let call = peer.client.call("trigger-long-running-operation", arguments);
    let result = call.progress(move |step| told.put((step.progress, step.total))).await?;
    has(&result.text(), "completed")?;
    // Unread progress may be merged, and the last report always arrives.
    let steps = seen.take();
    require(steps.is_sorted(), format_args!("{steps:?}"))?;
    same(steps.last(), Some(&(4.0, Some(4.0))))
}

async fn cancel(peer: &Peer<'_>) -> Checked {
    let seen = Arc::new(Seen::default());
    let told = seen.clone();
    let arguments = json!({ "duration": 3, "steps": 60 });
    let call = peer.client.call("trigger-long-running-operation", arguments).progress(move |_| told.put(()));
    match select(call.into_future(), std::pin::pin!(seen.wait_for(|()| true))).await {
        Either::Left((result, _)) => return Err(format!("it did not take its time: {result:?}").into()),
        Either::Right(((), call)) => drop(call),
    }
    same(peer.tell("echo", json!({ "message": "still there" })).await?.as_str(), "Echo: still there")
}

async fn form(peer: &Peer<'_>) -> Checked {
    let said = peer.say("trigger-elicitation-request").await?;
    for part in
        ["- Name: ada", "- Agreed to terms: true", "- Email: ada@example.com", "- Favorite Integer: 42"]
    {
        has(&said, part)?;
    }
    for action in [ElicitAction::Decline, ElicitAction::Cancel] {
        peer.answers.will(action);
        let said = peer.say("trigger-elicitation-request").await;
        peer.answers.will(ElicitAction::Accept);
        has(&said?, if action == ElicitAction::Decline { "declined" } else { "cancelled" })?;
    }
    Ok(())
}

async fn page(peer: &Peer<'_>) -> Checked {
    peer.answers.asked().take();
    let said = peer.tell("trigger-url-elicitation", json!({ "url": "https://example.com/x" })).await?;
    has(&said, "completed the URL elicitation flow")?;
    let asked = peer.answers.asked().take();
    let [(_, InputRequest::Url(page))] = &*asked else { return Err(format!("{asked:?}").into()) };
    same(page.url.as_str(), "https://example.com/x")
}

/// A server may also refuse until a page was visited; the call is then made again.
async fn page_first(peer: &Peer<'_>) -> Checked {
    peer.answers.asked().take();
    let url = format!("https://example.com/{}", peer.mark);
    let said = peer.tell("trigger-url-elicitation", json!({ "url": url, "errorPath": true })).await?;
    has(&said, "completed the URL elicitation flow")?;
    let asked = peer.answers.asked().take();
    let [(_, InputRequest::Url(first)), (_, InputRequest::Url(second))] = &*asked else {
        return Err(format!("{asked:?}").into());
    };
    same((first.url.as_str(), second.url.as_str()), ("https://modelcontextprotocol.io", url.as_str()))
}

async fn model(peer: &Peer<'_>) -> Checked {
    let said = peer.tell("trigger-sampling-request", json!({ "prompt": "How much?" })).await?;
    has(&said, MODEL_SAYS)
}

async fn roots_follow(peer: &Peer<'_>) -> Checked {
    has(&peer.say("get-roots-list").await?, FIRST_ROOT)?;
    peer.answers.asked().take();
    peer.answers.have_roots([SECOND_ROOT.to_owned()]);
    peer.client.roots_changed().await?;
    peer.answers.asked().wait_for(|(_, question)| *question == InputRequest::Roots).await;
    // It was answered, and takes a moment to look at the answer.
    while !peer.say("get-roots-list").await?.contains(SECOND_ROOT) {}
    Ok(())
}

async fn log(peer: &Peer<'_>) -> Checked {
    peer.hear(LoggingLevel::Debug).await?;
    has(&peer.say("toggle-simulated-logging").await?, "Started")?;
    peer.logs.wait_for(|message| message.data.as_str().contains("message")).await;
    has(&peer.say("toggle-simulated-logging").await?, "Stopped")
}

async fn resources(peer: &Peer<'_>) -> Checked {
    let documents = peer.client.resources().await?;
    let document =
        documents.iter().find(|resource| resource.name == "features.md").ok_or("no features.md")?;
    let read = peer.client.read(&document.uri).await?;
    let body = read.contents.first().map(|contents| &contents.body);
    require(matches!(body, Some(ResourceBody::Text(text)) if text.contains('#')), format_args!("{body:?}"))?;
    for (uri, is_text) in
        [("demo://resource/dynamic/text/3", true), ("demo://resource/dynamic/blob/3", false)]
    {
        let read = peer.client.read(uri).await?;
        let body = read.contents.first().map(|contents| &contents.body);
        require(matches!(body, Some(ResourceBody::Text(_))) == is_text, format_args!("{body:?}"))?;
    }
    match peer.client.read("demo://resource/dynamic/text/none").await {
        Err(Error::ErrorResponse(_)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

async fn watched_resource(peer: &Peer<'_>) -> Checked {
    let uri = "demo://resource/dynamic/text/5";
    let mut changes = peer.client.subscribe(ChangeFilter::default().with_uri(uri)).await?;
    has(&peer.say("toggle-subscriber-updates").await?, "Started")?;
    same(changes.next().await, Some(ChangeEvent::Resource(uri.to_owned())))?;
    has(&peer.say("toggle-subscriber-updates").await?, "Stopped")
}

async fn list_changes(peer: &Peer<'_>) -> Checked {
    let name = format!("{}.gz", peer.mark);
    let mut changes = peer.client.subscribe(ChangeFilter::all_lists()).await?;
    let arguments = json!({ "name": name, "data": "data:text/plain,hello", "outputType": "resourceLink" });
    let result = peer.client.call("gzip-file-as-resource", arguments).await?;
    let [Content::ResourceLink(link)] = &*result.content else { return Err(format!("{result:?}").into()) };
    while changes.next().await.ok_or("the stream ended")? != ChangeEvent::Resources {}
    let listed = peer.client.resources().await?;
    require(listed.iter().any(|resource| resource.uri == link.uri), "the new resource is not listed")?;
    let read = peer.client.read(&link.uri).await?;
    let body = read.contents.first().map(|contents| &contents.body);
    require(
        matches!(body, Some(ResourceBody::Blob(blob)) if blob.starts_with("H4sI")),
        format_args!("{body:?}"),
    )
}

async fn prompts(peer: &Peer<'_>) -> Checked {
    let prompt = peer.client.get_prompt("args-prompt", json!({ "city": "Ulm", "state": "BW" })).await?;
    let text = prompt.messages.first().and_then(|message| message.content.as_text());
    same(text, Some("What's weather in Ulm, BW?"))?;
    let arguments = json!({ "resourceType": "Text", "resourceId": "1" });
    let prompt = peer.client.get_prompt("resource-prompt", arguments).await?;
    let is_embedded = prompt.messages.iter().any(|message| matches!(message.content, Content::Resource(_)));
    require(is_embedded, format_args!("{prompt:?}"))
}

async fn completion(peer: &Peer<'_>) -> Checked {
    let name = CompletionRequest::prompt("completable-prompt", "name", "");
    for (completion, expected) in [
        (CompletionRequest::prompt("completable-prompt", "department", "S"), &["Sales", "Support"][..]),
        (name.clone().context(json!({ "department": "Sales" })), &["David", "Eve", "Frank"]),
        (name, &[]),
        (CompletionRequest::template("demo://resource/dynamic/text/{resourceId}", "resourceId", "7"), &["7"]),
    ] {
        same(&peer.client.complete(completion).await?.values, expected)?;
    }
    Ok(())
}

async fn ping(peer: &Peer<'_>) -> Checked {
    peer.client.ping().await?;
    Ok(())
}
