//! What a server of an early revision offers: without schemas for results, without forms and pages.

use std::time::Duration;

use serde_json::json;
use trunkline_client::CompletionRequest;

use super::{BOTH, Server, changes, checks, offers, questions, work};
use crate::peer::Peer;
use crate::report::{Checked, has, require, same};

/// A server of ours on a release that knew no later revision than its own.
pub(super) const SERVER: Server = Server {
    name: "",
    identity: "interop",
    // The bridge in front of it supports both.
    eras: BOTH,
    prepare: questions::prepare,
    checks: checks![
        offers::about,
        lists,
        offers::read,
        offers::read_unknown,
        offers::prompt,
        completion,
        work::call,
        work::call_fails,
        work::call_unknown_tool,
        work::call_wrong_arguments,
        work::call_concurrently,
        progress,
        questions::model,
        questions::roots,
        changes::log,
        changes::tools,
        changes::prompts_and_resources,
        changes::resource,
    ],
    legacy: checks![work::ping, work::cancel, work::timeout, work::usable_after_cancel],
    streams: &[],
    modern: checks![work::no_ping, work::cancel, work::timeout, work::usable_after_cancel],
    connects_often: false,
};

/// A server with a release that falls silent after a cancellation, and ends with the next request.
pub(super) const FRAGILE: Server = Server {
    legacy: checks![work::ping, cancel, usable_after_cancel],
    modern: checks![work::no_ping, cancel, usable_after_cancel],
    ..SERVER
};

const TOOLS: &[&str] =
    &["add", "fail", "count", "hold", "released", "log", "ask_model", "ask_roots", "change", "touch"];

async fn lists(peer: &Peer<'_>) -> Checked {
    let tools = peer.client.tools().await?;
    require(tools.skipped.is_empty(), format_args!("left out: {:?}", tools.skipped))?;
    for name in TOOLS {
        require(tools.iter().any(|tool| tool.name == *name), format_args!("there is no tool `{name}`"))?;
    }
    let add = tools.iter().find(|tool| tool.name == "add").ok_or("no `add`")?;
    same(add.description.as_deref(), Some("Adds two integers."))?;
    offers::lists_beside_tools(peer).await
}

/// Completions know no context.
async fn completion(peer: &Peer<'_>) -> Checked {
    for (completion, expected) in [
        (CompletionRequest::prompt("greet", "style", "fr"), &["friendly"][..]),
        (CompletionRequest::template("note://numbered/{number}", "number", "1"), &["1", "10"]),
    ] {
        same(&peer.client.complete(completion).await?.values, expected)?;
    }
    Ok(())
}

/// Progress has no words in the first revision.
async fn progress(peer: &Peer<'_>) -> Checked {
    let last = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let told = last.clone();
    let call = peer.client.call("count", json!({ "to": 5 })).progress(move |step| {
        *told.lock() = Some((step.progress, step.total));
    });
    has(&call.await?.text(), "counted to 5")?;
    let last = *last.lock();
    same(last, Some((5.0, Some(5.0))))
}

/// A call can be given up.
async fn cancel(peer: &Peer<'_>) -> Checked {
    let running = std::sync::Arc::new(tokio::sync::Notify::new());
    let began = running.clone();
    let call = peer.client.call("hold", json!({ "key": peer.mark })).progress(move |_| began.notify_one());
    tokio::select! {
        ended = call.into_future() => Err(format!("it was not held: {ended:?}").into()),
        () = running.notified() => Ok(()),
    }
}

/// If that ended the server, the bridge in front of it restarts it.
async fn usable_after_cancel(peer: &Peer<'_>) -> Checked {
    // A call that runs when the server ends is lost, and may or may not have run.
    while work::call(peer).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
