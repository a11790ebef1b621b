//! Servers that do what they must not: each ends in a clear error, and leaves the client usable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::TargetError;
use trunkline_client::{Client, ClientLimits, Error, RequestDelivery};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest, text_event};
use crate::test_server::{TestServer, direct};
use crate::within;

type ResponseScript = fn(&SeenRequest) -> ScriptedResponse;

const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::NEWEST];

fn small() -> ClientLimits {
    ClientLimits { message_bytes: 64 << 10, malformed_messages: 10, ..ClientLimits::default() }
}

async fn connect(server: &ScriptedHttpServer, revision: Revision) -> Client {
    let builder = direct().limits(small()).pin(revision);
    within(builder.connect(server.url.as_str())).await.unwrap()
}

fn open(seen: &SeenRequest, revision: Revision) -> Option<ScriptedResponse> {
    if revision == Revision::NEWEST { seen.discover() } else { seen.session() }
}

/// Calls a server that answers the call `bad` by a script, and any other as it should.
async fn check(what: &str, script: ResponseScript, expected: &str) {
    for revision in BOTH {
        let server = ScriptedHttpServer::start(move |seen| {
            let is_bad = seen.body["params"]["name"] == "bad";
            if is_bad { script(seen) } else { open(seen, revision).unwrap_or_else(|| good(seen)) }
        })
        .await;
        let client = connect(&server, revision).await;
        let error = match within(client.call("bad", json!({}))).await {
            Err(error) => error.to_string(),
            Ok(result) => panic!("{what}: {}", result.text()),
        };
        assert!(error.contains(expected), "{what} at {revision}: {error}");
        assert!(error.len() < 600, "{what}: {} bytes of error", error.len());
        let calls = server.seen().iter().filter(|seen| seen.body["params"]["name"] == "bad").count();
        assert_eq!(calls, 1, "{what} at {revision}");
        assert_eq!(within(client.call("good", json!({}))).await.unwrap().text(), "good", "{what}");
    }
}

fn good(seen: &SeenRequest) -> ScriptedResponse {
    seen.result(json!({ "content": [{ "type": "text", "text": "good" }] }))
}

#[tokio::test]
async fn invalid_http_response_is_reported_with_the_reason() {
    let table: &[(&str, ResponseScript, &str)] = &[
        (
            "a page",
            |_| ScriptedResponse::status(200, "<html>").with("content-type", "text/html"),
            "answered with `text/html`",
        ),
        ("no type", |_| ScriptedResponse::status(200, "{}"), "answered with no content type"),
        ("taken and not answered", |_| ScriptedResponse::status(202, ""), "did not answer it (status 202)"),
        ("compressed", |seen| good(seen).with("content-encoding", "gzip"), "compressed its response"),
        (
            "no JSON",
            |_| ScriptedResponse::status(200, "hello").with("content-type", "application/json"),
            "cannot be read",
        ),
        (
            "nothing",
            |_| ScriptedResponse::status(200, "").with("content-type", "application/json"),
            "cannot be read",
        ),
        (
            "for another",
            |_| ScriptedResponse::json(200, &json!({ "jsonrpc": "2.0", "id": 999, "result": {} })),
            "does not answer the request",
        ),
        (
            "for a name that looks like ours",
            |seen| {
                ScriptedResponse::json(
                    200,
                    &json!({ "jsonrpc": "2.0", "id": seen.body["id"].to_string(), "result": {} }),
                )
            },
            "does not answer the request",
        ),
        (
            "a question",
            |seen| {
                ScriptedResponse::json(
                    200,
                    &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "method": "ping" }),
                )
            },
            "does not answer the request",
        ),
        (
            "both a result and an error",
            |seen| {
                ScriptedResponse::json(
                    200,
                    &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": {}, "error": {} }),
                )
            },
            "cannot be read",
        ),
        (
            "two results",
            |seen| {
                let body =
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}},"result":{{}}}}"#, seen.body["id"]);
                ScriptedResponse::status(200, &body).with("content-type", "application/json")
            },
            "cannot be read",
        ),
        ("not HTTP", |_| ScriptedResponse::bytes("SSH-2.0-OpenSSH_9\r\n\r\n"), "not HTTP"),
        ("an end", |_| ScriptedResponse::bytes(""), "closed"),
        (
            "another place",
            |_| ScriptedResponse::status(308, "").with("location", "/other"),
            "redirects to `/other`",
        ),
        ("a failure", |_| ScriptedResponse::status(500, "stack trace"), "HTTP 500: stack trace"),
        ("wrong credentials", |_| ScriptedResponse::status(401, ""), "refuses access (HTTP 401)"),
    ];
    for (what, script, expected) in table {
        check(what, *script, expected).await;
    }
}

