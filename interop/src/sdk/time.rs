//! `mcp-server-time`.

use serde_json::{Value, json};
use trunkline_client::{ChangeFilter, Error};

use super::{BOTH, Server, checks};
use crate::peer::Peer;
use crate::report::{Checked, at, has, require, same};

pub(super) const SERVER: Server = Server {
    name: "time",
    identity: "mcp-time",
    eras: BOTH,
    prepare: |_, _| Ok(()),
    checks: checks![lists, now, convert, wrong_zone, unknown_tool, no_changes],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

async fn lists(peer: &Peer<'_>) -> Checked {
    let tools = peer.client.tools().await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    same(names, ["get_current_time", "convert_time"])?;
    for tool in tools.iter() {
        let hints = tool.annotations.as_ref().ok_or("a tool has no hints")?;
        same(hints.read_only, Some(true))?;
    }
    Ok(())
}

async fn now(peer: &Peer<'_>) -> Checked {
    let result = peer.client.call("get_current_time", json!({ "timezone": "Etc/UTC" })).await?;
    let now: Value = result.decode()?;
    same(at(&now, "/timezone").as_str(), Some("Etc/UTC"))?;
    has(at(&now, "/datetime").as_str().unwrap_or_default(), "+00:00")
}

async fn convert(peer: &Peer<'_>) -> Checked {
    let arguments = json!({ "source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let result: Value = peer.client.call("convert_time", arguments).await?.decode()?;
    same(at(&result, "/time_difference").as_str(), Some("+9.0h"))?;
    has(at(&result, "/target/datetime").as_str().unwrap_or_default(), "T21:00:00+09:00")
}

async fn wrong_zone(peer: &Peer<'_>) -> Checked {
    let result = peer.client.call("get_current_time", json!({ "timezone": "Moon/Base" })).await?;
    require(result.is_error, format_args!("{result:?}"))?;
    has(&result.text(), "Moon/Base")
}

async fn unknown_tool(peer: &Peer<'_>) -> Checked {
    match peer.client.call("get_weather", json!({})).await {
        Err(Error::ErrorResponse(refused)) => same(refused.code, -32602),
        other => Err(format!("{other:?}").into()),
    }
}

/// Its tools never change, and it declares that.
async fn no_changes(peer: &Peer<'_>) -> Checked {
    match peer.client.subscribe(ChangeFilter::all_lists()).await {
        Err(Error::Unsupported(_)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
