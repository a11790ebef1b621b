//! What a server sends in vain is counted by kind.

use bytes::Bytes;
use serde_json::json;
use trunkline_server::UpstreamItem;

use crate::support::{
    OLD, ScriptReply, TestServers, eager, echo_server, plain_client, script, tools, until, within,
};

#[tokio::test]
async fn whatever_a_server_loses_is_counted_by_its_kind() {
    let town = TestServers::default();
    let (script, opener) = script(|_, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({
            "protocolVersion": OLD.as_str(),
            "capabilities": { "tools": {}, "prompts": {} },
            "serverInfo": { "name": "a", "version": "1" },
            "instructions": "x".repeat(100_000),
        })),
        Some("tools/list") => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let mut task = tool("slow");
            task["execution"] = json!({ "taskSupport": "required" });
            ScriptReply::Result(json!({ "tools": [tool("b__t"), task] }))
        }
        Some("prompts/list") => ScriptReply::Error(json!({ "code": -1, "message": "no list" })),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    town.add_server("a__b", &echo_server(&["t"]), OLD);
    let kinds = [
        UpstreamItem::Truncated,
        UpstreamItem::ListRefused,
        UpstreamItem::TaskRequired,
        UpstreamItem::NameClash,
        UpstreamItem::Paused,
    ];
    let before = kinds.map(UpstreamItem::counted);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("a__b")])).await;
    let client = plain_client(&hub, OLD).await;
    // Neither gets the name, and the tool that requires a task is hidden.
    until(|| hub.status_of("a").unwrap().tools == 2 && hub.status_of("a__b").unwrap().tools == 1).await;
    assert!(!tools(&client).await.iter().any(|name| name == "a__b__t" || name.ends_with("slow")));
    let peer = script.newest();
    tokio::task::spawn_blocking(move || {
        // Written once, so that a busy machine too sends them faster than a server may.
        let noise = json!({ "jsonrpc": "2.0", "method": "notifications/message",
            "params": { "level": "info", "data": "noise" } });
        let noise = Bytes::from(noise.to_string());
        for _ in 0..40_000 {
            peer.receive(noise.clone());
        }
    })
    .await
    .unwrap();
    until(|| kinds.iter().zip(before).all(|(kind, before)| kind.counted() > before)).await;
}