#[tokio::test]
async fn endless_http_responses_stop_at_the_limits() {
    let table: &[(&str, ResponseScript, &str)] = &[
        (
            "a body",
            |_| {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                ScriptedResponse::bytes(format!("{head}1000\r\n{}\r\n", "x".repeat(0x1000))).forever()
            },
            "more than 65536 bytes",
        ),
        (
            "a body that says so",
            |_| {
                ScriptedResponse::bytes(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n",
                )
            },
            "more than 65536 bytes",
        ),
        (
            "an event",
            |_| ScriptedResponse::endless_events(&format!("data: {}", "x".repeat(9000))).forever(),
            "more than 65536",
        ),
        (
            "events that mean nothing",
            |_| ScriptedResponse::endless_events("data: nonsense\n\n").forever(),
            "malformed messages",
        ),
        (
            "headers",
            |_| ScriptedResponse::bytes(format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(500))),
            "not HTTP",
        ),
        (
            "one header",
            |_| ScriptedResponse::bytes(format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n\r\n", "b".repeat(1 << 20))),
            "not HTTP",
        ),
        (
            "a refusal",
            |_| {
                let head =
                    "HTTP/1.1 400 No\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
                ScriptedResponse::bytes(format!("{head}1000\r\n{}\r\n", "x".repeat(0x1000))).forever()
            },
            "HTTP 400: xxx",
        ),
        (
            "a refusal in JSON",
            |_| {
                let head =
                    "HTTP/1.1 400 No\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                ScriptedResponse::bytes(format!("{head}1000\r\n{}\r\n", "x".repeat(0x1000))).forever()
            },
            "HTTP 400",
        ),
        (
            "a challenge",
            |_| ScriptedResponse::status(401, "").with("www-authenticate", &"x".repeat(20_000)),
            "refuses access (HTTP 401)",
        ),
        (
            "nesting",
            |seen| {
                let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"a":{deep}}}}}"#, seen.body["id"]);
                ScriptedResponse::status(200, &body).with("content-type", "application/json")
            },
            "nests deeper than 127 levels",
        ),
    ];
    for (what, script, expected) in table {
        check(what, *script, expected).await;
    }
}

#[tokio::test]
async fn response_stream_accepts_only_the_response_with_its_own_id() {
    for revision in BOTH {
        let server = ScriptedHttpServer::start(move |seen| {
            open(seen, revision).unwrap_or_else(|| {
                let strange = "data: {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n\n\
                               event: other\ndata: {\"jsonrpc\":\"2.0\"}\n\n\
                               data: nonsense\n\n\
                               data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n\n";
                let twice = format!("{}{}", seen.text_event("first"), seen.text_event("second"));
                ScriptedResponse::endless_events(&format!("{strange}{twice}"))
            })
        })
        .await;
        let client = connect(&server, revision).await;
        for _ in 0..3 {
            assert_eq!(within(client.call("t", json!({}))).await.unwrap().text(), "first", "{revision}");
        }
    }
}

