//! How the client finds the era of a server, and that its error lists every attempt.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::{Era, Revision};
use trunkline_client::{Client, ClientLimits, EraCache, Error};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

type EraScript = fn(&SeenRequest) -> ScriptedResponse;

/// Returns how a client got through to a script, or why not, with what was tried.
async fn outcome(script: EraScript) -> (String, Vec<String>, Vec<String>) {
    let server = ScriptedHttpServer::start(script).await;
    let limits = ClientLimits { probe_timeout: Duration::from_millis(300), ..ClientLimits::default() };
    let connected = within(direct().limits(limits).connect(server.url.as_str())).await;
    let told =
        |attempts: &[trunkline_client::ConnectAttempt]| attempts.iter().map(ToString::to_string).collect();
    let (outcome, attempts) = match connected {
        Ok(client) => {
            let info = client.server();
            (format!("{} {}", info.transport, info.revision), told(&info.attempts))
        }
        Err(Error::Unreachable(unreachable)) => {
            (format!("unreachable: {}", unreachable.cause), told(&unreachable.attempts))
        }
        Err(error) => (error.to_string(), Vec::new()),
    };
    (outcome, attempts, server.request_names())
}

#[tokio::test]
async fn preferred_era_is_used_over_http_if_supported_else_the_other() {
    let both: EraScript = |seen| seen.discover().or_else(|| seen.session()).unwrap();
    let legacy: EraScript = |seen| then_session(seen, seen.error(404, -32601, Value::Null));
    let modern: EraScript = |seen| seen.discover().unwrap_or_else(|| seen.error(400, -32022, json!({})));
    let modern_without_words: EraScript =
        |seen| seen.discover().unwrap_or_else(|| ScriptedResponse::status(404, ""));
    for (kind, script, has_legacy, has_modern) in [
        ("both", both, true, true),
        ("legacy", legacy, true, false),
        ("modern", modern, false, true),
        ("modern without words", modern_without_words, false, true),
    ] {
        for (prefers, is_spoken) in [(Era::Legacy, has_legacy), (Era::Modern, has_modern)] {
            let server = ScriptedHttpServer::start(script).await;
            let client = within(direct().prefer(prefers).connect(server.url.as_str())).await.unwrap();
            assert_eq!(client.revision().era() == prefers, is_spoken, "{kind}, {prefers:?}");
            let eras = client.server().eras;
            assert_eq!(eras.supports(prefers), Some(is_spoken), "{kind}, {prefers:?}");
        }
    }
}

#[tokio::test]
async fn legacy_preference_is_not_cached_for_a_dual_era_server() {
    let server = ScriptedHttpServer::start(|seen| seen.discover().or_else(|| seen.session()).unwrap()).await;
    let verdicts = EraCache::default();
    for era in [Era::Legacy, Era::Modern, Era::Legacy] {
        let builder = direct().era_cache(verdicts.clone()).prefer(era);
        let client = within(builder.connect(server.url.as_str())).await.unwrap();
        assert_eq!(client.revision().era(), era);
    }
}

/// Sends the given response to `server/discover`, and opens sessions.
fn then_session(seen: &SeenRequest, said: ScriptedResponse) -> ScriptedResponse {
    if seen.request_name() == "server/discover" { said } else { seen.session().unwrap() }
}

