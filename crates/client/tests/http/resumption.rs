//! Streams that end before the response: those of sessions are taken up where they broke, and nothing is ever sent twice.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::dial::DialError;
use trunkline_client::transport::http::HttpError;
use trunkline_client::{Client, Error, RequestDelivery};
use trunkline_server::{Context, Tool};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest, text_event};
use crate::test_server::{TestServer, direct};
use crate::within;

async fn connect(server: &ScriptedHttpServer, revision: Revision) -> Client {
    within(direct().pin(revision).connect(server.url.as_str())).await.unwrap()
}

/// Counts the requests of a kind that came.
fn count(server: &ScriptedHttpServer, words: &str) -> usize {
    server.request_names().iter().filter(|seen| *seen == words).count()
}

#[tokio::test]
async fn broken_response_stream_is_resumed_after_its_last_event_id() {
    // The last event id of each request, and the response to it; the standalone stream has no id.
    let server = ScriptedHttpServer::start(|seen| {
        match (seen.request_name().as_str(), seen.header("last-event-id")) {
            ("tools/call", _) => ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"),
            ("GET", Some("a")) => ScriptedResponse::events(
                "id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\
             \"params\":{\"progressToken\":2,\"progress\":1}}\n\n",
            ),
            // One that breaks before there is a new id leaves the old one as it is.
            ("GET", Some("b")) if seen.number < 7 => {
                ScriptedResponse::endless_events(": nothing\n\n").and_close()
            }
            ("GET", Some("b")) => {
                ScriptedResponse::events(&format!("id: c\n{}", text_event(&json!(2), "at last")))
            }
            _ => seen.session().unwrap(),
        }
    })
    .await;
    let client = connect(&server, Revision::V2025_11_25).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let told = heard.clone();
    let call = client.call("t", json!({})).progress(move |_| {
        told.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(within(call).await.unwrap().text(), "at last");
    assert_eq!((heard.load(Ordering::SeqCst), count(&server, "tools/call")), (1, 1));
    for get in server.seen().iter().filter(|seen| seen.method == "GET") {
        assert_eq!(get.header("mcp-session-id"), Some("the-session"));
        assert_eq!(get.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn unresumable_stream_fails_the_call_without_retry() {
    type ResumptionScript = fn(&SeenRequest) -> ScriptedResponse;
    let table: &[(&str, ResumptionScript, &str)] = &[
        ("no id", |_| ScriptedResponse::events(": hello\n\n"), "the stream ended before the response came"),
        ("no id, cut", |_| ScriptedResponse::endless_events(": hello\n\n").and_close(), "closed"),
        (
            "an id that was taken back",
            |_| ScriptedResponse::events("id: a\ndata:\n\nid:\ndata:\n\n"),
            "ended before",
        ),
        (
            "an event that nobody knows any more",
            |seen| match seen.request_name().as_str() {
                "GET" => ScriptedResponse::status(400, "unknown event"),
                _ => ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"),
            },
            "HTTP 400: unknown event",
        ),
        (
            "a stream that nobody offers",
            |seen| match seen.request_name().as_str() {
                "GET" => ScriptedResponse::status(405, ""),
                _ => ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"),
            },
            "HTTP 405",
        ),
        (
            "a session that is gone",
            |seen| match seen.request_name().as_str() {
                "GET" => ScriptedResponse::status(404, ""),
                _ => ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"),
            },
            "does not know the session",
        ),
    ];
    for (what, script, expected) in table {
        let server = ScriptedHttpServer::start(|seen| match seen.header("last-event-id") {
            None if seen.method == "GET" => ScriptedResponse::status(405, ""),
            None if seen.request_name() != "tools/call" => seen.session().unwrap(),
            _ => script(seen),
        })
        .await;
        let client = connect(&server, Revision::V2025_11_25).await;
        let error = within(client.call("t", json!({}))).await.unwrap_err();
        assert!(error.to_string().contains(expected) && error.may_have_run(), "{what}: {error}");
        assert_eq!((count(&server, "tools/call"), count(&server, "initialize")), (1, 1), "{what}");
    }
}

#[tokio::test]
async fn stream_resumption_stops_after_repeated_failures() {
    let server = ScriptedHttpServer::start(|seen| {
        match (seen.request_name().as_str(), seen.header("last-event-id")) {
            ("tools/call", _) => ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"),
            ("GET", Some(_)) if seen.number % 2 == 0 => ScriptedResponse::status(503, ""),
            ("GET", Some(_)) => ScriptedResponse::bytes(""),
            _ => seen.session().unwrap(),
        }
    })
    .await;
    let client = connect(&server, Revision::V2025_11_25).await;
    let error = within(client.call("t", json!({}))).await.unwrap_err();
    assert!(matches!(error, Error::Closed { delivery: RequestDelivery::MaybeSent, .. }), "{error}");
    let resumed = server.seen().iter().filter(|seen| seen.header("last-event-id").is_some()).count();
    assert_eq!((resumed, count(&server, "tools/call")), (5, 1));
}

#[tokio::test]
async fn stateless_response_stream_is_never_resumed() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.discover().unwrap_or_else(|| ScriptedResponse::events("id: a\nretry: 1\ndata:\n\n"))
    })
    .await;
    let client = connect(&server, Revision::NEWEST).await;
    let error = within(client.call("t", json!({}))).await.unwrap_err();
    assert!(matches!(error, Error::Closed { delivery: RequestDelivery::MaybeSent, .. }), "{error}");
    assert_eq!(server.request_names(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn http_response_truncated_at_any_byte_fails_the_call_without_retry() {
    for revision in [Revision::V2025_06_18, Revision::NEWEST] {
        for is_stream in [false, true] {
            let answer = move |seen: &SeenRequest| {
                if is_stream {
                    return ScriptedResponse::events(&seen.text_event("whole"));
                }
                seen.result(json!({ "content": [{ "type": "text", "text": "whole" }] }))
            };
            let cut_at = Arc::new(AtomicUsize::new(0));
            let server = ScriptedHttpServer::start({
                let cut_at = cut_at.clone();
                move |seen| match seen.request_name().as_str() {
                    "tools/call" => answer(seen).cut(cut_at.load(Ordering::SeqCst)),
                    _ if revision == Revision::NEWEST => seen.discover().unwrap(),
                    _ => seen.session().unwrap(),
                }
            })
            .await;
            let client = connect(&server, revision).await;
            let mut at = 0;
            loop {
                cut_at.store(at, Ordering::SeqCst);
                let before = count(&server, "tools/call");
                let outcome = within(client.call("t", json!({}))).await;
                assert_eq!(count(&server, "tools/call"), before + 1, "at {at}");
                match outcome {
                    // The client does not wait for the end of a stream after its response.
                    Ok(result) => {
                        assert_eq!(result.text(), "whole");
                        break;
                    }
                    Err(error) => assert!(error.may_have_run(), "at {at}: {error}"),
                }
                at += 1;
            }
            assert!(at > 150, "{revision} {is_stream}: {at}");
        }
    }
}

#[tokio::test]
async fn calls_with_released_streams_are_resumed_to_completion() {
    let place = TestServer::start().await;
    let tool = Tool::new("release").run(async |cx: Context| {
        for step in 1..=3 {
            cx.progress(step, 3);
            cx.release_stream(Duration::from_millis(20));
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        "came back"
    });
    place.parts.add(tool).unwrap();
    for revision in Revision::ALL {
        let builder = direct().pin(revision).connect(place.url("http", "/mcp"));
        let client = within(builder).await.unwrap();
        let calls = (0..4).map(|_| {
            let heard = Arc::new(AtomicUsize::new(0));
            let told = heard.clone();
            let call = client.call("release", json!({})).progress(move |progress| {
                told.fetch_max(progress.progress as usize, Ordering::SeqCst);
            });
            async move { (call.await.unwrap().text(), heard.load(Ordering::SeqCst)) }
        });
        for outcome in within(futures_util::future::join_all(calls)).await {
            assert_eq!(outcome, ("came back".to_owned(), 3), "{revision}");
        }
        within(client.close()).await;
    }
    place.wait_idle().await;
}

#[tokio::test]
async fn errors_of_lost_connections_keep_their_source() {
    // Nothing listens at a port that was just given back.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let connecting = direct().connect(format!("http://{free}/mcp"));
    let error = within(connecting).await.unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref::<HttpError>());
    assert!(matches!(source, Some(HttpError::Dial(DialError::Connect { .. }))), "{error:?}");

    let server = ScriptedHttpServer::start(|seen| {
        seen.discover()
            .unwrap_or_else(|| ScriptedResponse::bytes("HTTP/1.1 200 OK\r\ncontent-le").and_close())
    })
    .await;
    let client = connect(&server, Revision::NEWEST).await;
    let error = within(client.call("t", json!({}))).await.unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref::<HttpError>());
    let Some(HttpError::Lost { source, .. }) = source else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::UnexpectedEof, "{error:?}");
}
