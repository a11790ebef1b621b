//! Legacy streams that break: the call continues, and its client resumes the stream for the rest.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline_server::http::HttpServerOptions;
use trunkline_server::{Confirm, Context, Server, Tool, ToolError, ask};

use crate::input_rounds::accept;
use crate::support::{
    Client, HttpExchange, LiveCount, ModernRequest, code, host, legacy, legacy_tool, response, settle,
    tool_text,
};

/// A tool that reports progress, waits for the gate, reports again and ends.
fn slow(gate: &Arc<Notify>, life: &LiveCount) -> Tool {
    let (gate, life) = (gate.clone(), life.clone());
    Tool::new("slow").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let (gate, alive) = (gate.clone(), life.begin());
        async move {
            cx.progress(1, 2);
            gate.notified().await;
            cx.progress(2, 2);
            drop(alive);
            "done"
        }
    })
}

fn call(id: u64) -> Value {
    legacy(id, "tools/call", json!({ "name": "slow", "_meta": { "progressToken": format!("t{id}") } }))
}

/// Describes what came: the progress with its token, or the text of a result.
fn words(messages: &[Value]) -> Vec<String> {
    let word = |message: &Value| match message.get("method") {
        Some(_) => {
            let params = &message["params"];
            format!("{} {}", params["progressToken"].as_str().unwrap(), params["progress"])
        }
        None => format!("{} {}", message["id"], tool_text(message)),
    };
    messages.iter().map(word).collect()
}

#[tokio::test(start_paused = true)]
async fn stream_starts_with_an_empty_event_and_retry_in_2025_11_25() {
    let gate = Arc::new(Notify::new());
    let host = host(&Server::new("s").with(slow(&gate, &LiveCount::default())));
    for (revision, primes, has_ids) in
        [("2025-11-25", true, true), ("2025-06-18", false, true), ("2025-03-26", false, true)]
    {
        let client = Client::new(&host).initialized(revision).await;
        let mut stream = client.post(&call(1)).await;
        let first = stream.event().await.unwrap();
        assert_eq!(first.data.as_ref().is_some_and(bytes::Bytes::is_empty), primes, "{revision}");
        assert_eq!(first.retry_ms.is_some(), primes, "{revision}");
        assert_eq!(first.id.is_some(), has_ids, "{revision}");
        gate.notify_one();
        let mut ids: Vec<_> = first.id.into_iter().collect();
        while let Some((_, id)) = stream.message_with_id().await {
            ids.extend(id);
        }
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
        assert_eq!(ids.len(), if primes { 4 } else { 3 });
    }
    let mut modern = Client::new(&host).post(&ModernRequest::tool("slow").token("t").value()).await;
    gate.notify_one();
    while let Some(event) = modern.event().await {
        assert_eq!((event.id, event.retry_ms), (None, None), "the modern era has no positions");
    }
}

/// Reads up to the first message and returns every position on the way.
async fn positions(stream: &mut HttpExchange) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let event = stream.event().await.unwrap();
        ids.extend(event.id);
        if event.data.is_some_and(|data| !data.is_empty()) {
            return ids;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_resumes_with_missed_events() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(slow(&gate, &life)));
    for revision in ["2025-11-25", "2025-06-18"] {
        for while_it_runs in [true, false] {
            let client = Client::new(&host).initialized(revision).await;
            let mut stream = client.post(&call(1)).await;
            let ids = positions(&mut stream).await;
            drop(stream);
            settle().await;
            assert_eq!((host.load(), life.count()), ((1, 0), 1), "a disconnect is no cancellation");
            let last = ids.last().unwrap();
            let mut resumed = if while_it_runs {
                let resumed = client.resume(last).await;
                gate.notify_one();
                resumed
            } else {
                gate.notify_one();
                settle().await;
                assert_eq!((host.load(), life.count()), ((0, 0), 0));
                client.resume(last).await
            };
            assert_eq!(resumed.status, 200);
            assert_eq!(words(&resumed.rest().await), ["t1 2", "1 done"], "{revision}");
            // What was fetched once can be fetched again, from any position that is still kept.
            if revision == "2025-11-25" {
                let all = client.resume(&ids[0]).await.rest().await;
                assert_eq!(words(&all), ["t1 1", "t1 2", "1 done"]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stream_can_be_resumed_more_than_once() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(slow(&gate, &life)));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&call(1)).await;
    let last = positions(&mut stream).await.pop().unwrap();
    drop(stream);
    for _ in 0..3 {
        let resumed = client.resume(&last).await;
        assert_eq!(resumed.status, 200);
        drop(resumed);
    }
    let mut resumed = client.resume(&last).await;
    gate.notify_one();
    let (message, id) = resumed.message_with_id().await.unwrap();
    assert_eq!(words(&[message]), ["t1 2"]);
    drop(resumed);
    let rest = client.resume(&id.unwrap()).await.rest().await;
    assert_eq!(words(&rest), ["1 done"]);
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_replays_only_its_own_events() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(slow(&gate, &life)));
    let service = host.http_service(HttpServerOptions::default());
    let client = Client::of(&service).initialized("2025-11-25").await;
    let other = Client::of(&service).initialized("2025-11-25").await;
    let mut lasts = Vec::new();
    for (client, id) in [(&client, 1), (&client, 2), (&other, 3), (&other, 4), (&other, 5)] {
        let mut stream = client.post(&call(id)).await;
        lasts.push(positions(&mut stream).await.remove(0));
    }
    settle().await;
    gate.notify_waiters();
    settle().await;
    for (client, last, id) in [(&client, &lasts[0], 1), (&client, &lasts[1], 2), (&other, &lasts[3], 4)] {
        let messages = client.resume(last).await.rest().await;
        assert_eq!(words(&messages), [format!("t{id} 1"), format!("t{id} 2"), format!("{id} done")]);
    }
    assert_eq!(client.resume(&lasts[4]).await.status, 400, "a stream that only another session has");
}

