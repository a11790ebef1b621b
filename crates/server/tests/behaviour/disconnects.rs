//! Cancellation: a modern client disconnects, a legacy client sends `notifications/cancelled`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use trunkline_server::{Context, Server, Tool};

use crate::support::{
    Client, JSON_ONLY, LiveCount, ModernRequest, Peer, code, host, legacy, note, settle, within,
};

/// A tool that never ends, and something that it started elsewhere and that waits for its cancellation.
fn endless(life: &LiveCount, cancelled: &Arc<Notify>, speaks: bool) -> Tool {
    let (life, cancelled) = (life.clone(), cancelled.clone());
    Tool::new("endless").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let (alive, cancelled, over) = (life.begin(), cancelled.clone(), cx.cancelled());
        tokio::spawn(async move {
            over.await;
            cancelled.notify_one();
        });
        async move {
            if speaks {
                cx.progress(1, 2);
            }
            std::future::pending::<()>().await;
            drop(alive);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn dropping_the_response_stream_drops_the_modern_call() {
    let (life, cancelled) = (LiveCount::default(), Arc::new(Notify::new()));
    let host = host(&Server::new("s").with(endless(&life, &cancelled, true)));
    let mut stream = Client::new(&host).post(&ModernRequest::tool("endless").token("t").value()).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/progress");
    assert_eq!((host.load(), life.count()), ((1, 0), 1));
    drop(stream);
    assert_eq!((host.load(), life.count()), ((0, 0), 0), "nothing runs on");
    within(cancelled.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_request_before_its_response_has_begun_drops_the_call() {
    let (life, cancelled) = (LiveCount::default(), Arc::new(Notify::new()));
    let host = host(&Server::new("s").with(endless(&life, &cancelled, false)));
    let client = Client::new(&host);
    for accept in ["application/json", "application/json, text/event-stream"] {
        let client = client.clone().with("accept", accept);
        let request = tokio::spawn(async move { client.post(&ModernRequest::tool("endless").value()).await });
        settle().await;
        assert_eq!((host.load(), life.count()), ((1, 0), 1));
        request.abort();
        within(cancelled.notified()).await;
        settle().await;
        assert_eq!((host.load(), life.count()), ((0, 0), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn silent_call_switches_to_a_stream_with_keep_alive_comments() {
    let (life, cancelled) = (LiveCount::default(), Arc::new(Notify::new()));
    let host = host(&Server::new("s").with(endless(&life, &cancelled, false)));
    let begun = tokio::time::Instant::now();
    let stream = Client::new(&host).post(&ModernRequest::tool("endless").value()).await;
    assert!(stream.is_stream());
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    let mut stream = stream;
    let silent = tokio::time::timeout(Duration::from_secs(100), stream.event()).await;
    assert!(silent.is_err(), "comments are no events");
    drop(stream);
    within(cancelled.notified()).await;
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
}

#[tokio::test(start_paused = true)]
async fn channel_call_is_dropped_on_cancellation_and_on_disconnect() {
    let (life, cancelled) = (LiveCount::default(), Arc::new(Notify::new()));
    let host = host(&Server::new("s").with(endless(&life, &cancelled, false)));
    let mut peer = Peer::new(&host);
    peer.send(&ModernRequest::tool("endless").id(1).value()).await;
    settle().await;
    assert_eq!((host.load(), life.count()), ((1, 0), 1));
    peer.send(&note("notifications/cancelled", json!({ "requestId": 1 }))).await;
    assert!(peer.received().await.is_empty());
    within(cancelled.notified()).await;
    assert_eq!((host.load(), life.count()), ((0, 0), 0));

    peer.send(&ModernRequest::tool("endless").id(2).value()).await;
    settle().await;
    drop(peer);
    within(cancelled.notified()).await;
    settle().await;
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
}

#[tokio::test(start_paused = true)]
async fn cancelled_legacy_call_ends_its_stream_without_a_response() {
    let (life, cancelled) = (LiveCount::default(), Arc::new(Notify::new()));
    for (speaks, accept) in [(false, None), (true, None), (false, Some(JSON_ONLY)), (true, Some(JSON_ONLY))] {
        let host = host(&Server::new("s").with(endless(&life, &cancelled, speaks)));
        let client = Client::new(&host).initialized("2025-11-25").await;
        let caller = match accept {
            None => client.clone(),
            Some(accept) => client.clone().with("accept", accept),
        };
        let call = legacy("c", "tools/call", json!({ "name": "endless", "_meta": { "progressToken": 1 } }));
        let asked = tokio::spawn(async move { caller.post(&call).await });
        settle().await;
        assert_eq!(host.load().0, 1);
        assert_eq!(asked.is_finished(), speaks && accept.is_none(), "the response has begun, or not");
        client.post(&note("notifications/cancelled", json!({ "requestId": "c" }))).await;
        within(cancelled.notified()).await;
        let mut answered = asked.await.unwrap();
        let messages = answered.rest().await;
        let words: Vec<_> = messages.iter().map(|message| message.get("method").is_some()).collect();
        assert_eq!(answered.status, 200);
        match accept {
            None => {
                assert_eq!(answered.header("content-type"), Some("text/event-stream"));
                assert_eq!(words, vec![true; usize::from(speaks)], "no answer: {messages:?}");
            }
            Some(_) => {
                let [answer] = messages.as_slice() else { panic!("{messages:?}") };
                assert_eq!((code(answer), &answer["id"]), (-32800, &json!("c")));
            }
        }
        settle().await;
        assert_eq!((host.load(), life.count()), ((0, 0), 0));
    }
}