#[tokio::test]
async fn server_request_in_a_stateless_response_stream_is_dropped() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.discover().unwrap_or_else(|| {
            let question = "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n";
            ScriptedResponse::events(&format!("{question}{}", seen.text_event("done")))
        })
    })
    .await;
    let client = connect(&server, Revision::NEWEST).await;
    assert_eq!(within(client.call("t", json!({}))).await.unwrap().text(), "done");
    assert_eq!(server.request_names(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn credentials_are_sent_to_their_origin_only_and_never_printed() {
    let thief = ScriptedHttpServer::start(|seen| seen.discover().unwrap()).await;
    let stolen = thief.url.clone();
    // Wherever a server may name another place: as a redirect, and as where messages are posted to.
    let is_sse = Arc::new(AtomicBool::new(false));
    let server = ScriptedHttpServer::start({
        let is_sse = is_sse.clone();
        move |seen| match (is_sse.load(Ordering::SeqCst), seen.method.as_str()) {
            (true, "POST") => ScriptedResponse::status(405, ""),
            (true, _) => ScriptedResponse::endless_events(&format!("event: endpoint\ndata: {stolen}\n\n")),
            (false, _) => ScriptedResponse::status(307, "").with("location", &stolen),
        }
    })
    .await;
    let builder = direct().bearer("sentinel-token").header("X-Api-Key", "sentinel-key");
    assert!(!format!("{builder:?}").contains("sentinel"));
    for sse in [false, true] {
        is_sse.store(sse, Ordering::SeqCst);
        let error = within(builder.clone().connect(server.url.as_str())).await.unwrap_err();
        let printed = format!("{error} {error:?}");
        assert!(!printed.contains("sentinel"), "{printed}");
        let Error::Unreachable(unreachable) = error else { panic!("{error}") };
        let attempts = format!("{:?}", unreachable.attempts);
        assert!(attempts.contains(if sse { "another origin" } else { "redirects" }), "{attempts}");
    }
    assert!(thief.seen().is_empty(), "{:?}", thief.seen());
    for seen in server.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer sentinel-token"), "{seen:?}");
        assert_eq!(seen.header("x-api-key"), Some("sentinel-key"), "{seen:?}");
    }
}

#[tokio::test]
async fn same_origin_redirect_is_followed_and_redirect_loop_is_not() {
    for status in [307, 308] {
        let server = ScriptedHttpServer::start(move |seen| match seen.path.as_str() {
            "/mcp" => ScriptedResponse::status(status, "").with("location", "/mcp/"),
            _ => seen.discover().unwrap_or_else(|| good(seen)),
        })
        .await;
        let client = connect(&server, Revision::NEWEST).await;
        for _ in 0..3 {
            assert_eq!(within(client.call("good", json!({}))).await.unwrap().text(), "good");
        }
        let paths: Vec<_> = server.seen().into_iter().map(|seen| seen.path).collect();
        assert_eq!(paths, ["/mcp", "/mcp/", "/mcp/", "/mcp/", "/mcp/"], "{status}");
    }
    let server =
        ScriptedHttpServer::start(|_| ScriptedResponse::status(307, "").with("location", "/mcp")).await;
    let Err(Error::Unreachable(error)) = within(direct().connect(server.url.as_str())).await else {
        panic!()
    };
    assert!(error.cause.contains("redirects to `/mcp`"), "{error}");
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn invalid_custom_header_is_rejected_before_connecting() {
    let server = ScriptedHttpServer::start(|seen| seen.discover().unwrap()).await;
    for (name, value) in
        [("Host", "elsewhere"), ("X-A", "a\r\nX-B: b"), ("two words", "a"), ("Mcp-Name", "a")]
    {
        let refused = within(direct().header(name, value).connect(server.url.as_str())).await;
        assert!(matches!(refused, Err(Error::InvalidOptions { .. })), "{name}: {refused:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn error_of_an_invalid_url_has_the_parser_error_as_its_source() {
    let error = within(direct().connect("http://[::1/mcp")).await.unwrap_err();
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<TargetError>());
    assert!(matches!(source, Some(TargetError::Url(_))), "{error:?}");
}

#[tokio::test]
async fn invalid_http_sse_stream_is_reported_with_the_reason() {
    type Stream = fn() -> ScriptedResponse;
    let table: &[(&str, Stream, &str)] = &[
        ("an end", || ScriptedResponse::events(": hello\n\n"), "ended before it said where"),
        (
            "no address",
            || ScriptedResponse::endless_events("event: endpoint\ndata: ftp://x/\n\n"),
            "names `ftp://x/` for messages",
        ),
        ("JSON", || ScriptedResponse::json(200, &Value::Null), "with JSON"),
        ("a page", || ScriptedResponse::status(200, "<html>"), "neither JSON nor a stream"),
        (
            "an endless event",
            || ScriptedResponse::endless_events(&format!("data: {}", "x".repeat(9000))).forever(),
            "above the limit",
        ),
    ];
    for (what, stream, expected) in table {
        let server = ScriptedHttpServer::start(|seen| match seen.method.as_str() {
            "GET" => stream(),
            _ => ScriptedResponse::status(405, ""),
        })
        .await;
        let connecting = direct().limits(small()).connect(server.url.as_str());
        let Err(Error::Unreachable(error)) = within(connecting).await else { panic!("{what}") };
        let last = error.attempts.last().unwrap().to_string();
        assert!(last.starts_with("a stream of HTTP+SSE: ") && last.contains(expected), "{what}: {last}");
    }
}

#[tokio::test]
async fn sse_post_to_an_unknown_session_closes_the_connection_with_the_reason() {
    let server = ScriptedHttpServer::start(|seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", _) => ScriptedResponse::endless_events("event: endpoint\ndata: /messages?id=1\n\n"),
        (_, "/messages?id=1") => ScriptedResponse::status(404, ""),
        _ => ScriptedResponse::status(405, ""),
    })
    .await;
    let Err(Error::Unreachable(error)) = within(direct().connect(server.url.as_str())).await else {
        panic!()
    };
    assert!(error.cause.contains("does not know the session (status 404)"), "{error}");
}

#[tokio::test]
async fn rejected_sse_post_fails_only_its_own_call() {
    let place = TestServer::start().await;
    let client = within(direct().connect(place.url("http", "/sse"))).await.unwrap();
    assert_eq!(client.server().transport, "sse");
    let running = Arc::new(Notify::new());
    let began = running.clone();
    let waiting = client.call("wait", json!({})).progress(move |_| began.notify_one()).into_future();
    let waiting = tokio::spawn(waiting);
    within(running.notified()).await;
    for _ in 0..3 {
        let larger_than_allowed = "x".repeat(5 << 20);
        let refused = within(client.call("echo", json!({ "message": larger_than_allowed }))).await;
        assert!(
            matches!(&refused, Err(Error::Status { status: 413, delivery: RequestDelivery::NotSent, .. })),
            "{refused:?}"
        );
    }
    let sum = within(client.call("add", json!({ "a": 2, "b": 3 }))).await.unwrap();
    assert_eq!((sum.text().as_str(), waiting.is_finished()), ("5", false));
    waiting.abort();
    within(client.close()).await;
    place.wait_idle().await;
}

#[tokio::test]
async fn timed_out_http_call_does_not_affect_other_calls() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.discover().unwrap_or_else(|| match seen.body["params"]["name"].as_str() {
            Some("hang") => ScriptedResponse::endless_events(&text_event(&json!(0), "for nobody")),
            _ => good(seen),
        })
    })
    .await;
    let client = connect(&server, Revision::NEWEST).await;
    let hanging = client.call("hang", json!({})).timeout(std::time::Duration::from_millis(200));
    let others = async {
        for _ in 0..20 {
            assert_eq!(within(client.call("good", json!({}))).await.unwrap().text(), "good");
        }
    };
    let (hung, ()) = tokio::join!(within(hanging), others);
    assert!(matches!(hung, Err(Error::TimedOut { .. })), "{hung:?}");
}

#[tokio::test]
async fn dropped_or_closed_http_client_leaves_no_connection_or_task() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let server = ScriptedHttpServer::start(|seen| match seen.request_name().as_str() {
        "GET" => ScriptedResponse::endless_events("id: 1\ndata:\n\n"),
        _ => seen.session().unwrap_or_else(|| match seen.body["params"]["name"].as_str() {
            Some("hang") => ScriptedResponse::nothing(),
            _ => good(seen),
        }),
    })
    .await;
    let before = alive();
    for is_closed in [false, true] {
        let client = connect(&server, Revision::V2025_11_25).await;
        let calls = (0..8).map(|_| client.call("good", json!({})).into_future());
        for result in within(futures_util::future::join_all(calls)).await {
            assert_eq!(result.unwrap().text(), "good");
        }
        let hanging = client.call("hang", json!({})).timeout(std::time::Duration::from_millis(100));
        assert!(within(hanging).await.is_err());
        if is_closed {
            within(client.close()).await;
        } else {
            drop(client);
        }
        // The server has one task for each connection, so that those are counted too.
        within(async {
            while alive() > before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert_eq!(server.request_names().iter().filter(|words| *words == "notifications/cancelled").count(), 2);
}