#[tokio::test]
async fn first_http_response_decides_the_era() {
    let modern = "streamable-http 2026-07-28";
    let legacy = "streamable-http 2025-11-25";
    let table: &[(&str, EraScript, &str)] = &[
        ("describes itself", |seen| seen.discover().unwrap(), modern),
        ("an error within 200", |seen| then_session(seen, seen.error(200, -32601, Value::Null)), legacy),
        ("an unknown method", |seen| then_session(seen, seen.error(404, -32601, Value::Null)), legacy),
        (
            "a header that it does not know",
            |seen| then_session(seen, seen.error(400, -32020, Value::Null)),
            legacy,
        ),
        (
            "no session",
            |seen| then_session(seen, ScriptedResponse::status(400, "Bad Request: no session")),
            legacy,
        ),
        ("nothing", |seen| then_session(seen, ScriptedResponse::status(404, "")), legacy),
        (
            "a page",
            |seen| {
                then_session(seen, ScriptedResponse::status(405, "<html>").with("content-type", "text/html"))
            },
            legacy,
        ),
        ("another type", |seen| then_session(seen, ScriptedResponse::status(415, "")), legacy),
        ("a page with 200", |seen| then_session(seen, ScriptedResponse::status(200, "<html>")), legacy),
        ("taken and not answered", |seen| then_session(seen, ScriptedResponse::status(202, "")), legacy),
        (
            "an error that names no request",
            |seen| {
                then_session(
                    seen,
                    ScriptedResponse::json(
                        400,
                        &json!({ "jsonrpc": "2.0", "id": null,
                "error": { "code": -32000, "message": "Bad Request" } }),
                    ),
                )
            },
            legacy,
        ),
        (
            "older revisions",
            |seen| then_session(seen, seen.error(400, -32022, json!({ "supported": ["2025-06-18"] }))),
            "streamable-http 2025-06-18",
        ),
        (
            "both, but not in this one",
            |seen| match seen.number {
                0 => seen.error(400, -32022, json!({ "supported": ["2026-07-28", "2025-11-25"] })),
                _ => seen.discover().unwrap(),
            },
            modern,
        ),
    ];
    for (what, script, expected) in table {
        let (outcome, attempts, seen) = outcome(*script).await;
        assert_eq!(outcome, *expected, "{what}: {attempts:?}");
        assert!(attempts[0].starts_with("server/discover at 2026-07-28: "), "{what}: {attempts:?}");
        assert_eq!(seen[0], "server/discover", "{what}");
    }
}

#[tokio::test]
async fn inconclusive_probe_fails_without_further_attempts() {
    let table: &[(&str, EraScript, &str)] = &[
        (
            "wrong credentials",
            |_| ScriptedResponse::status(401, "").with("www-authenticate", "Bearer realm=\"x\""),
            "the server refuses access (HTTP 401): Bearer realm=\"x\"",
        ),
        ("no access", |_| ScriptedResponse::status(403, "go away"), "the server refuses access (HTTP 403)"),
        (
            "a failure",
            |_| ScriptedResponse::status(500, "oh no"),
            "unreachable: the server answered with HTTP 500: oh no",
        ),
        (
            "a failure in the words of the protocol",
            |seen| seen.error(500, -32603, Value::Null),
            "unreachable: the server answered with HTTP 500: {\"",
        ),
        ("not now", |_| ScriptedResponse::status(503, ""), "unreachable: the server answered with HTTP 503"),
        (
            "too often",
            |_| ScriptedResponse::status(429, ""),
            "unreachable: the server answered with HTTP 429",
        ),
        ("a connection that ends", |_| ScriptedResponse::bytes(""), "unreachable: the connection was closed"),
        ("something that is not HTTP", |_| ScriptedResponse::bytes("SSH-2.0\r\n\r\n"), "unreachable: "),
        ("silence", |_| ScriptedResponse::nothing(), "unreachable: no answer in time"),
        (
            "no revision that we know",
            |seen| seen.error(400, -32022, json!({ "supported": ["2099-01-01"] })),
            "unreachable: the server speaks none of our revisions, but 2099-01-01",
        ),
        (
            "another place",
            |_| ScriptedResponse::status(307, "").with("location", "http://elsewhere.invalid/mcp"),
            "unreachable: the server answered with HTTP 307: the server redirects to \
             `http://elsewhere.invalid/mcp`",
        ),
    ];
    for (what, script, expected) in table {
        let (outcome, attempts, seen) = outcome(*script).await;
        assert!(outcome.starts_with(expected), "{what}: {outcome} {attempts:?}");
        let most = if *what == "something that is not HTTP" { 2 } else { 1 };
        assert!(seen.len() <= most && seen[0] == "server/discover", "{what}: {seen:?}");
    }
}

#[tokio::test]
async fn server_that_rejects_its_listed_revision_is_retried_once() {
    let script: EraScript = |seen| seen.error(400, -32022, json!({ "supported": ["2026-07-28"] }));
    let (outcome, attempts, seen) = outcome(script).await;
    assert!(outcome.starts_with("unreachable: error -32022"), "{outcome}");
    assert_eq!((attempts.len(), seen.len()), (2, 2));
}

#[tokio::test]
async fn refused_connection_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let Err(Error::Unreachable(error)) = within(direct().connect(url.as_str())).await else { panic!() };
    assert_eq!(error.attempts.len(), 1);
    assert!(error.to_string().contains("refused") && error.to_string().contains(&url), "{error}");
}

