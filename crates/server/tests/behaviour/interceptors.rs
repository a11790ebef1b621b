//! Interceptors around calls that wait, are cancelled, and come in every way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use trunkline_server::{
    ConcurrencyLimit, Confirm, Context, IncomingCall, Next, Server, Timeout, Tool, ToolError,
    TypedInputRequest, ask,
};

use crate::input_rounds::accept;
use crate::support::{ModernRequest, Peer, host, lines, note, settle, tool_text};

fn sure() -> TypedInputRequest<Confirm> {
    ask("Sure?").key("sure")
}

/// A tool that requests input, and then works for a while.
fn careful() -> Tool {
    Tool::new("careful").input_schema(json!({ "type": "object" })).run_raw(|cx: Context, _| async move {
        cx.ask(sure()).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok::<_, ToolError>("done")
    })
}

#[tokio::test(start_paused = true)]
async fn timeout_is_paused_while_a_call_is_suspended() {
    for (limit, expected) in [(21, "done"), (19, "it took longer than 19s")] {
        let host = host(&Server::new("s").with(careful).layer(Timeout::new(Duration::from_secs(limit))));
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool("careful")).await;
            tokio::time::sleep(Duration::from_secs(300)).await;
            let retry = ModernRequest::tool("careful")
                .id("retry")
                .after(&asked)
                .answers(json!({ "sure": accept(true) }));
            let answer = line.call(&retry).await;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(expected), "{limit}: {answer}");
        }
        assert_eq!(host.load(), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_frees_its_concurrency_limit_slot() {
    let waits = Tool::new("waits").run(async || std::future::pending::<()>().await);
    let quick = Tool::new("quick").run(async || "quick");
    let limit = ConcurrencyLimit::per_principal(1);
    let host = host(&Server::new("s").with((waits, quick)).layer(limit));
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    let call = |id: &str, tool: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } });
    peer.send(&call("first", "waits")).await;
    settle().await;
    let refused = peer.call(&call("second", "quick")).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("at most 1 calls"), "{refused}");
    peer.send(&note("notifications/cancelled", json!({ "requestId": "first" }))).await;
    settle().await;
    assert_eq!(tool_text(&peer.call(&call("third", "quick")).await), "quick");
}

#[tokio::test(start_paused = true)]
async fn interceptors_see_calls_of_both_eras_over_every_transport() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let layer = move |call: IncomingCall, next: Next| {
        count.fetch_add(1, Ordering::SeqCst);
        next.run(call)
    };
    let server = Server::new("s").with(Tool::new("quick").run(async || "quick")).layer(layer);
    let host = host(&server);
    let mut expected = 0;
    for mut line in lines(&host) {
        assert_eq!(tool_text(&line.call(&ModernRequest::tool("quick")).await), "quick");
        expected += 1;
        assert_eq!(seen.load(Ordering::SeqCst), expected);
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "quick" } });
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = Peer::initialized(&host, revision).await;
        assert_eq!(tool_text(&peer.call(&call).await), "quick");
        expected += 1;
    }
    server.call("quick", json!({})).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), expected + 1);
    assert!(expected >= 6, "both carriers and four revisions");
}
