//! At the limit of channels the client that holds the most makes room for the others.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use trunkline_server::http::HttpServerOptions;
use trunkline_server::session::SessionLimits;
use trunkline_server::{Metrics, ServerLimits};

use crate::http_client::{status, to};
use crate::service::{Service, initialize, request, tool, within};
use crate::transport_link::open_sse;
use crate::websocket::{Socket, close_code, connect};

async fn service(total: usize) -> Service {
    let session_limits = SessionLimits { total, ..SessionLimits::default() };
    let options = HttpServerOptions { session_limits, ..HttpServerOptions::default() };
    Service::start_with(options, ServerLimits::default()).await
}

/// Opens a WebSocket with a session, at another millisecond than what came before.
async fn open(service: &Service) -> Socket {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let (mut socket, _) = connect(service, None).await.unwrap();
    socket.send(initialize("2025-11-25").to_string().into()).await.unwrap();
    within(socket.next()).await.unwrap().unwrap();
    socket
}

async fn ping(socket: &mut Socket) {
    tokio::time::sleep(Duration::from_millis(5)).await;
    socket.send(request(2, "ping", json!({})).to_string().into()).await.unwrap();
    assert!(within(socket.next()).await.unwrap().unwrap().is_text());
}

#[tokio::test]
async fn channel_at_the_limit_replaces_the_one_that_is_idle_for_the_longest_time() {
    let service = service(3).await;
    let (mut events, _) = open_sse(service.address, &[]).await;
    let mut first = open(&service).await;
    let mut second = open(&service).await;
    ping(&mut first).await;
    let mut third = open(&service).await;
    assert!(within(events.next()).await.is_none(), "the stream was idle for the longest time");
    let mut fourth = open(&service).await;
    assert_eq!(close_code(&mut second).await, 1013, "it was used before the first");
    for socket in [&mut first, &mut third, &mut fourth] {
        ping(socket).await;
    }
    within(async {
        while service.endpoint.channels() != 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(Metrics::new().text().contains("mcp_server_evicted_sessions_total{limit=\"total\"}"));
}

#[tokio::test]
async fn channels_with_running_calls_are_never_replaced() {
    let service = service(2).await;
    let mut busy = [open(&service).await, open(&service).await];
    for socket in &mut busy {
        socket.send(tool(7, "wait", json!({})).to_string().into()).await.unwrap();
    }
    service.waiting.are(2).await;
    assert_eq!(connect(&service, None).await.err(), Some(429));
    let (refused, headers) = status(service.address, to(service.address, "GET", "/sse"), "").await;
    assert_eq!((refused.as_u16(), headers["retry-after"].to_str().unwrap()), (429, "1"));
    let [first, _second] = busy;
    drop(first);
    service.waiting.are(1).await;
    within(async {
        while service.endpoint.channels() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    open(&service).await;
}