#[tokio::test]
async fn http_sse_is_tried_last_and_every_attempt_is_in_the_error() {
    let (outcome, attempts, seen) = outcome(|_| ScriptedResponse::status(404, "nothing here")).await;
    assert_eq!(outcome, "unreachable: the server answered with HTTP 404: nothing here");
    let expected = [
        "server/discover at 2026-07-28: the server answered with HTTP 404: nothing here",
        "initialize at 2025-11-25: the server answered with HTTP 404: nothing here",
        "a stream of HTTP+SSE: the server answered with HTTP 404: nothing here",
    ];
    assert_eq!(attempts, expected);
    assert_eq!(seen, ["server/discover", "initialize", "GET"]);
}

#[tokio::test]
async fn http_sse_fallback_requires_a_rejected_post() {
    let table: &[(&str, EraScript)] = &[
        ("a failure", |_| ScriptedResponse::status(500, "")),
        ("a page", |_| ScriptedResponse::status(200, "<html>").with("content-type", "text/html")),
        ("an error", |seen| seen.error(400, -32600, Value::Null)),
        ("too often", |_| ScriptedResponse::status(429, "")),
    ];
    for (what, script) in table {
        let server = ScriptedHttpServer::start(*script).await;
        let pinned = direct().pin(Revision::V2024_11_05).connect(server.url.as_str());
        let Err(Error::Unreachable(_)) = within(pinned).await else { panic!("{what}") };
        assert_eq!(server.request_names(), ["initialize"], "{what}");
    }
    let refused = |_: &SeenRequest| ScriptedResponse::status(401, "");
    let server = ScriptedHttpServer::start(refused).await;
    let pinned = direct().pin(Revision::V2024_11_05).connect(server.url.as_str());
    assert!(matches!(within(pinned).await, Err(Error::Unauthorized { status: 401, challenge: None })));
    assert_eq!(server.request_names(), ["initialize"]);
}

#[tokio::test]
async fn only_the_pinned_revision_is_tried() {
    let server = ScriptedHttpServer::start(|seen| seen.session().unwrap()).await;
    let pinned = direct().pin(Revision::V2025_03_26).connect(server.url.as_str());
    let client = within(pinned).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2025_03_26);
    assert!(!server.request_names().contains(&"server/discover".to_owned()));

    let pinned = within(direct().pin(Revision::NEWEST).connect(server.url.as_str()));
    let Err(Error::Unreachable(error)) = pinned.await else { panic!() };
    assert!(error.cause.starts_with("the server does not speak 2026-07-28: error -32601"), "{error}");
    assert_eq!(server.request_names().iter().filter(|words| *words == "initialize").count(), 1);

    // A server that answers with another revision is left again, and its session ended.
    let other = ScriptedHttpServer::start(|seen| match seen.request_name().as_str() {
        "initialize" => seen
            .result(json!({ "protocolVersion": "2024-11-05", "capabilities": {} }))
            .with("mcp-session-id", "s"),
        _ => seen.session().unwrap(),
    })
    .await;
    let pinned = direct().pin(Revision::V2025_06_18).connect(other.url.as_str());
    let Err(Error::Unreachable(error)) = within(pinned).await else { panic!() };
    assert_eq!(error.cause, "the server does not speak 2025-06-18, but 2024-11-05");
    other.wait_for_request("DELETE").await;
}

#[tokio::test]
async fn cached_era_is_used_until_it_is_wrong() {
    let is_new = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = ScriptedHttpServer::start({
        let is_new = is_new.clone();
        move |seen| match is_new.load(std::sync::atomic::Ordering::SeqCst) {
            true if seen.request_name() == "initialize" => seen.error(404, -32601, Value::Null),
            true => seen.discover().unwrap(),
            false => seen.session().unwrap(),
        }
    })
    .await;
    let verdicts = EraCache::default();
    let connect = async || -> Client {
        within(direct().era_cache(verdicts.clone()).connect(server.url.as_str())).await.unwrap()
    };
    let asked = || server.request_names().iter().filter(|words| *words == "server/discover").count();
    drop((connect().await, connect().await));
    assert_eq!(asked(), 1);
    is_new.store(true, std::sync::atomic::Ordering::SeqCst);
    let client = connect().await;
    assert_eq!(client.server().revision, Revision::NEWEST);
    let attempts: Vec<_> = client.server().attempts.iter().map(|attempt| attempt.action.clone()).collect();
    assert_eq!(attempts, ["initialize at 2025-11-25", "server/discover at 2026-07-28"]);
}
