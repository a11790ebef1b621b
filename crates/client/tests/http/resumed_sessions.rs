//! A session that another client continues.

use std::collections::HashSet;

use serde_json::{Value, json};
use trunkline_client::protocol::{LoggingLevel, Revision};
use trunkline_client::transport::ChannelOpener;
use trunkline_client::transport::memory;
use trunkline_client::{ChangeFilter, Client, Error, HttpTransportKind, ResumableSession};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

fn echo(seen: &SeenRequest) -> ScriptedResponse {
    match seen.request_name().as_str() {
        "initialize" => seen
            .result(json!({ "protocolVersion": "2025-06-18", "serverInfo": { "name": "s", "version": "1" },
                "instructions": "read me",
                "capabilities": { "tools": {}, "logging": {}, "resources": { "subscribe": true } } }))
            .with("mcp-session-id", "the-session"),
        "GET" => ScriptedResponse::endless_events(""),
        "logging/setLevel" | "resources/subscribe" => seen.result(json!({})),
        _ => seen.session().unwrap_or_else(|| {
            seen.result(json!({ "content": [{ "type": "text", "text": seen.body["params"]["name"] }] }))
        }),
    }
}

/// Opens a session, calls a tool, and leaves the session open at the server.
async fn leave_session(server: &ScriptedHttpServer) -> ResumableSession {
    let client =
        within(direct().era(trunkline_client::protocol::Era::Legacy).connect(server.url.as_str())).await;
    let client = client.unwrap();
    assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a");
    let session = client.resumable_session().unwrap();
    client.keep_session();
    within(client.close()).await;
    ResumableSession::from_json(&session.to_json()).unwrap()
}

async fn resume(server: &ScriptedHttpServer, session: ResumableSession) -> Client {
    within(direct().resume(session).connect(server.url.as_str())).await.unwrap()
}

#[tokio::test]
async fn session_is_continued_by_another_client_without_a_handshake() {
    let server = ScriptedHttpServer::start(echo).await;
    let session = leave_session(&server).await;
    let before = server.seen().len();
    let client = resume(&server, session).await;
    let info = client.server();
    assert_eq!((info.revision, info.instructions.as_deref()), (Revision::V2025_06_18, Some("read me")));
    assert!(info.capabilities.logging && info.is_stateful());
    assert_eq!(within(client.call("b", json!({}))).await.unwrap().text(), "b");
    let stream = server.wait_for_request("GET").await;
    assert_eq!(stream.header("mcp-session-id"), Some("the-session"));
    assert!(!server.request_names().contains(&"DELETE".to_owned()), "the first client kept the session");
    within(client.close()).await;

    let seen = server.seen();
    let names: Vec<_> = seen.iter().skip(before).map(SeenRequest::request_name).collect();
    assert!(!names.contains(&"initialize".to_owned()), "{names:?}");
    assert_eq!(names.last().map(String::as_str), Some("DELETE"), "the second client did not keep it");
    for request in seen.iter().skip(before) {
        let headers = request.header("mcp-session-id").zip(request.header("mcp-protocol-version"));
        assert_eq!(headers, Some(("the-session", "2025-06-18")), "{request:?}");
    }
    let ids: Vec<u64> = seen.iter().filter_map(|seen| seen.body["id"].as_u64()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "ids of both clients differ: {ids:?}");
    assert!(ids.iter().all(|id| *id < 1 << 53), "{ids:?}");
}

#[tokio::test]
async fn forgotten_session_is_replaced_with_its_level_and_subscriptions() {
    let first = ScriptedHttpServer::start(echo).await;
    let session = leave_session(&first).await;
    // A server that never had the session.
    let renamed = |seen: &SeenRequest| match seen.request_name().as_str() {
        "initialize" => seen
            .result(json!({ "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {}, "logging": {}, "resources": { "subscribe": true } } }))
            .with("mcp-session-id", "another-session"),
        _ if seen.header("mcp-session-id") == Some("the-session") => seen.error(404, -32001, Value::Null),
        _ => echo(seen),
    };
    let server = ScriptedHttpServer::start(renamed).await;
    let client = resume(&server, session).await;
    within(client.set_level(LoggingLevel::Debug)).await.unwrap();
    let filter = ChangeFilter { uris: vec!["x:1".to_owned()], ..ChangeFilter::default() };
    let _changes = within(client.subscribe(filter)).await.unwrap();
    assert_eq!(within(client.call("c", json!({}))).await.unwrap().text(), "c");
    assert!(client.resumable_session().unwrap().to_json().contains("another-session"));
    let names = server.request_names();
    assert_eq!(names.iter().filter(|name| *name == "initialize").count(), 1, "{names:?}");
    for (name, session) in [("logging/setLevel", 2), ("resources/subscribe", 1)] {
        let sent = server.seen().into_iter().filter(|seen| seen.request_name() == name);
        let in_new = sent.filter(|seen| seen.header("mcp-session-id") == Some("another-session")).count();
        assert!(in_new >= 1 && in_new <= session, "{name} {names:?}");
    }
}

#[tokio::test]
async fn only_sessions_of_streamable_http_are_resumable() {
    let server = ScriptedHttpServer::start(echo).await;
    let session = leave_session(&server).await;
    let opener = ChannelOpener::new("channel", || std::future::ready(Ok(memory(4).1)));
    let over_channel = within(Client::builder().resume(session.clone()).connect(opener)).await;
    let sse = direct().resume(session.clone()).http_transport(HttpTransportKind::Sse);
    let over_sse = within(sse.connect(server.url.as_str())).await;
    let pinned = direct().resume(session).pin(Revision::V2025_11_25);
    let pinned = within(pinned.connect(server.url.as_str())).await;
    for outcome in [over_channel, over_sse, pinned] {
        assert!(matches!(outcome, Err(Error::InvalidOptions { .. })), "{outcome:?}");
    }
    let modern = ScriptedHttpServer::start(|seen| seen.discover().unwrap_or_else(|| echo(seen))).await;
    let client = within(direct().connect(modern.url.as_str())).await.unwrap();
    assert!(client.resumable_session().is_none(), "a stateless server has no sessions");
}
