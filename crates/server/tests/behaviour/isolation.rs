//! Two clients that send the same messages at the same time each get only their own responses.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline_server::http::HttpServerOptions;
use trunkline_server::{Context, Server, Tool};

use crate::support::{
    Client, LiveCount, ModernRequest, Peer, code, host, legacy, legacy_tool, note, service, settle,
    tool_text, within,
};

/// A tool that echoes its argument in its progress and its result, with a pause between.
fn echo() -> Tool {
    let schema = json!({ "type": "object", "properties": { "say": { "type": "string" } } });
    Tool::new("echo").input_schema(schema).run_raw(|cx: Context, arguments| async move {
        let say = serde_json::from_str::<Value>(arguments.as_str()).unwrap()["say"].clone();
        let say = say.as_str().unwrap_or_default().to_owned();
        cx.progress_with(1, Some(2.0), say.clone());
        tokio::task::yield_now().await;
        cx.progress_with(2, Some(2.0), say.clone());
        tokio::task::yield_now().await;
        say
    })
}

/// Checks that a call got its own progress under its own token, and its own result.
fn assert_own(mut messages: Vec<Value>, id: &Value, say: &str) {
    let answer = messages.pop().unwrap();
    assert_eq!(answer["id"], *id);
    assert_eq!(tool_text(&answer), say);
    assert_eq!(messages.len(), 2, "{messages:?}");
    for (at, message) in messages.iter().enumerate() {
        let params = &message["params"];
        assert_eq!((&params["progressToken"], &params["message"]), (&json!("same"), &json!(say)));
        assert_eq!(params["progress"], at + 1);
    }
}

const CALLS: usize = 1000;

fn legacy_echo(id: usize, say: &str) -> Value {
    let params = json!({ "name": "echo", "arguments": { "say": say }, "_meta": { "progressToken": "same" } });
    legacy(id, "tools/call", params)
}

