//! Channels at their limit of running calls: a call that waits for input frees one slot, and the other calls are
//! queued or refused.

use serde_json::json;
use trunkline_server::{Confirm, Context, Server, ServerLimits, Tool, ToolError, ask};

use crate::support::{ModernRequest, Peer, code, host_with, legacy_tool, note, settle, tool_text};

#[tokio::test(start_paused = true)]
async fn call_waiting_for_several_inputs_frees_one_call_slot() {
    let server = Server::new("s")
        .with(Tool::new("asks").run(async |cx: Context| -> Result<String, ToolError> {
            cx.ask_all((ask::<Confirm>("A?"), ask::<Confirm>("B?"), ask::<Confirm>("C?"))).await?;
            Ok("asked".to_owned())
        }))
        .with(Tool::new("endless").run(async || std::future::pending::<()>().await))
        .with(Tool::new("quick").run(async || "quick"));
    let host = host_with(&server, ServerLimits { calls_per_channel: 2, ..ServerLimits::default() });
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

fn endless_and_quick() -> Server {
    Server::new("s")
        .with(Tool::new("endless").run(async || std::future::pending::<()>().await))
        .with(Tool::new("quick").run(async || "quick"))
}

#[tokio::test(start_paused = true)]
async fn queued_batch_request_can_be_cancelled() {
    let host =
        host_with(&endless_and_quick(), ServerLimits { calls_per_channel: 1, ..ServerLimits::default() });
    let mut peer = Peer::initialized(&host, "2025-03-26").await;
    peer.send(&legacy_tool("runs", "endless")).await;
    peer.send(&json!([legacy_tool("gone", "endless"), legacy_tool("stays", "quick")])).await;
    peer.send(&json!([legacy_tool("gone too", "endless")])).await;
    settle().await;
    for id in ["gone", "gone too", "runs"] {
        peer.send(&note("notifications/cancelled", json!({ "requestId": id }))).await;
    }
    let answers = peer.received().await;
    let [answer] = answers.as_slice() else { panic!("one batch has one answer: {answers:?}") };
    let [answer] = answer.as_array().unwrap().as_slice() else { panic!("one call is left: {answer}") };
    assert_eq!((&answer["id"], tool_text(answer)), (&json!("stays"), "quick"));
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_request_of_a_batch_beyond_the_queue_is_refused_by_id() {
    let limits = ServerLimits { calls_per_channel: 1, message_bytes: 1, ..ServerLimits::default() };
    let host = host_with(&endless_and_quick(), limits);
    let mut peer = Peer::initialized(&host, "2025-03-26").await;
    for id in ["runs", "waits"] {
        peer.send(&legacy_tool(id, "endless")).await;
    }
    let refused =
        json!([legacy_tool(1, "quick"), note("notifications/x", json!({})), legacy_tool(2, "quick")]);
    peer.send(&refused).await;
    let answers = peer.receive().await;
    let told: Vec<_> =
        answers.as_array().unwrap().iter().map(|answer| (&answer["id"], code(answer))).collect();
    assert_eq!(told, [(&json!(1), -32603), (&json!(2), -32603)], "{answers}");
}

#[tokio::test(start_paused = true)]
async fn request_ids_are_unique_across_eras_on_a_channel() {
    let host = host_with(&endless_and_quick(), ServerLimits::default());
    let mut peer = Peer::initialized(&host, "2025-03-26").await;
    let modern = |id: &str, tool: &str| ModernRequest::tool(tool).id(id).value();
    let listen = ModernRequest::new("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }));
    peer.send(&modern("modern", "endless")).await;
    peer.send(&legacy_tool("legacy", "endless")).await;
    peer.send(&listen.clone().id("listen").value()).await;
    assert_eq!(peer.receive().await["method"], "notifications/subscriptions/acknowledged");
    for (id, again) in [
        ("modern", legacy_tool("modern", "quick")),
        ("listen", legacy_tool("listen", "quick")),
        ("legacy", modern("legacy", "quick")),
        ("legacy", listen.id("legacy").value()),
        ("modern", json!([legacy_tool("modern", "quick")])),
    ] {
        peer.send(&again).await;
        let answer = peer.receive().await;
        let answer = answer.get(0).unwrap_or(&answer);
        assert_eq!((code(answer), &answer["id"]), (-32600, &json!(id)), "{again}");
    }
    assert_eq!(host.load(), (2, 0), "the first ones run on");
}
