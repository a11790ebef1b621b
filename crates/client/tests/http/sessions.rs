//! What belongs to a session: its id, its standing stream, its end, and what happens when the server has forgotten it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{ChangeEvent, ChangeFilter, Client, ClientLimits, Error};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

async fn connect(server: &ScriptedHttpServer) -> Client {
    within(direct().pin(Revision::V2025_11_25).connect(server.url.as_str())).await.unwrap()
}

fn echo(seen: &SeenRequest) -> ScriptedResponse {
    seen.result(json!({ "content": [{ "type": "text", "text": seen.body["params"]["name"] }] }))
}

#[tokio::test]
async fn requests_carry_session_id_and_version_and_close_deletes_the_session() {
    let server = ScriptedHttpServer::start(|seen| seen.session().unwrap_or_else(|| echo(seen))).await;
    let client = connect(&server).await;
    assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a");
    within(client.close()).await;
    let seen = server.seen();
    assert_eq!(seen.last().unwrap().request_name(), "DELETE");
    for request in &seen {
        let is_first = request.request_name() == "initialize";
        let expected = (!is_first).then_some(("the-session", "2025-11-25"));
        let found = request.header("mcp-session-id").zip(request.header("mcp-protocol-version"));
        assert_eq!(found, expected, "{request:?}");
        let accept = match request.method.as_str() {
            "POST" => "application/json, text/event-stream",
            _ => "text/event-stream",
        };
        assert_eq!(request.header("accept"), Some(accept), "{request:?}");
        assert!(request.header("mcp-method").is_none() && request.header("mcp-name").is_none());
    }
}

#[tokio::test]
async fn dropped_client_deletes_its_http_session() {
    let server = ScriptedHttpServer::start(|seen| seen.session().unwrap_or_else(|| echo(seen))).await;
    drop(connect(&server).await);
    assert_eq!(server.wait_for_request("DELETE").await.header("mcp-session-id"), Some("the-session"));
}

#[tokio::test]
async fn requests_to_a_server_without_sessions_carry_no_session_id() {
    let server = ScriptedHttpServer::start(|seen| match seen.request_name().as_str() {
        "initialize" => seen.result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        _ => seen.session().unwrap_or_else(|| echo(seen)),
    })
    .await;
    let client = connect(&server).await;
    assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a");
    within(client.close()).await;
    assert!(server.seen().iter().all(|seen| seen.header("mcp-session-id").is_none()));
    assert!(!server.request_names().contains(&"DELETE".to_owned()));
}

#[tokio::test]
async fn any_success_status_accepts_a_notification() {
    for (status, body) in [(202, ""), (200, ""), (204, ""), (200, "{}"), (202, "Accepted")] {
        let server = ScriptedHttpServer::start(move |seen| match seen.request_name().as_str() {
            "notifications/initialized" => ScriptedResponse::status(status, body),
            _ => seen.session().unwrap_or_else(|| echo(seen)),
        })
        .await;
        let client = connect(&server).await;
        assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a", "{status}");
    }
}

#[tokio::test]
async fn invalid_session_id_is_rejected() {
    for id in ["a b", "", &"x".repeat(2000)] {
        let id = id.to_owned();
        let server = ScriptedHttpServer::start(move |seen| match seen.request_name().as_str() {
            "initialize" => seen
                .result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
                .with("mcp-session-id", &id),
            _ => seen.session().unwrap(),
        })
        .await;
        let Err(Error::Unreachable(error)) = within(direct().connect(server.url.as_str())).await else {
            panic!()
        };
        assert!(error.cause.contains("printable ASCII"), "{error}");
    }
}

/// Forgets a session at the requests of these numbers, counted from the first call.
fn forgetful(
    forgets: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> impl Fn(&SeenRequest) -> ScriptedResponse {
    let (calls, sessions) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    move |seen| match seen.request_name().as_str() {
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst);
            seen.result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
                .with("mcp-session-id", &format!("session-{number}"))
        }
        "tools/call" if forgets(calls.fetch_add(1, Ordering::SeqCst)) => seen.error(404, -32001, Value::Null),
        _ => seen.session().unwrap_or_else(|| echo(seen)),
    }
}

