//! Calls to our own servers: their results, their notifications, and their cancellation.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use serde_json::{Value, json};
use trunkline_client::{Error, ProgressUpdate};

use crate::peer::Peer;
use crate::report::{Checked, has, require, same};
use crate::seen::Seen;

pub(super) async fn call(peer: &Peer<'_>) -> Checked {
    let result = peer.client.call("add", json!({ "a": 2, "b": 3 })).await?;
    same(result.decode::<Value>()?, json!({ "sum": 5 }))?;
    has(&result.text(), "5")
}

pub(super) async fn call_fails(peer: &Peer<'_>) -> Checked {
    let result = peer.client.call("fail", json!({})).await?;
    require(result.is_error, "it did not fail")?;
    has(&result.text(), "it went wrong")
}

pub(super) async fn call_unknown_tool(peer: &Peer<'_>) -> Checked {
    // Some generations refuse, others answer that the tool failed.
    match peer.client.call("nothing", json!({})).await {
        Err(Error::ErrorResponse(refused)) => has(&refused.message, "nothing"),
        Ok(result) if result.is_error => has(&result.text(), "nothing"),
        other => Err(format!("{other:?}").into()),
    }
}

pub(super) async fn call_wrong_arguments(peer: &Peer<'_>) -> Checked {
    match peer.client.call("add", json!({ "a": "two", "b": 3 })).await {
        Err(Error::ErrorResponse(_)) => Ok(()),
        Ok(result) if result.is_error => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

pub(super) async fn call_concurrently(peer: &Peer<'_>) -> Checked {
    let call = async |a: i64| peer.client.call("add", json!({ "a": a, "b": 1 })).await?.decode::<Value>();
    for (a, result) in (0_i64..).zip(join_all((0..32).map(call)).await) {
        same(result?, json!({ "sum": a + 1 }))?;
    }
    Ok(())
}

pub(super) async fn progress(peer: &Peer<'_>) -> Checked {
    let seen = Arc::new(Seen::default());
    let told = seen.clone();
    let call = peer.client.call("count", json!({ "to": 5 })).progress(move |step| told.put(words(step)));
    has(&call.await?.text(), "counted to 5")?;
    // Unread progress may be merged, and the last report always arrives.
    let steps = seen.take();
    require(steps.is_sorted(), format_args!("{steps:?}"))?;
    same(steps.last().map(String::as_str), Some("5 of 5: at 5"))
}

fn words(step: &ProgressUpdate) -> String {
    let ProgressUpdate { progress, total, message, .. } = step;
    format!("{progress} of {}: {}", total.unwrap_or_default(), message.as_deref().unwrap_or_default())
}

/// Dropping a call reaches the server.
pub(super) async fn cancel(peer: &Peer<'_>) -> Checked {
    let seen = Arc::new(Seen::default());
    let told = seen.clone();
    let call = peer.client.call("hold", json!({ "key": peer.mark })).progress(move |_| told.put(()));
    let running = seen.wait_for(|()| true);
    match select(call.into_future(), std::pin::pin!(running)).await {
        Either::Left((result, _)) => return Err(format!("it was not held: {result:?}").into()),
        Either::Right(((), call)) => drop(call),
    }
    has(&peer.tell("released", json!({ "key": peer.mark })).await?, "released")
}

/// A call that times out ends, and the server gets its cancellation.
pub(super) async fn timeout(peer: &Peer<'_>) -> Checked {
    let key = format!("{}-timeout", peer.mark);
    let call = peer.client.call("hold", json!({ "key": key })).timeout(Duration::from_millis(300));
    match call.await {
        Err(Error::TimedOut { .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    has(&peer.tell("released", json!({ "key": key })).await?, "released")
}

pub(super) async fn usable_after_cancel(peer: &Peer<'_>) -> Checked {
    call(peer).await
}

pub(super) async fn ping(peer: &Peer<'_>) -> Checked {
    peer.client.ping().await?;
    Ok(())
}

pub(super) async fn no_ping(peer: &Peer<'_>) -> Checked {
    match peer.client.ping().await {
        Err(Error::Unsupported(_)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A stream that the server drops in the middle of a call is taken up again.
pub(super) async fn resume(peer: &Peer<'_>) -> Checked {
    let began = std::time::Instant::now();
    has(&peer.say("interrupt").await?, "went on")?;
    // The server requests a reconnection after 50 ms.
    require(began.elapsed() >= Duration::from_millis(45), "the stream was not dropped at all")
}
