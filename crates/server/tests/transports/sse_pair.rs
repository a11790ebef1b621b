//! HTTP+SSE: two paths, one session for each stream.

use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::json;
use trunkline_server::ServerLimits;
use trunkline_server::http::{DrainOutcome, HttpServerOptions, SsePaths};

use crate::http_client::{send, status, to};
use crate::service::{Service, initialize, note, request, tool, within};
use crate::transport_link::open_sse;

#[tokio::test]
async fn sse_endpoint_event_comes_first_without_the_clients_host() {
    let options = HttpServerOptions {
        hosts: trunkline_server::http::AllowList::any(),
        legacy_sse: Some(SsePaths { stream: "/mcp/sse".to_owned(), messages: "/mcp/message".to_owned() }),
        ..HttpServerOptions::default()
    };
    let service = Service::start_with(options, ServerLimits::default()).await;
    let request = http::Request::builder().uri("/mcp/sse").header("host", "proxy.example");
    let mut response = send(service.address, request, String::new()).await;
    let first = within(response.frame()).await.unwrap().unwrap().into_data().unwrap();
    let text = std::str::from_utf8(&first).unwrap();
    let id = text.strip_prefix("event: endpoint\ndata: /mcp/message?sessionId=").unwrap();
    assert_eq!(id.trim_end().len(), 32);
    assert!(text.ends_with("\n\n"));
    let (gone, _) = status(service.address, to(service.address, "GET", "/sse"), "").await;
    assert_eq!(gone, 404);
}

#[tokio::test]
async fn invalid_sse_posts_are_refused_with_their_status() {
    let limits = ServerLimits { message_bytes: 1024, ..ServerLimits::default() };
    let service = Service::start_with(HttpServerOptions::default(), limits).await;
    let (_events, messages) = open_sse(service.address, &[]).await;
    let other = "/messages?sessionId=0123456789abcdef0123456789abcdef";
    let ping = request(1, "ping", json!({})).to_string();
    let long = request(1, "ping", json!({ "x": "y".repeat(2000) })).to_string();
    for (method, path, body, expected) in [
        ("POST", messages.as_str(), ping.as_str(), 202),
        ("POST", "/messages", &ping, 400),
        ("POST", "/messages?sessionId=", &ping, 404),
        ("POST", "/messages?sessionId=evil", &ping, 404),
        ("POST", other, &ping, 404),
        ("POST", &messages, "{", 400),
        ("POST", &messages, r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400),
        ("POST", &messages, &long, 413),
        ("GET", &messages, "", 405),
        ("POST", "/sse", &ping, 405),
        ("DELETE", "/sse", "", 405),
    ] {
        let (status, headers) = status(service.address, to(service.address, method, path), body).await;
        assert_eq!(status, expected, "{method} {path} {body}");
        let allow = headers.get("allow").map(|allow| allow.to_str().unwrap());
        let expected = match (expected, path.starts_with("/messages")) {
            (405, true) => Some("POST, OPTIONS"),
            (405, false) => Some("GET, OPTIONS"),
            _ => None,
        };
        assert_eq!(allow, expected, "{method} {path}");
    }
    for (header, value, method, expected) in [
        ("content-type", "text/plain", "POST", 415),
        ("content-encoding", "gzip", "POST", 415),
        ("accept", "application/json", "GET", 406),
    ] {
        let path = if method == "GET" { "/sse" } else { &messages };
        let mut request = to(service.address, method, path);
        request.headers_mut().unwrap().insert(header, value.parse().unwrap());
        assert_eq!(status(service.address, request, &ping).await.0, expected, "{header}: {value}");
    }
}

#[tokio::test]
async fn two_sse_streams_are_two_sessions_with_their_own_responses() {
    let service = Service::start().await;
    let (mut left, to_left) = open_sse(service.address, &[]).await;
    let (mut right, to_right) = open_sse(service.address, &[]).await;
    assert_ne!(to_left, to_right);
    let post = async |path: &str, message: serde_json::Value| {
        let sent = to(service.address, "POST", path);
        assert_eq!(status(service.address, sent, &message.to_string()).await.0, 202);
    };
    for (path, sum) in [(&to_left, 1), (&to_right, 2)] {
        post(path, initialize("2024-11-05")).await;
        post(path, note("notifications/initialized", json!({}))).await;
        post(path, tool(7, "add", json!({ "a": sum, "b": 0 }))).await;
    }
    for (events, sum) in [(&mut left, "1"), (&mut right, "2")] {
        assert_eq!(events.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
        let (name, data) = events.next().await.unwrap();
        assert_eq!(name.as_deref(), Some("message"));
        let answer: serde_json::Value = serde_json::from_slice(&data).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(7), &json!(sum)));
    }
    drop(left);
    within(async {
        while service.endpoint.channels() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let late = to(service.address, "POST", &to_left);
    assert_eq!(status(service.address, late, "{}").await.0, 404, "a session does not outlive its stream");
}

#[tokio::test]
async fn unread_sse_stream_accepts_bounded_posts_and_is_closed() {
    let short = Duration::from_millis(300);
    let limits = ServerLimits { body_timeout: short, write_timeout: 4 * short, ..ServerLimits::default() };
    let service = Service::start_with(HttpServerOptions::default(), limits).await;
    let (events, messages) = open_sse(service.address, &[]).await;
    let post = |message: String| send(service.address, to(service.address, "POST", &messages), message);
    assert_eq!(post(initialize("2024-11-05").to_string()).await.status(), 202);
    let mut taken = 0;
    let refused = loop {
        let response = post(tool(taken, "large", json!({ "bytes": 1 << 20 })).to_string()).await;
        if response.status() != 202 {
            break response;
        }
        taken += 1;
        assert!(taken < 256, "the stream takes ever more");
    };
    if refused.status() == 429 {
        assert_eq!(refused.headers()["retry-after"], "1");
    } else {
        assert_eq!(refused.status(), 404, "the stream was cut before the message found room");
    }
    service.is_left_alone().await;
    assert_eq!(post(request(1, "ping", json!({})).to_string()).await.status(), 404);
    drop(events);
}

#[tokio::test]
async fn draining_closes_sse_streams_after_their_calls_finish() {
    let service = Service::start().await;
    let (mut idle, _) = open_sse(service.address, &[]).await;
    let (mut busy, messages) = open_sse(service.address, &[]).await;
    for message in [initialize("2025-11-25"), tool(1, "wait", json!({}))] {
        let post = to(service.address, "POST", &messages);
        assert_eq!(status(service.address, post, &message.to_string()).await.0, 202);
    }
    service.waiting.are(1).await;
    busy.message().await.unwrap();
    service.host.shutdown().drain();
    assert!(within(idle.next()).await.is_none(), "a stream without calls ends");
    service.host.shutdown().stop();
    assert!(within(busy.next()).await.is_none());
    assert_eq!(service.ended().await, DrainOutcome::Aborted(1));
}
