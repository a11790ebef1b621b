//! More connections than the limit.

use std::sync::Arc;

use trunkline_server::ServerLimits;
use trunkline_server::http::{BearerTokens, HttpServerOptions};

use crate::raw_http;
use crate::service::{DEADLINE, Service, Setup, eventually};

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_others_close() {
    let limits = ServerLimits { connections: 3, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut held = Vec::new();
    for id in 0..3 {
        let mut connection = service.connect().await;
        connection
            .send(&raw_http::modern(
                "tools/call",
                "wait",
                &raw_http::call(id, "wait", &serde_json::json!({})),
            ))
            .await;
        held.push(connection);
    }
    eventually("three calls run", || service.host.load().0 == 3).await;
    let mut fourth = service.connect().await;
    fourth.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(4, "patient"))).await;
    let mut early = [0];
    let heard =
        tokio::time::timeout(std::time::Duration::from_millis(100), fourth.stream.peek(&mut early)).await;
    assert!(heard.is_err(), "the fourth is not served yet");
    held.pop();
    assert_eq!(fourth.reply().await.json()["result"]["content"][0]["text"], "patient");
}

/// On other systems the backlog may be no longer than tokio requests.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connection_burst_waits_in_the_listen_backlog() {
    let limits = ServerLimits { connections: 1, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut first = service.connect().await;
    first.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(1, "first"))).await;
    assert_eq!(first.reply().await.status, 200);
    let mut waiting = Vec::new();
    for number in 0..200 {
        let connected = tokio::time::timeout(DEADLINE, service.connect()).await;
        waiting.push(connected.unwrap_or_else(|_| panic!("number {number} finds no place to wait")));
    }
    drop(first);
    let mut next = waiting.remove(0);
    next.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(2, "next"))).await;
    assert_eq!(next.reply().await.status, 200);
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused_without_delaying_others() {
    let limits = ServerLimits { calls: 2, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let wait =
        |id| raw_http::modern("tools/call", "wait", &raw_http::call(id, "wait", &serde_json::json!({})));
    let mut held = Vec::new();
    for id in 0..2 {
        let mut connection = service.connect().await;
        connection.send(&wait(id)).await;
        held.push(connection);
    }
    eventually("two calls run", || service.host.load().0 == 2).await;
    for id in 2..50 {
        let reply = service.ask(&wait(id)).await;
        assert_eq!((reply.status, reply.json()["id"].as_u64()), (429, Some(id)));
    }
    assert_eq!(service.host.load().0, 2, "a refused call is not counted");
    service.gate.add_permits(2);
    for mut connection in held {
        assert_eq!(connection.reply().await.status, 200);
    }
    service.still_serves().await;
}

#[tokio::test]
async fn principal_at_its_call_limit_is_refused_while_others_are_served() {
    let limits = ServerLimits { calls_per_principal: 2, ..ServerLimits::default() };
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    let http = HttpServerOptions { authenticator: Arc::new(tokens), ..HttpServerOptions::default() };
    let service = Service::start_with(Setup { limits, http, ..Setup::default() }).await;
    let call = |id: u64, name: &str, session: Option<&str>| {
        let token = format!("Bearer {name}-token-0123456");
        let arguments = serde_json::json!({});
        match session {
            Some(session) => raw_http::post(
                &[("Authorization", &token), ("Mcp-Session-Id", session)],
                raw_http::legacy_call(id, "wait", &arguments).as_bytes(),
            ),
            None => raw_http::post(
                &[
                    ("Authorization", &token),
                    ("MCP-Protocol-Version", raw_http::MODERN),
                    ("Mcp-Method", "tools/call"),
                    ("Mcp-Name", "wait"),
                ],
                raw_http::call(id, "wait", &arguments).as_bytes(),
            ),
        }
    };
    let opening = [("Authorization", "Bearer ann-token-0123456")];
    let opened =
        service.ask(&raw_http::post(&opening, raw_http::initialize(raw_http::LEGACY).as_bytes())).await;
    let session = opened.header("mcp-session-id").expect("a session");
    let mut held = Vec::new();
    for (id, session) in [(1, None), (2, Some(session))] {
        let mut connection = service.connect().await;
        connection.send(&call(id, "ann", session)).await;
        held.push(connection);
    }
    eventually("two calls run", || service.host.load().0 == 2).await;
    for session in [None, Some(session)] {
        let refused = service.ask(&call(3, "ann", session)).await;
        assert_eq!((refused.status, refused.json()["id"].as_u64()), (429, Some(3)), "in either era");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    let mut bobs = service.connect().await;
    bobs.send(&call(1, "bob", None)).await;
    eventually("bob's call runs too", || service.host.load().0 == 3).await;
    service.gate.add_permits(3);
    for mut connection in held.into_iter().chain([bobs]) {
        assert_eq!(connection.reply().await.status, 200);
    }
    service.gate.add_permits(1);
    assert_eq!(service.ask(&call(4, "ann", None)).await.status, 200, "there is room again");
}

#[tokio::test]
async fn unknown_sessions_are_refused_and_create_no_session() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    for n in 0..1000_u128 {
        let session = format!("{n:032x}");
        connection.send(&raw_http::legacy(&session, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await;
        assert_eq!(connection.reply().await.status, 404, "{session}");
    }
    assert_eq!(service.endpoint.sessions(), 0);
}
