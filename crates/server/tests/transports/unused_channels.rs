//! Streams and WebSockets that are opened and not used take no place for long.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use trunkline_server::ServerLimits;
use trunkline_server::http::HttpServerOptions;

use crate::http_client::{status, to};
use crate::service::{Service, initialize, request, within};
use crate::transport_link::open_sse;
use crate::websocket::connect;

async fn service(first_request_timeout: Duration) -> Service {
    let limits = ServerLimits { first_request_timeout, ..ServerLimits::default() };
    Service::start_with(HttpServerOptions::default(), limits).await
}

#[tokio::test]
async fn channels_without_a_first_request_are_closed_and_others_stay() {
    let service = service(Duration::from_millis(300)).await;
    let (mut used_events, messages) = open_sse(service.address, &[]).await;
    let post = |message: Value| {
        let (address, messages) = (service.address, messages.clone());
        async move { status(address, to(address, "POST", &messages), &message.to_string()).await.0 }
    };
    assert_eq!(post(initialize("2024-11-05")).await, 202);
    within(used_events.next()).await.unwrap();
    let (mut used, _) = connect(&service, None).await.unwrap();
    used.send(initialize("2025-11-25").to_string().into()).await.unwrap();
    within(used.next()).await.unwrap().unwrap();

    let (mut silent_events, _) = open_sse(service.address, &[]).await;
    let (mut silent, _) = connect(&service, None).await.unwrap();
    // A ping of either kind is no request that anything depends on.
    silent.send(Message::Ping(Vec::new().into())).await.unwrap();
    silent.send(request(1, "ping", json!({})).to_string().into()).await.unwrap();
    assert!(within(silent_events.next()).await.is_none(), "the stream ends");
    within(async {
        while let Some(Ok(message)) = silent.next().await {
            if message.is_close() {
                break;
            }
        }
    })
    .await;
    within(async {
        while service.endpoint.channels() != 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(post(request(2, "ping", json!({}))).await, 202);
    assert!(within(used_events.next()).await.is_some(), "the used stream stays");
    used.send(request(2, "ping", json!({})).to_string().into()).await.unwrap();
    assert!(within(used.next()).await.unwrap().unwrap().is_text(), "the used WebSocket stays");
}
