//! Channels on which as many calls run as may: those that wait for their client make room for others, each for one.

use serde_json::json;
use trunkline_server::{Confirm, Context, Limits, Server, Tool, ToolError, ask};

use crate::support::{Peer, host_with, legacy_tool, note, settle, tool_text};

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_several_answers_makes_room_for_one_other() {
    let server = Server::new("s")
        .with(Tool::new("asks").run(async |cx: Context| -> Result<String, ToolError> {
            cx.ask_all((ask::<Confirm>("A?"), ask::<Confirm>("B?"), ask::<Confirm>("C?"))).await?;
            Ok("asked".to_owned())
        }))
        .with(Tool::new("endless").run(async || std::future::pending::<()>().await))
        .with(Tool::new("quick").run(async || "quick"));
    let host = host_with(&server, Limits { calls_per_channel: 2, ..Limits::default() });
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool("asks", "asks")).await;
    assert_eq!(peer.received().await.len(), 3, "three questions of one call");
    for id in ["one", "two"] {
        peer.send(&legacy_tool(id, "endless")).await;
    }
    settle().await;
    assert_eq!(host.load(), (3, 0), "one that waits, and as many beside it as may run");
    peer.send(&legacy_tool("late", "quick")).await;
    let early = peer.received().await;
    assert!(early.is_empty(), "there is no room for a third: {early:?}");
    peer.send(&note("notifications/cancelled", json!({ "requestId": "one" }))).await;
    assert_eq!(tool_text(&peer.receive().await), "quick");
}