#[tokio::test(start_paused = true)]
async fn unknown_last_event_id_is_refused_and_the_session_stays() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(slow(&gate, &life)));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&call(1)).await;
    let known = positions(&mut stream).await.pop().unwrap();
    let (stream_number, _) = known.split_once('-').unwrap();
    let beyond = format!("{stream_number}-999");
    for unknown in ["", "x", "99-0", "8000000000000001-0", &beyond, "-1", "1-1-1", "18446744073709551616-0"] {
        let refused = client.resume(unknown).await;
        assert_eq!(refused.status, 400, "{unknown}");
        assert_eq!(code(&refused.answer().await), -32600, "{unknown}");
    }
    gate.notify_one();
    assert_eq!(words(&stream.rest().await), ["t1 2", "1 done"]);
}

#[tokio::test(start_paused = true)]
async fn released_stream_ends_with_a_retry_time() {
    let gate = Arc::new(Notify::new());
    let tool = {
        let gate = gate.clone();
        Tool::new("release").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
            let gate = gate.clone();
            async move {
                cx.release_stream(Duration::from_millis(1234));
                gate.notified().await;
                "done"
            }
        })
    };
    let host = host(&Server::new("s").with(tool));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "release")).await;
    let mut last = None;
    let mut retry = None;
    while let Some(event) = stream.event().await {
        assert!(event.data.is_none_or(|data| data.is_empty()), "there is no message yet");
        last = event.id.or(last);
        retry = event.retry_ms.or(retry);
    }
    assert_eq!(retry, Some(1234));
    assert_eq!(host.load(), (1, 0));
    let mut resumed = client.resume(&last.unwrap()).await;
    gate.notify_one();
    assert_eq!(words(&resumed.rest().await), ["1 done"]);

    let older = Client::new(&host).initialized("2025-06-18").await;
    let mut stream = older.post(&legacy_tool(1, "release")).await;
    gate.notify_one();
    assert_eq!(words(&stream.rest().await), ["1 done"], "an older client stays");
    let mut modern = Client::new(&host).post(&ModernRequest::tool("release").value()).await;
    gate.notify_one();
    assert_eq!(tool_text(&modern.rest().await[0]), "done", "a modern client stays");
}

#[tokio::test(start_paused = true)]
async fn missed_input_request_is_replayed_on_resumption() {
    let tool = Tool::new("ask").run(async |cx: Context| -> Result<String, ToolError> {
        cx.progress(1, 2);
        Ok(cx.ask(ask::<Confirm>("Sure?")).await?.0.to_string())
    });
    let host = host(&Server::new("s").with(tool));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "ask")).await;
    let primed = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    settle().await;
    let mut resumed = client.resume(&primed).await;
    let question = resumed.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    client.post(&response(&question, accept(true))).await;
    assert_eq!(words(&resumed.rest().await), ["1 true"]);
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_ends_its_streams_and_calls_at_once() {
    let (gate, life) = (Arc::new(Notify::new()), LiveCount::default());
    let host = host(&Server::new("s").with(slow(&gate, &life)));
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut attached = client.post(&call(1)).await;
    let mut left = client.post(&call(2)).await;
    let last = positions(&mut left).await.pop().unwrap();
    drop(left);
    let mut resumed = client.resume(&last).await;
    let mut standing = client.get().await;
    settle().await;
    assert_eq!((host.load(), life.count()), ((2, 0), 2));
    let begun = tokio::time::Instant::now();
    assert_eq!(client.delete().await.status, 204);
    attached.rest().await;
    resumed.rest().await;
    standing.rest().await;
    settle().await;
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
