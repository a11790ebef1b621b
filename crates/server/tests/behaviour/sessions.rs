//! Legacy sessions over HTTP: which principal may use one, how long, and what it remembers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline_server::http::{BearerTokens, HttpServerOptions, HttpService};
use trunkline_server::protocol::LoggingLevel;
use trunkline_server::session::SessionLimits;
use trunkline_server::{Context, Host, Server, Tool};

use crate::support::{Client, code, host, legacy, legacy_tool, note, service, tool_text};

const OVER_HTTP: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Long enough for a few requests on a busy machine, and short enough to wait for.
const IDLE: Duration = Duration::from_millis(400);

/// What no session was ever called.
const UNKNOWN: &str = "0123456789abcdef0123456789abcdef";

fn server() -> Server {
    Server::new("s").with(Tool::new("hello").run(async || "hello")).with(Tool::new("talk").run(
        async |cx: Context| {
            for level in LoggingLevel::ALL {
                cx.log(level, level.as_str());
            }
            "said"
        },
    ))
}

fn short_lived(host: &Host) -> Client {
    let session_limits = SessionLimits { idle: IDLE, ..SessionLimits::default() };
    let tokens = BearerTokens::new([("ann", "ann-token-0123456")]);
    let authenticator = Arc::new(tokens);
    Client::of(&host.http_service(HttpServerOptions {
        session_limits,
        authenticator,
        ..HttpServerOptions::default()
    }))
    .named("ann")
}

