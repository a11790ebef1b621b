//! Change notifications for legacy clients: on standalone streams and on channels, once each.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use trunkline_server::{Resource, Server, ServerHandle, ServerLimits, Tool};

use crate::support::{Client, HttpExchange, ModernRequest, Peer, host, host_with, legacy, settle};

const TOOLS: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn server() -> (ServerHandle, Server) {
    let server = Server::new("s")
        .with(Tool::new("hello").run(async || "hello"))
        .with(Resource::new("test://a", "a").text("a"))
        .with(Resource::new("test://b", "b").text("b"));
    (server.handle().unwrap(), server)
}

fn change_tools(server: &ServerHandle) {
    if !server.remove_tool("passing") {
        server.add(Tool::new("passing").run(async || "passing")).unwrap();
    }
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap()).collect()
}

/// Returns the messages on a stream by the time that the server is idle.
async fn heard(stream: &mut HttpExchange) -> Vec<Value> {
    let mut messages = Vec::new();
    settle().await;
    // No message is sent later than this, and keep-alive comments come only after it.
    let soon = Instant::now() + Duration::from_secs(1);
    while let Ok(Some(message)) = tokio::time::timeout_at(soon, stream.message()).await {
        messages.push(message);
    }
    messages
}

#[tokio::test(start_paused = true)]
async fn standalone_stream_sends_each_change_once() {
    let (handle, server) = server();
    let host = host(&server);
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::new(&host).initialized(revision).await;
        for (method, uri) in [
            ("resources/subscribe", "test://a"),
            ("resources/subscribe", "test://b"),
            ("resources/unsubscribe", "test://b"),
        ] {
            let done = client.post(&legacy(1, method, json!({ "uri": uri }))).await.answer().await;
            assert_eq!(done["result"], json!({}));
        }
        let mut stream = client.get().await;
        assert_eq!(stream.status, 200);
        for _ in 0..3 {
            change_tools(&handle);
            assert_eq!(methods(&heard(&mut stream).await), [TOOLS], "{revision}");
            handle.notify_updated("test://a");
            handle.notify_updated("test://b");
            let told = heard(&mut stream).await;
            assert_eq!(methods(&told), [UPDATED]);
            assert_eq!(told[0]["params"], json!({ "uri": "test://a" }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watched_uris_of_all_clients_are_bounded_in_both_eras() {
    // A budget for two of these URIs.
    let host =
        host_with(&server().1, ServerLimits { watched_uri_bytes: 2 * (64 + 8), ..ServerLimits::default() });
    let subscribe = legacy(1, "resources/subscribe", json!({ "uri": "test://a" }));
    let unsubscribe = legacy(2, "resources/unsubscribe", json!({ "uri": "test://a" }));
    let watch = json!({ "resourceSubscriptions": ["test://b"] });
    let listen = ModernRequest::new("subscriptions/listen").param("notifications", watch);
    let one = Client::new(&host).initialized("2025-11-25").await;
    let other = Client::new(&host).initialized("2025-11-25").await;
    for _ in 0..3 {
        assert_eq!(
            one.post(&subscribe).await.answer().await["result"],
            json!({}),
            "once is as often as thrice"
        );
    }
    let mut stream = Client::new(&host).post(&listen.value()).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let refused = other.post(&subscribe).await.answer().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many resources"), "{refused}");
    assert_eq!(Client::new(&host).post(&listen.value()).await.status, 429);

    assert_eq!(one.post(&unsubscribe).await.answer().await["result"], json!({}));
    assert_eq!(other.post(&subscribe).await.answer().await["result"], json!({}));
    drop(stream);
    settle().await;
    assert_eq!(one.post(&subscribe).await.answer().await["result"], json!({}));
    other.delete().await;
    settle().await;
    let mut stream = Client::new(&host).post(&listen.value()).await;
    assert!(stream.message().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn change_is_sent_on_one_standalone_stream_of_a_session() {
    let (handle, server) = server();
    let host = host(&server);
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let stream = client.get().await;
        assert_eq!(stream.status, 200);
        streams.push(stream);
    }
    assert_eq!(client.get().await.status, 429, "four streams are enough");
    for _ in 0..5 {
        change_tools(&handle);
        let mut told = 0;
        for stream in &mut streams {
            told += heard(stream).await.len();
        }
        assert_eq!(told, 1);
    }
    streams.remove(1);
    let fourth = client.get().await;
    assert_eq!(fourth.status, 200, "a stream that ended makes room");
}

#[tokio::test(start_paused = true)]
async fn change_is_sent_on_the_remaining_streams_after_a_disconnect() {
    let (handle, server) = server();
    let host = host(&server);
    let client = Client::new(&host).initialized("2025-11-25").await;
    for dropped in [0, 1] {
        let mut readers: Vec<_> = Vec::new();
        let (said, mut hear) = tokio::sync::mpsc::channel(8);
        for _ in 0..2 {
            let (mut stream, said) = (client.get().await, said.clone());
            readers.push(tokio::spawn(async move {
                while let Some(message) = stream.message().await {
                    said.send(message).await.unwrap();
                }
            }));
            settle().await;
        }
        readers.remove(dropped).abort();
        settle().await;
        let begun = Instant::now();
        change_tools(&handle);
        let message = hear.recv().await.unwrap();
        assert_eq!(message["method"], TOOLS);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        readers.remove(0).abort();
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_without_an_open_stream_are_sent_once_on_the_next() {
    let (handle, server) = server();
    let host = host(&server);
    let client = Client::new(&host).initialized("2025-11-25").await;
    drop(client.get().await.event().await);
    for _ in 0..10 {
        change_tools(&handle);
    }
    let mut stream = client.get().await;
    assert_eq!(methods(&heard(&mut stream).await), [TOOLS]);
}

#[tokio::test(start_paused = true)]
async fn standalone_stream_can_be_resumed() {
    let (handle, server) = server();
    let host = host(&server);
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.get().await;
    let primed = stream.event().await.unwrap();
    assert!(primed.retry_ms.is_some());
    change_tools(&handle);
    let (_, told) = stream.message_with_id().await.unwrap();
    drop(stream);
    change_tools(&handle);
    let mut resumed = client.resume(&primed.id.unwrap()).await;
    assert_eq!(
        methods(&heard(&mut resumed).await),
        [TOOLS, TOOLS],
        "the one that was missed, and the new one"
    );
    drop(resumed);
    let mut resumed = client.resume(&told.unwrap()).await;
    assert_eq!(methods(&heard(&mut resumed).await), [TOOLS]);
    change_tools(&handle);
    let (_, id) = resumed.message_with_id().await.unwrap();
    drop(resumed);
    assert!(heard(&mut client.resume(&id.unwrap()).await).await.is_empty(), "nothing was missed");
}

#[tokio::test(start_paused = true)]
async fn resumed_standalone_stream_replaces_its_previous_connection() {
    let (handle, server) = server();
    let host = host_with(&server, ServerLimits { streams_per_session: 1, ..ServerLimits::default() });
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.get().await;
    let primed = stream.event().await.unwrap().id.unwrap();
    change_tools(&handle);
    let (_, told) = stream.message_with_id().await.unwrap();
    assert_eq!(client.get().await.status, 429, "there is no second place");
    let mut ids = vec![primed.clone(), told.clone().unwrap()];
    // The server has not noticed that the connection is dead, and the next one may be dead as soon as it is made.
    let mut dead = vec![stream];
    for _ in 0..3 {
        let mut resumed = client.resume(&primed).await;
        assert_eq!(resumed.status, 200);
        for known in &ids[1..] {
            assert_eq!(resumed.message_with_id().await.unwrap().1.as_ref(), Some(known), "what was missed");
        }
        change_tools(&handle);
        for carrier in &mut dead {
            assert!(carrier.message().await.is_none(), "it is over");
        }
        let (message, id) = resumed.message_with_id().await.unwrap();
        assert_eq!(message["method"], TOOLS);
        assert!(!ids.contains(id.as_ref().unwrap()), "{ids:?} {id:?}");
        ids.extend(id);
        dead = vec![resumed];
    }
    drop(dead);
    assert_eq!(client.get().await.status, 200, "the place is free again");
    assert_eq!(client.resume("ffff-1").await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn standalone_stream_ends_when_the_server_drains() {
    let (_, server) = server();
    let host = host(&server);
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = Client::new(&host).initialized(revision).await;
        let mut stream = client.get().await;
        let reader = tokio::spawn(async move {
            let mut retry = None;
            while let Some(event) = stream.event().await {
                assert!(event.data.is_none_or(|data| data.is_empty()));
                retry = event.retry_ms.or(retry);
            }
            retry
        });
        settle().await;
        assert!(!reader.is_finished());
        if revision == "2025-11-25" {
            host.shutdown().drain();
            assert!(reader.await.unwrap().is_some_and(|retry| retry >= 10_000), "not all at once");
            assert_eq!(client.get().await.status, 503);
        } else {
            reader.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn initialized_channel_gets_each_subscribed_change_once() {
    let (handle, server) = server();
    let host = host(&server);
    let mut silent = Peer::new(&host);
    let mut peer = Peer::initialized(&host, "2025-06-18").await;
    let mut other = Peer::initialized(&host, "2025-11-25").await;
    peer.call(&legacy(1, "resources/subscribe", json!({ "uri": "test://a" }))).await;
    for _ in 0..3 {
        change_tools(&handle);
        handle.notify_updated("test://a");
        assert_eq!(methods(&peer.received().await), [TOOLS, UPDATED]);
        assert_eq!(methods(&other.received().await), [TOOLS]);
        assert!(silent.received().await.is_empty(), "a client that never said hello hears nothing");
    }
    peer.call(&legacy(2, "resources/unsubscribe", json!({ "uri": "test://a" }))).await;
    handle.notify_updated("test://a");
    assert!(peer.received().await.is_empty());
}