#[tokio::test(start_paused = true)]
async fn http_clients_with_equal_ids_and_tokens_get_only_their_own_messages() {
    let host = host(&Server::new("s").with(echo()));
    let service = service(&host);
    let ann = Client::of(&service).named("ann");
    let bob = Client::of(&service).named("bob");
    let clients = [
        ("ann", ann.clone().initialized("2025-11-25").await, false),
        ("ann again", ann.clone().initialized("2025-06-18").await, false),
        ("bob", bob.clone().initialized("2025-11-25").await, false),
        ("modern ann", ann, true),
        ("modern bob", bob, true),
    ];
    let mut running = Vec::new();
    for call in 0..CALLS {
        let (name, client, modern) = &clients[call % clients.len()];
        // The ids are few, so that equal ones run at the same time in different places.
        let (id, say) = (call / clients.len(), format!("{name} {call}"));
        let (client, modern) = (client.clone(), *modern);
        running.push(tokio::spawn(async move {
            let request = if modern {
                let arguments = json!({ "say": say });
                ModernRequest::tool("echo").id(id).token("same").arguments(arguments).value()
            } else {
                legacy_echo(id, &say)
            };
            assert_own(client.post(&request).await.rest().await, &json!(id), &say);
        }));
    }
    for call in running {
        within(call).await.unwrap();
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn channel_peers_with_equal_ids_and_tokens_get_only_their_own_messages() {
    let host = host(&Server::new("s").with(echo()));
    let mut running = Vec::new();
    for peer in 0..10 {
        let host = host.clone();
        running.push(tokio::spawn(async move {
            let mut channel = Peer::initialized(&host, "2025-11-25").await;
            for id in 0..CALLS / 20 {
                let say = format!("{peer} {id}");
                assert_own(channel.exchange(&legacy_echo(id, &say)).await, &json!(id), &say);
                let modern =
                    ModernRequest::tool("echo").id(id).token("same").arguments(json!({ "say": say }));
                assert_own(channel.exchange(&modern.value()).await, &json!(id), &say);
            }
        }));
    }
    for peer in running {
        within(peer).await.unwrap();
    }
    assert_eq!(host.load(), (0, 0));
}

/// A tool that runs until the gate is opened.
fn gated(gate: &Arc<Notify>, life: &LiveCount) -> Tool {
    let (gate, life) = (gate.clone(), life.clone());
    Tool::new("gated").input_schema(json!({ "type": "object" })).run_raw(move |_, _| {
        let (gate, alive) = (gate.clone(), life.begin());
        async move {
            gate.notified().await;
            drop(alive);
            "through"
        }
    })
}

#[tokio::test(start_paused = true)]
async fn cancellation_affects_only_requests_of_its_sender() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(gated(&gate, &life)));
    let service = host.http_service(HttpServerOptions::default());
    let ours = Client::of(&service).initialized("2025-11-25").await;
    let theirs = Client::of(&service).initialized("2025-11-25").await;
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    let mut other = Peer::new(&host);
    let [mut our_stream, their_stream] =
        [ours.post(&legacy_tool(1, "gated")).await, theirs.post(&legacy_tool(1, "gated")).await];
    let modern_stream = Client::of(&service).post(&ModernRequest::tool("gated").id(1).value()).await;
    peer.send(&legacy_tool(1, "gated")).await;
    other.send(&ModernRequest::tool("gated").id(1).value()).await;
    settle().await;
    assert_eq!(life.count(), 5);

    for unknown in [json!(2), json!("1"), json!(null), json!({})] {
        ours.post(&note("notifications/cancelled", json!({ "requestId": unknown }))).await;
    }
    settle().await;
    assert_eq!(life.count(), 5, "none of these is a request of ours");

    let cancel = note("notifications/cancelled", json!({ "requestId": 1 }));
    assert_eq!(ours.post(&cancel).await.status, 202);
    assert!(our_stream.rest().await.is_empty());
    assert_eq!(life.count(), 4);
    peer.send(&cancel).await;
    assert!(peer.received().await.is_empty());
    assert_eq!(life.count(), 3);

    // What is modern over HTTP is cancelled by a disconnect only.
    assert_eq!(Client::of(&service).post(&cancel).await.status, 400);
    gate.notify_waiters();
    assert_eq!(tool_text(&their_stream.answer().await), "through");
    assert_eq!(tool_text(&modern_stream.answer().await), "through");
    assert_eq!(tool_text(&other.receive().await), "through");
}

#[tokio::test(start_paused = true)]
async fn request_id_of_a_running_call_is_refused() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(gated(&gate, &life)));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let stream = client.post(&legacy_tool(1, "gated")).await;
    let reused = client.post(&legacy_tool(1, "gated")).await.answer().await;
    assert_eq!(code(&reused), -32600);
    let text = client.post(&legacy_tool("1", "gated")).await;
    assert_eq!(life.count(), 2, "a text is another id than a number");

    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "gated")).await;
    assert_eq!(code(&peer.call(&legacy_tool(1, "gated")).await), -32600);
    let mut modern = Peer::new(&host);
    modern.send(&ModernRequest::tool("gated").value()).await;
    assert_eq!(code(&modern.call(&ModernRequest::tool("gated").value()).await), -32600);
    let listen = ModernRequest::new("subscriptions/listen").param("notifications", json!({}));
    assert_eq!(code(&modern.call(&listen.value()).await), -32600);

    settle().await;
    assert_eq!(life.count(), 4);
    gate.notify_waiters();
    assert_eq!(tool_text(&stream.answer().await), "through");
    assert_eq!(tool_text(&text.answer().await), "through");
    for peer in [&mut peer, &mut modern] {
        assert_eq!(tool_text(&peer.receive().await), "through");
    }
    gate.notify_one();
    let again = client.post(&legacy_tool(1, "gated")).await.answer().await;
    assert_eq!(tool_text(&again), "through", "an id that is free may be used again");
}
