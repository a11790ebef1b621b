//! Batches, which one revision has: 2025-03-26.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trunkline_server::protocol::model::CreateMessageRequest;
use trunkline_server::{Context, Host, Server, Tool, ToolError, sample};

use crate::support::{
    Client, JSON_ONLY, ModernRequest, Peer, code, host, legacy, legacy_tool, note, response, settle,
    tool_text,
};

const BATCHES: &str = "2025-03-26";

fn server() -> Server {
    Server::new("s")
        .with(Tool::new("hello").run(async || "hello"))
        .with(Tool::new("slow").run(async |cx: Context| {
            cx.progress(1, 1);
            tokio::task::yield_now().await;
            "slow"
        }))
        .with(Tool::new("sample").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(sample(CreateMessageRequest::new([], 5))).await?.model)
        }))
}

async fn both(host: &Host) -> (Client, Peer) {
    (Client::new(host).initialized(BATCHES).await, Peer::initialized(host, BATCHES).await)
}

/// Sorts the responses of a batch by the text of their ids, each with its outcome.
#[track_caller]
fn sorted(answers: &Value) -> Vec<(String, String)> {
    let mut said = BTreeMap::new();
    for answer in answers.as_array().unwrap_or_else(|| panic!("not a batch: {answers}")) {
        let what = match (&answer["error"]["code"], &answer["result"]["content"][0]["text"]) {
            (Value::Number(code), _) => code.to_string(),
            (_, Value::String(text)) => text.clone(),
            _ => answer["result"].to_string(),
        };
        assert_eq!(said.insert(answer["id"].to_string(), what), None, "{answers}");
    }
    said.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn batch_gets_one_response_array_without_entries_for_notifications() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    for (batch, answers) in [
        (json!([legacy_tool(1, "hello")]), vec![("1", "hello")]),
        (json!([legacy_tool("a", "slow"), legacy_tool(1, "hello")]), vec![("\"a\"", "slow"), ("1", "hello")]),
        (
            json!([
                note("notifications/initialized", json!({})),
                legacy(2, "ping", json!({})),
                legacy(3, "no/such", json!({})),
                { "jsonrpc": "1.0", "id": 4, "method": "ping" },
                legacy_tool(5, "nobody"),
                legacy_tool(6, "slow"),
            ]),
            vec![("2", "{}"), ("3", "-32601"), ("4", "-32600"), ("5", "-32602"), ("6", "slow")],
        ),
    ] {
        let expected: Vec<_> =
            answers.into_iter().map(|(id, what)| (id.to_owned(), what.to_owned())).collect();
        let over_http = client.post(&batch).await;
        assert_eq!(over_http.status, 200);
        assert_eq!(sorted(&over_http.answer().await), expected);
        let json_only = client.clone().with("accept", JSON_ONLY).post(&batch).await;
        assert!(!json_only.is_stream());
        assert_eq!(sorted(&json_only.answer().await), expected);
        peer.send(&batch).await;
        assert_eq!(sorted(&peer.receive().await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_batched_call_precedes_the_responses() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    let call =
        |id: u64| legacy(id, "tools/call", json!({ "name": "slow", "_meta": { "progressToken": id } }));
    let batch = json!([call(1), call(2)]);
    let mut messages = client.post(&batch).await.rest().await;
    assert_eq!(sorted(&messages.pop().unwrap()).len(), 2);
    let tokens: Vec<_> = messages.iter().map(|message| message["params"]["progressToken"].clone()).collect();
    assert_eq!(tokens, [json!(1), json!(2)]);
    peer.send(&batch).await;
    assert_eq!(peer.received().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn non_finite_progress_is_dropped_and_later_progress_is_sent() {
    let tool = Tool::new("odd").run(async |cx: Context| {
        cx.progress(f64::NEG_INFINITY, 1);
        cx.progress(f64::INFINITY, 1);
        cx.progress(f64::NAN, 1);
        cx.progress(1, f64::INFINITY);
        cx.progress(2, 4);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        "done"
    });
    let host = host(&Server::new("s").with(tool));
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    let params = json!({ "name": "odd", "_meta": { "progressToken": 1 } });
    peer.send(&legacy(1, "tools/call", params)).await;
    for expected in [
        json!({ "progressToken": 1, "progress": 1 }),
        json!({ "progressToken": 1, "progress": 2, "total": 4 }),
    ] {
        assert_eq!(peer.receive().await["params"], expected);
    }
    assert_eq!(tool_text(&peer.receive().await), "done");
}

#[tokio::test(start_paused = true)]
async fn batch_without_requests_is_accepted() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    let mut stream = client.post(&json!([legacy_tool(1, "sample"), legacy_tool(2, "hello")])).await;
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" });
    let answers =
        json!([response(&question, model.clone()), note("notifications/roots/list_changed", json!({}))]);
    let accepted = client.post(&answers).await;
    assert_eq!(accepted.status, 202);
    let expected = [("1".to_owned(), "m".to_owned()), ("2".to_owned(), "hello".to_owned())];
    assert_eq!(sorted(&stream.answer().await), expected);

    peer.send(&json!([legacy_tool(1, "sample")])).await;
    let question = peer.receive().await;
    peer.send(&json!([response(&question, model)])).await;
    assert_eq!(sorted(&peer.receive().await), expected[..1]);
    peer.send(&json!([note("notifications/initialized", json!({}))])).await;
    assert!(peer.received().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn empty_or_oversized_batch_is_refused() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    let of = |length: u64| Value::Array((0..length).map(|id| legacy_tool(id, "hello")).collect());
    for wrong in [of(0), of(33), of(1000)] {
        let refused = client.post(&wrong).await;
        assert_eq!(refused.status, 400);
        assert_eq!(code(&refused.answer().await), -32600);
        peer.send(&wrong).await;
        assert_eq!(code(&peer.receive().await), -32600);
    }
    assert_eq!(client.post(&of(32)).await.answer().await.as_array().unwrap().len(), 32);
    peer.send(&of(32)).await;
    assert_eq!(peer.receive().await.as_array().unwrap().len(), 32);
}

#[tokio::test(start_paused = true)]
async fn initialize_in_a_batch_is_refused() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    let hello = legacy("h", "initialize", json!({ "protocolVersion": BATCHES, "capabilities": {} }));
    let batch = json!([hello, legacy_tool(1, "hello")]);
    let expected = [("\"h\"".to_owned(), "-32600".to_owned()), ("1".to_owned(), "hello".to_owned())];
    assert_eq!(sorted(&client.post(&batch).await.answer().await), expected);
    peer.send(&batch).await;
    assert_eq!(sorted(&peer.receive().await), expected);
    assert_eq!(client.service.sessions(), 1);

    let outside = client.without("mcp-session-id").post(&batch).await;
    assert_eq!((outside.status, outside.header("mcp-session-id")), (400, None));
    let mut fresh = Peer::new(&host);
    fresh.send(&batch).await;
    assert_eq!(code(&fresh.receive().await), -32600);
}

#[tokio::test(start_paused = true)]
async fn batch_with_a_modern_request_is_refused() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    for batch in [
        json!([ModernRequest::tool("hello").value()]),
        json!([legacy_tool(1, "hello"), ModernRequest::tool("hello").id(2).value()]),
    ] {
        for client in [client.clone(), client.clone().without("mcp-session-id")] {
            let refused = client.post(&batch).await;
            assert_eq!(refused.status, 400);
            assert_eq!(code(&refused.answer().await), -32600);
        }
        peer.send(&batch).await;
        let answers = peer.received().await;
        assert_eq!(answers.len(), 1);
        assert_eq!(code(&answers[0]), -32600, "{answers:?}");
        let mut fresh = Peer::new(&host);
        fresh.send(&batch).await;
        assert_eq!(code(&fresh.receive().await), -32600);
    }
}

#[tokio::test(start_paused = true)]
async fn batches_are_refused_outside_of_2025_03_26() {
    let host = host(&server());
    let batch = json!([legacy_tool(1, "hello")]);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = Client::new(&host).initialized(revision).await;
        let refused = client.post(&batch).await;
        assert_eq!(refused.status, 400, "{revision}");
        assert_eq!(code(&refused.answer().await), -32600, "{revision}");
        let mut peer = Peer::initialized(&host, revision).await;
        peer.send(&batch).await;
        let refused = peer.receive().await;
        assert_eq!(code(&refused), -32600, "{revision}");
        assert_eq!(refused.get("id").is_some_and(Value::is_null), revision < "2025-11-25", "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn duplicate_ids_in_a_batch_are_refused() {
    let host = host(&server());
    let (client, mut peer) = both(&host).await;
    let batch = json!([legacy_tool(1, "slow"), legacy_tool(1, "slow"), legacy_tool(2, "hello")]);
    peer.send(&batch).await;
    for answers in [client.post(&batch).await.answer().await, peer.receive().await] {
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 3);
        let refused = answers.iter().filter(|answer| answer.get("error").is_some());
        assert_eq!(refused.map(code).collect::<Vec<_>>(), [-32600], "{answers:?}");
    }
    settle().await;
    assert_eq!(host.load(), (0, 0));
}