#[tokio::test]
async fn lost_session_is_reopened_and_the_call_retried() {
    let server = ScriptedHttpServer::start(forgetful(|call| call == 1)).await;
    let client = connect(&server).await;
    for name in ["a", "b", "c"] {
        assert_eq!(within(client.call(name, json!({}))).await.unwrap().text(), name);
    }
    let calls: Vec<_> = server
        .seen()
        .into_iter()
        .filter(|seen| seen.request_name() == "tools/call")
        .map(|seen| {
            (seen.body["params"]["name"].as_str().unwrap().to_owned(), seen.headers["mcp-session-id"].clone())
        })
        .collect();
    let expected = [("a", "session-0"), ("b", "session-0"), ("b", "session-1"), ("c", "session-1")];
    assert_eq!(calls, expected.map(|(name, session)| (name.to_owned(), session.to_owned())));
    let words = server.request_names();
    assert_eq!(words.iter().filter(|words| *words == "initialize").count(), 2);
    assert_eq!(words.iter().filter(|words| *words == "notifications/initialized").count(), 2);
}

#[tokio::test]
async fn session_lost_by_status_400_is_reopened_too() {
    let refused = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000,
        "message": "Bad Request: No valid session ID provided" } });
    let handshakes = AtomicUsize::new(0);
    let server = ScriptedHttpServer::start(move |seen| {
        match (seen.request_name().as_str(), seen.header("mcp-session-id")) {
            ("initialize", _) => {
                let session = format!("session-{}", handshakes.fetch_add(1, Ordering::SeqCst));
                seen.result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
                    .with("mcp-session-id", &session)
            }
            ("tools/call", Some("session-0")) => ScriptedResponse::json(400, &refused),
            _ => seen.session().unwrap_or_else(|| echo(seen)),
        }
    })
    .await;
    let client = connect(&server).await;
    for name in ["a", "b"] {
        assert_eq!(within(client.call(name, json!({}))).await.unwrap().text(), name);
    }
    let words = server.request_names();
    let count = |wanted: &str| words.iter().filter(|words| *words == wanted).count();
    assert_eq!((count("initialize"), count("tools/call")), (2, 3), "{words:?}");
}

