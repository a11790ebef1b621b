//! Notifications of our own servers: log messages and changes.

use futures_util::StreamExt as _;
use serde_json::json;
use trunkline_client::protocol::LoggingLevel;
use trunkline_client::protocol::model::ResourceBody;
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream};

use crate::peer::Peer;
use crate::report::{Checked, has, require, same};

pub(super) async fn log(peer: &Peer<'_>) -> Checked {
    peer.hear(LoggingLevel::Debug).await?;
    peer.say("log").await?;
    peer.logs.wait_for(|message| message.level == LoggingLevel::Warning).await;
    let heard = peer.logs.take();
    let levels: Vec<_> = heard.iter().map(|message| message.level).collect();
    same(levels, [LoggingLevel::Debug, LoggingLevel::Warning])?;
    for (message, data) in heard.iter().zip([r#""a detail""#, r#"{"code":7}"#]) {
        same(message.logger.as_deref(), Some("interop"))?;
        same(message.data.as_str().replace(' ', ""), data.replace(' ', ""))?;
    }
    peer.hear(LoggingLevel::Warning).await?;
    peer.say("log").await?;
    peer.logs.wait_for(|message| message.level == LoggingLevel::Warning).await;
    same(peer.logs.take().len(), 1)
}

/// Waits for a change of a kind; others may come before it.
async fn wait_for(changes: &mut ChangeStream, wanted: &ChangeEvent) -> Checked {
    while let Some(change) = changes.next().await {
        if change == *wanted {
            return Ok(());
        }
    }
    Err(format!("the stream ended without {wanted:?}").into())
}

async fn has_extra(peer: &Peer<'_>) -> Checked<bool> {
    Ok(peer.client.tools().await?.iter().any(|tool| tool.name == "extra"))
}

pub(super) async fn tools(peer: &Peer<'_>) -> Checked {
    let before = has_extra(peer).await?;
    let mut changes = peer.client.subscribe(ChangeFilter::all_lists()).await?;
    same(changes.accepted_filter(), &ChangeFilter::all_lists())?;
    peer.tell("change", json!({ "what": "tools" })).await?;
    wait_for(&mut changes, &ChangeEvent::Tools).await?;
    same(has_extra(peer).await?, !before)
}

pub(super) async fn prompts_and_resources(peer: &Peer<'_>) -> Checked {
    let mut changes = peer.client.subscribe(ChangeFilter::all_lists()).await?;
    for (what, change) in [("prompts", ChangeEvent::Prompts), ("resources", ChangeEvent::Resources)] {
        peer.tell("change", json!({ "what": what })).await?;
        wait_for(&mut changes, &change).await?;
    }
    Ok(())
}

pub(super) async fn resource(peer: &Peer<'_>) -> Checked {
    const URI: &str = "note://watched";
    let before = content(peer, URI).await?;
    has(&before, "touched")?;
    let mut changes = peer.client.subscribe(ChangeFilter::default().with_uri(URI)).await?;
    same(&changes.accepted_filter().uris, &[URI][..])?;
    for _ in 0..2 {
        let before = content(peer, URI).await?;
        peer.say("touch").await?;
        wait_for(&mut changes, &ChangeEvent::Resource(URI.to_owned())).await?;
        let after = content(peer, URI).await?;
        require(after != before, format_args!("it is still `{after}`"))?;
    }
    Ok(())
}

async fn content(peer: &Peer<'_>, uri: &str) -> Checked<String> {
    match peer.client.read(uri).await?.contents.first().map(|contents| &contents.body) {
        Some(ResourceBody::Text(text)) => Ok(text.clone()),
        other => Err(format!("{other:?}").into()),
    }
}
