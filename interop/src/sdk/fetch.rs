//! `mcp-server-fetch`, with a page on this machine.

use serde_json::json;
use trunkline_client::Error;

use super::{BOTH, Server, checks};
use crate::page::{WORDS, serve};
use crate::peer::Peer;
use crate::report::{Checked, has, require};

pub(super) const SERVER: Server = Server {
    name: "fetch",
    identity: "mcp-fetch",
    eras: BOTH,
    prepare: |_, _| Ok(()),
    checks: checks![lists, tool, missing_page, prompt, wrong_arguments],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

async fn lists(peer: &Peer<'_>) -> Checked {
    require(peer.client.tools().await?.iter().any(|tool| tool.name == "fetch"), "no tool `fetch`")?;
    require(peer.client.prompts().await?.iter().any(|prompt| prompt.name == "fetch"), "no prompt `fetch`")
}

async fn tool(peer: &Peer<'_>) -> Checked {
    let url = format!("http://{}/page", serve().await?);
    has(&peer.tell("fetch", json!({ "url": url })).await?, WORDS)?;
    let part = peer.tell("fetch", json!({ "url": url, "max_length": 5, "raw": true })).await?;
    has(&part, "words")?;
    require(!part.contains(WORDS), part)
}

async fn missing_page(peer: &Peer<'_>) -> Checked {
    let url = format!("http://{}/nothing", serve().await?);
    let result = peer.client.call("fetch", json!({ "url": url })).await?;
    require(result.is_error, format_args!("{result:?}"))?;
    has(&result.text(), "404")
}

async fn prompt(peer: &Peer<'_>) -> Checked {
    let url = format!("http://{}/page", serve().await?);
    let prompt = peer.client.get_prompt("fetch", json!({ "url": url })).await?;
    let text = prompt.messages.first().and_then(|message| message.content.as_text()).unwrap_or_default();
    has(text, WORDS)
}

async fn wrong_arguments(peer: &Peer<'_>) -> Checked {
    match peer.client.get_prompt("fetch", json!({})).await {
        Err(Error::ErrorResponse(_)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