#[tokio::test]
async fn server_that_loses_every_session_is_retried_once() {
    let server = ScriptedHttpServer::start(forgetful(|_| true)).await;
    let client = connect(&server).await;
    let error = within(client.call("a", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("does not know the session"), "{error}");
    assert!(!error.may_have_run());
    assert_eq!(server.request_names().iter().filter(|words| *words == "tools/call").count(), 2);
}

#[tokio::test]
async fn failed_session_reopening_is_retried_by_the_next_call() {
    let handshakes = AtomicUsize::new(0);
    let server = ScriptedHttpServer::start(move |seen| {
        match (seen.request_name().as_str(), seen.header("mcp-session-id")) {
            ("initialize", _) => match handshakes.fetch_add(1, Ordering::SeqCst) {
                1 => seen.error(503, -32603, Value::Null),
                number => seen
                    .result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
                    .with("mcp-session-id", &format!("session-{number}")),
            },
            ("tools/call", Some("session-2")) => echo(seen),
            ("tools/call", Some(_)) => seen.error(404, -32001, Value::Null),
            ("tools/call", None) => panic!("a call without a session"),
            _ => seen.session().unwrap_or_else(|| echo(seen)),
        }
    })
    .await;
    let client = connect(&server).await;
    within(client.call("a", json!({}))).await.unwrap_err();
    assert_eq!(within(client.call("b", json!({}))).await.unwrap().text(), "b");
}

#[tokio::test]
async fn broken_stream_is_not_resumed_in_a_new_session() {
    let handshakes = AtomicUsize::new(0);
    let server = ScriptedHttpServer::start(move |seen| {
        let name = seen.body["params"]["name"].as_str().unwrap_or_default().to_owned();
        match (seen.request_name().as_str(), name.as_str()) {
            ("initialize", _) => {
                let number = handshakes.fetch_add(1, Ordering::SeqCst);
                seen.result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
                    .with("mcp-session-id", &format!("session-{number}"))
            }
            // Broken, and to be taken up again in a while.
            ("tools/call", "broken") => ScriptedResponse::events("id: 7\nretry: 200\ndata:\n\n"),
            ("tools/call", _) if seen.header("mcp-session-id") == Some("session-0") => {
                seen.error(404, -32001, Value::Null)
            }
            ("GET", _) if seen.header("last-event-id").is_some() => {
                assert_eq!(seen.header("mcp-session-id"), Some("session-0"), "an event of another session");
                seen.error(503, -32603, Value::Null)
            }
            _ => seen.session().unwrap_or_else(|| echo(seen)),
        }
    })
    .await;
    let client = connect(&server).await;
    let broken = tokio::spawn(client.call("broken", json!({})).into_future());
    within(async {
        while !server.seen().iter().any(|seen| seen.body["params"]["name"] == "broken") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(within(client.call("other", json!({}))).await.unwrap().text(), "other");
    let error = within(broken).await.unwrap().unwrap_err();
    assert!(error.may_have_run(), "{error}");
}

#[tokio::test]
async fn concurrent_calls_with_a_lost_session_reopen_it_once() {
    let server = ScriptedHttpServer::start(forgetful(|call| call < 8)).await;
    let client = connect(&server).await;
    let calls = (0..8).map(|number| client.call(number.to_string(), json!({})).into_future());
    for (number, result) in within(futures_util::future::join_all(calls)).await.into_iter().enumerate() {
        assert_eq!(result.unwrap().text(), number.to_string());
    }
    assert_eq!(server.request_names().iter().filter(|words| *words == "initialize").count(), 2);
}

#[tokio::test]
async fn standalone_stream_reports_changes_and_is_resumed() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let server = ScriptedHttpServer::start(move |seen| {
        match (seen.request_name().as_str(), seen.header("last-event-id")) {
            ("GET", None) => ScriptedResponse::events(&format!("id: 7\nretry: 1\ndata: {changed}\n\n")),
            ("GET", Some("7")) => {
                ScriptedResponse::endless_events(&format!("data:\n\nid: 8\ndata: {changed}\n\n"))
            }
            ("GET", other) => panic!("there is no event {other:?}"),
            _ => seen.session().unwrap(),
        }
    })
    .await;
    let client = connect(&server).await;
    let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
    // Two unread changes are merged into one.
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools));
    within(async {
        while server.request_names().iter().filter(|words| *words == "GET").count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn lost_session_is_reopened_for_subscribers_without_any_call() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let (handshakes, streams) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = ScriptedHttpServer::start(move |seen| {
        let in_first = seen.header("mcp-session-id") == Some("session-0");
        match seen.request_name().as_str() {
            "initialize" => {
                let session = format!("session-{}", handshakes.fetch_add(1, Ordering::SeqCst));
                seen.result(
                    json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "s", "version": "1" },
                    "capabilities": { "tools": { "listChanged": true } } }),
                )
                .with("mcp-session-id", &session)
            }
            // The first stream breaks, and then the server has forgotten everything.
            "GET" if in_first && streams.fetch_add(1, Ordering::SeqCst) == 0 => {
                ScriptedResponse::events("retry: 1\ndata:\n\n")
            }
            "GET" | "ping" if in_first => ScriptedResponse::status(404, ""),
            "GET" => ScriptedResponse::endless_events(&format!("data: {changed}\n\n")),
            _ => seen.session().unwrap(),
        }
    })
    .await;
    let limits = ClientLimits { reopen_delay: Duration::from_millis(1), ..ClientLimits::default() };
    let builder = direct().limits(limits).pin(Revision::V2025_11_25);
    let client = within(builder.connect(server.url.as_str())).await.unwrap();
    let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Missed));
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools));
    let words = server.request_names();
    assert_eq!(words.iter().filter(|words| *words == "initialize").count(), 2, "{words:?}");
}

#[tokio::test]
async fn missing_standalone_stream_does_not_reopen_the_session() {
    let server = ScriptedHttpServer::start(|seen| match seen.request_name().as_str() {
        "GET" => ScriptedResponse::status(404, ""),
        "ping" => seen.result(json!({})),
        _ => seen.session().unwrap_or_else(|| echo(seen)),
    })
    .await;
    let limits = ClientLimits { reopen_delay: Duration::from_millis(1), ..ClientLimits::default() };
    let builder = direct().limits(limits).pin(Revision::V2025_11_25);
    let client = within(builder.connect(server.url.as_str())).await.unwrap();
    server.wait_for_request("ping").await;
    assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a");
    assert_eq!(server.request_names().iter().filter(|words| *words == "initialize").count(), 1);
}