#[tokio::test(start_paused = true)]
async fn unknown_session_id_is_status_404_on_every_method() {
    let host = host(&server());
    let client = Client::new(&host).with("mcp-protocol-version", "2025-11-25");
    let long = "a".repeat(4000);
    for id in [UNKNOWN, "x", "", &long, "../../etc/passwd", "00000000-0000-0000-0000-000000000000"] {
        let client = client.clone().with("mcp-session-id", id);
        for response in [
            client.post(&legacy_tool(1, "hello")).await,
            client.post(&note("notifications/initialized", json!({}))).await,
            client.post(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await,
            client.get().await,
            client.resume("1-0").await,
            client.delete().await,
        ] {
            assert_eq!(response.status, 404, "{id}");
        }
    }
    assert_eq!(client.service.sessions(), 0);
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn request_without_a_session_is_refused_with_status_400() {
    let host = host(&server());
    let bare = Client::new(&host);
    for client in [bare.clone(), bare.with("mcp-protocol-version", "2025-06-18")] {
        let with_id = client.post(&legacy_tool(7, "hello")).await;
        assert_eq!(with_id.status, 400);
        let answer = with_id.answer().await;
        assert_eq!(answer["id"], 7, "the refusal belongs to the request");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`initialize`"), "{answer}");
        for response in [
            client.post(&note("notifications/initialized", json!({}))).await,
            client.get().await,
            client.delete().await,
        ] {
            assert_eq!(response.status, 400);
            let answer = response.answer().await;
            assert!(answer["error"]["message"].as_str().unwrap().contains("`initialize`"), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_is_found_only_by_its_own_principal() {
    let host = host(&server());
    let service = service(&host);
    let ann = Client::of(&service).named("ann").initialized("2025-11-25").await;
    let thief = ann.clone().named("bob");
    for stolen in [
        thief.post(&legacy_tool(1, "hello")).await,
        thief.post(&note("notifications/cancelled", json!({ "requestId": 1 }))).await,
        thief.get().await,
        thief.resume("1-0").await,
        thief.delete().await,
    ] {
        assert_eq!(stolen.status, 404);
    }
    for stranger in [ann.clone().without("authorization"), ann.clone().with("authorization", "Bearer guess")]
    {
        for refused in
            [stranger.post(&legacy_tool(1, "hello")).await, stranger.get().await, stranger.delete().await]
        {
            assert_eq!(refused.status, 401);
        }
    }
    assert_eq!(tool_text(&ann.post(&legacy_tool(1, "hello")).await.answer().await), "hello");
}

#[tokio::test(start_paused = true)]
async fn deleted_session_is_not_found() {
    let host = host(&server());
    for revision in OVER_HTTP {
        let client = Client::new(&host).initialized(revision).await;
        assert_eq!(client.service.sessions(), 1);
        assert_eq!(client.delete().await.status, 204);
        assert_eq!(client.service.sessions(), 0);
        for gone in [client.post(&legacy_tool(1, "hello")).await, client.get().await, client.delete().await] {
            assert_eq!(gone.status, 404, "{revision}");
        }
    }
}

/// Sweeps until this many sessions are left, and returns the longest pause between two sweeps.
///
/// Sessions are timed by the system clock, which cannot be paused for tests.
async fn sweep_down_to(service: &HttpService, left: usize) -> Duration {
    let begun = Instant::now();
    let (mut swept, mut longest) = (begun, Duration::ZERO);
    while service.sessions() > left {
        service.sweep().await;
        longest = longest.max(swept.elapsed());
        swept = Instant::now();
        assert!(begun.elapsed() < Duration::from_secs(30), "{} sessions never expire", service.sessions());
        tokio::task::yield_now().await;
    }
    longest
}

#[tokio::test]
async fn idle_session_expires() {
    let host = host(&server());
    let begun = Instant::now();
    let client = short_lived(&host).initialized("2025-11-25").await;
    assert_eq!(client.service.sessions(), 1);
    sweep_down_to(&client.service, 0).await;
    // The clock counts whole milliseconds.
    assert!(begun.elapsed() + Duration::from_millis(2) >= IDLE, "{:?}", begun.elapsed());
    assert_eq!(client.post(&legacy_tool(1, "hello")).await.status, 404);
}

#[tokio::test]
async fn session_with_a_running_call_or_open_stream_does_not_expire() {
    let endless = Tool::new("endless").run(async || std::future::pending::<()>().await);
    let server = Server::new("s").with(endless);
    for _ in 0..20 {
        let host = host(&server);
        let busy = short_lived(&host).initialized("2025-11-25").await;
        let standing = Client::of(&busy.service).named("ann").initialized("2025-11-25").await;
        let listening = standing.get().await;
        Client::of(&busy.service).named("ann").initialized("2025-11-25").await;
        let call = {
            let busy = busy.clone();
            tokio::spawn(async move { busy.post(&legacy_tool(1, "endless")).await.status })
        };
        let longest = sweep_down_to(&busy.service, 2).await;
        drop(listening);
        let deleted = busy.delete().await.status;
        call.abort();
        // A machine that left this test alone for longer than a session may be idle has not tested anything.
        if longest < IDLE / 2 {
            assert_eq!(deleted, 204, "it was there, and ends when it is told to");
            return;
        }
    }
    panic!("the machine is too slow to tell");
}

#[tokio::test(start_paused = true)]
async fn protocol_version_header_is_checked_on_every_request_but_initialize() {
    let host = host(&server());
    for revision in OVER_HTTP {
        for odd in ["2024-01-01", "1.0.0", "", "2025-11-25, 2025-06-18"] {
            let opened = Client::new(&host).with("mcp-protocol-version", odd);
            let client = opened.initialized(revision).await;
            let wrong = client.clone().with("mcp-protocol-version", odd);
            for response in [wrong.post(&legacy_tool(1, "hello")).await, wrong.get().await] {
                assert_eq!(response.status, 400, "{revision} {odd}");
            }
            let right = client.post(&legacy_tool(2, "hello")).await;
            assert_eq!(tool_text(&right.answer().await), "hello");
            let absent = client.clone().without("mcp-protocol-version");
            assert_eq!(tool_text(&absent.post(&legacy_tool(3, "hello")).await.answer().await), "hello");
        }
    }
    let modern =
        Client::new(&host).with("mcp-protocol-version", "2026-07-28").initialized("2025-11-25").await;
    assert_eq!(tool_text(&modern.post(&legacy_tool(1, "hello")).await.answer().await), "hello");
}

#[tokio::test(start_paused = true)]
async fn handshake_negotiates_a_common_revision() {
    let host = host(&server());
    for (asked, spoken) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "c" } });
        let opened = Client::new(&host).post(&legacy(1, "initialize", params)).await;
        assert!(opened.header("mcp-session-id").is_some());
        assert_eq!(opened.answer().await["result"]["protocolVersion"], spoken, "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_before_the_initialized_notification() {
    let host = host(&server());
    let client = Client::new(&host);
    for revision in OVER_HTTP {
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "c" } });
        let opened = client.post(&legacy(1, "initialize", params)).await;
        let early = client.clone().with("mcp-session-id", opened.header("mcp-session-id").unwrap());
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({ "level": "error" })),
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "hello" })),
        ] {
            let response = early.post(&legacy(2, method, params)).await;
            assert_eq!(response.status, 200, "{revision} {method}");
            assert!(response.answer().await.get("result").is_some(), "{revision} {method}");
        }
    }
}

