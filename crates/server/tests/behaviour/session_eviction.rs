//! At the limit of sessions the client that holds the most makes room for the others.

use std::sync::Arc;

use serde_json::json;
use trunkline_server::http::{BearerTokens, HttpServerOptions, HttpService};
use trunkline_server::session::SessionLimits;
use trunkline_server::{Host, Metrics, Server, Tool};

use crate::support::{Client, host, initialize, legacy_tool, tool_text, within};

const REVISION: &str = "2025-11-25";

fn server() -> Server {
    Server::new("s")
        .with(Tool::new("hello").run(async || "hello"))
        .with(Tool::new("endless").run(async || std::future::pending::<()>().await))
}

fn limited(host: &Host, total: usize) -> HttpService {
    let session_limits = SessionLimits { total, ..SessionLimits::default() };
    host.http_service(HttpServerOptions { session_limits, ..HttpServerOptions::default() })
}

/// Opens sessions from one address.
async fn open(service: &HttpService, address: &str, count: usize) -> Vec<Client> {
    let mut opened = Vec::new();
    for _ in 0..count {
        opened.push(Client::of(service).at_address(address).initialized(REVISION).await);
    }
    opened
}

/// Returns how many of the sessions still exist.
async fn alive(sessions: &[Client]) -> usize {
    let mut count = 0;
    for client in sessions {
        let response = client.post(&legacy_tool(1, "hello")).await;
        if response.status == 200 {
            assert_eq!(tool_text(&response.answer().await), "hello");
            count += 1;
        } else {
            assert_eq!(response.status, 404);
        }
    }
    count
}

#[tokio::test]
async fn address_with_the_most_sessions_makes_room_for_another() {
    let host = host(&server());
    let service = limited(&host, 8);
    let ann = open(&service, "192.0.2.1", 1).await;
    let flood = open(&service, "192.0.2.66", 50).await;
    assert_eq!(service.sessions(), 8);
    let bob = open(&service, "192.0.2.2", 1).await;
    assert_eq!((alive(&ann).await, alive(&bob).await, alive(&flood).await), (1, 1, 6));
    assert!(Metrics::new().text().contains("mcp_server_evicted_sessions_total{limit=\"total\"}"));
}

#[tokio::test]
async fn session_with_a_running_call_or_open_stream_is_not_evicted() {
    let host = host(&server());
    let service = limited(&host, 3);
    let flood = open(&service, "192.0.2.66", 2).await;
    let listening = flood[0].get().await;
    assert_eq!(listening.status, 200);
    let call = {
        let busy = flood[1].clone();
        tokio::spawn(async move { busy.post(&legacy_tool(7, "endless")).await.status })
    };
    within(async {
        while host.load().0 != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let ann = open(&service, "192.0.2.1", 1).await;
    // All that could make room is busy, and `ann` holds less than this client.
    let more = Client::of(&service).at_address("192.0.2.66");
    let refused = more.post(&initialize(REVISION, json!({}))).await.answer().await;
    assert!(refused.get("error").is_some(), "{refused}");
    assert_eq!((alive(&ann).await, alive(&flood[..1]).await), (1, 1));
    drop(listening);
    let again = open(&service, "192.0.2.66", 1).await;
    assert_eq!((alive(&ann).await, alive(&flood[..1]).await, alive(&again).await), (1, 0, 1));
    call.abort();
}

#[tokio::test]
async fn principal_at_its_quota_loses_only_its_own_sessions() {
    let host = host(&server());
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    let session_limits = SessionLimits { per_principal: 2, ..SessionLimits::default() };
    let service = host.http_service(HttpServerOptions {
        authenticator: Arc::new(tokens),
        session_limits,
        ..HttpServerOptions::default()
    });
    let named = |name: &'static str| Client::of(&service).named(name).initialized(REVISION);
    let (bob, ann) = (named("bob").await, [named("ann").await, named("ann").await, named("ann").await]);
    assert_eq!((alive(&ann).await, alive(&[bob]).await), (2, 1));
}