#[tokio::test]
async fn pings_and_input_requests_on_the_standalone_stream_are_answered() {
    let questions = "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n\
                     data: {\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}\n\n";
    let server = ScriptedHttpServer::start(move |seen| match seen.request_name().as_str() {
        "GET" => ScriptedResponse::endless_events(questions),
        "answer" => ScriptedResponse::status(202, ""),
        _ => seen.session().unwrap(),
    })
    .await;
    let client = connect(&server).await;
    let answers = within(async {
        loop {
            let answers: Vec<_> =
                server.seen().into_iter().filter(|s| s.request_name() == "answer").collect();
            if answers.len() == 2 {
                break answers;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let answer = |id: &str| answers.iter().find(|seen| seen.body["id"] == id).unwrap().body.clone();
    assert_eq!(answer("p")["result"], json!({}));
    // The client did not declare roots.
    assert_eq!(answer("r")["error"]["code"], json!(-32601));
    drop(client);
}

#[tokio::test]
async fn call_waits_until_the_standalone_stream_is_open() {
    let server = ScriptedHttpServer::start(|seen| match seen.request_name().as_str() {
        "GET" => ScriptedResponse::endless_events(""),
        _ => seen.session().unwrap_or_else(|| echo(seen)),
    })
    .await;
    for _ in 0..20 {
        let client = connect(&server).await;
        assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a");
    }
    let words = server.request_names();
    let words: Vec<_> =
        words.iter().filter(|words| ["GET", "tools/call"].contains(&words.as_str())).collect();
    assert!(words.chunks(2).all(|pair| *pair == ["GET", "tools/call"]), "{words:?}");
}

#[tokio::test]
async fn failing_standalone_stream_does_not_affect_calls() {
    for said in [
        ScriptedResponse::status(405, ""),
        ScriptedResponse::status(404, ""),
        ScriptedResponse::status(500, ""),
        ScriptedResponse::status(401, ""),
        ScriptedResponse::status(200, "<html>"),
        ScriptedResponse::json(200, &json!({})),
        ScriptedResponse::bytes("nonsense"),
        ScriptedResponse::endless_events("data: nonsense\n\n"),
    ] {
        let said_too = said.clone();
        let server = ScriptedHttpServer::start(move |seen| match seen.request_name().as_str() {
            "GET" => said_too.clone(),
            _ => seen.session().unwrap_or_else(|| echo(seen)),
        })
        .await;
        let client = connect(&server).await;
        assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a", "{said:?}");
        within(client.close()).await;
    }
}

#[tokio::test]
async fn dropped_http_call_is_cancelled_by_notification_or_disconnect() {
    for revision in [Revision::V2025_11_25, Revision::NEWEST] {
        let server = ScriptedHttpServer::start(move |seen| {
            let opened = if revision == Revision::NEWEST { seen.discover() } else { seen.session() };
            opened.unwrap_or_else(|| match seen.body["params"]["name"].as_str() {
                Some("hang") => ScriptedResponse::endless_events(": working\n\n"),
                _ => echo(seen),
            })
        })
        .await;
        let client = within(direct().pin(revision).connect(server.url.as_str())).await.unwrap();
        let call = client.call("hang", json!({})).into_future();
        tokio::select! {
            _ = call => panic!("it never ends"),
            _ = server.wait_for_request("tools/call") => {}
        }
        if revision == Revision::NEWEST {
            // The server is notified only by the end of the connection.
            server.client_disconnected().await;
            assert_eq!(server.request_names(), ["server/discover", "tools/call"]);
        } else {
            let cancelled = server.wait_for_request("notifications/cancelled").await;
            let call = server.wait_for_request("tools/call").await;
            assert_eq!(cancelled.body["params"]["requestId"], call.body["id"]);
            assert_eq!(cancelled.header("mcp-session-id"), Some("the-session"));
        }
        assert_eq!(within(client.call("a", json!({}))).await.unwrap().text(), "a", "{revision}");
    }
}