async fn levels_heard(client: &Client) -> Vec<String> {
    let mut messages = client.post(&legacy_tool(1, "talk")).await.rest().await;
    messages.pop();
    messages.iter().map(|message| message["params"]["level"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_session_gets_logs_of_its_own_level() {
    let host = host(&server());
    let service = host.http_service(HttpServerOptions::default());
    let [mild, grave] = [Client::of(&service), Client::of(&service)];
    let mild = mild.initialized("2025-11-25").await;
    let grave = grave.initialized("2025-06-18").await;
    assert_eq!(levels_heard(&mild).await, [""; 0], "no logs before a level is set");
    for (client, level) in [(&mild, "debug"), (&grave, "critical")] {
        let set = client.post(&legacy(1, "logging/setLevel", json!({ "level": level }))).await;
        assert_eq!(set.answer().await["result"], json!({}));
    }
    assert_eq!(levels_heard(&mild).await.len(), 8);
    assert_eq!(levels_heard(&grave).await, ["critical", "alert", "emergency"]);
    for wrong in [json!({ "level": "loud" }), json!({}), json!({ "level": 3 })] {
        let refused = grave.post(&legacy(1, "logging/setLevel", wrong)).await.answer().await;
        assert_eq!(code(&refused), -32602);
    }
    assert_eq!(levels_heard(&grave).await.len(), 3, "a refused level changes nothing");
}

#[tokio::test(start_paused = true)]
async fn session_ids_are_long_unguessable_and_printable() {
    let host = host(&server());
    let client = Client::new(&host);
    let mut ids = HashSet::new();
    for _ in 0..500 {
        let id = client.clone().initialized("2025-11-25").await.session().to_owned();
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        assert!(id.len() >= 22, "128 bits need 22 characters of base64 and 32 of hexadecimal: {id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 500);
    // Every place of the id varies, so that none of it is a counter or a constant.
    let places = ids.iter().map(String::len).min().unwrap();
    for place in 0..places {
        let seen: HashSet<u8> = ids.iter().map(|id| id.as_bytes()[place]).collect();
        assert!(seen.len() > 8, "place {place} takes only {} values", seen.len());
    }
}

#[tokio::test(start_paused = true)]
async fn second_initialize_opens_a_second_session() {
    let host = host(&server());
    let first = Client::new(&host).initialized("2025-11-25").await;
    let second = first.clone().initialized("2025-06-18").await;
    assert_ne!(first.session(), second.session());
    for client in [&first, &second] {
        assert_eq!(tool_text(&client.post(&legacy_tool(1, "hello")).await.answer().await), "hello");
    }
    assert_eq!(first.service.sessions(), 2);
}

#[tokio::test(start_paused = true)]
async fn modern_request_ignores_a_session_header() {
    let host = host(&server());
    let client = Client::new(&host).with("mcp-session-id", UNKNOWN).with("last-event-id", "1-1");
    let response = client.post(&crate::support::ModernRequest::tool("hello").value()).await;
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(tool_text(&response.answer().await), "hello");
    assert_eq!(client.service.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn malformed_initialize_opens_no_session() {
    let host = host(&server());
    let client = Client::new(&host);
    for params in [
        json!({}),
        json!({ "protocolVersion": 7, "capabilities": {} }),
        json!({ "protocolVersion": "2025-11-25", "capabilities": [] }),
    ] {
        let refused = client.post(&legacy(1, "initialize", params.clone())).await;
        assert_eq!(refused.header("mcp-session-id"), None);
        assert_eq!(code(&refused.answer().await), -32602, "{params}");
    }
    assert_eq!(client.service.sessions(), 0);
}
