//! Connections that end in the middle: after every byte that a client sends, and after every byte that it is sent.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw_http;
use crate::service::{DEADLINE, Service};

/// Sends a part of a conversation and leaves, every other time without the courtesy of closing.
async fn cut_after(service: &Service, sent: &[u8], rudely: bool) {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    if rudely {
        // A reset, as of a peer that was killed.
        stream.set_zero_linger().unwrap();
    } else {
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        // A server that waits for the rest of the request sends no response to a client that will not send it.
        let _ =
            tokio::time::timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("the server closes");
    }
}

async fn cut_everywhere(service: &Service, conversation: &[u8]) {
    for length in 0..=conversation.len() {
        cut_after(service, &conversation[..length], length % 2 == 0).await;
    }
    service.still_serves().await;
    service.idle().await;
}

#[tokio::test]
async fn modern_exchange_survives_a_disconnect_after_any_byte() {
    let service = Service::start().await;
    let conversation = [
        raw_http::modern("tools/call", "echo", &raw_http::echo(1, "cut")),
        raw_http::modern("tools/call", "flood", &raw_http::call(2, "flood", &json!({ "count": 3 }))),
        raw_http::modern("tools/call", "echo", &raw_http::echo(3, "cut again")),
    ];
    cut_everywhere(&service, &conversation.concat()).await;
}

#[tokio::test]
async fn subscription_survives_a_disconnect_after_any_byte() {
    let service = Service::start().await;
    let request = raw_http::modern("subscriptions/listen", "-", &raw_http::listen(1));
    for length in 0..=request.len() {
        cut_after(&service, &request[..length], true).await;
    }
    service.still_serves().await;
    service.idle().await;
}

#[tokio::test]
async fn legacy_exchange_survives_a_disconnect_after_any_byte() {
    let service = Service::start().await;
    let session = service.session(raw_http::LEGACY).await;
    let conversation = [
        raw_http::post(&[], raw_http::initialize(raw_http::LEGACY).as_bytes()),
        raw_http::legacy(&session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        raw_http::legacy(&session, &raw_http::legacy_call(1, "flood", &json!({ "count": 3 }))),
        raw_http::legacy(&session, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#),
    ];
    cut_everywhere(&service, &conversation.concat()).await;
}

#[tokio::test]
async fn client_can_disconnect_after_any_byte_of_a_response() {
    let service = Service::start().await;
    let session = service.session(raw_http::LEGACY).await;
    let flood = json!({ "count": 3 });
    for request in [
        raw_http::modern("tools/call", "echo", &raw_http::echo(1, "read")),
        raw_http::modern("tools/call", "flood", &raw_http::call(2, "flood", &flood)),
        raw_http::legacy(&session, &raw_http::legacy_call(3, "flood", &flood)),
    ] {
        let whole = {
            let mut connection = service.connect().await;
            connection.send(&request).await;
            connection.reply().await.body.len() + 200
        };
        for length in (0..whole).step_by(3) {
            let mut stream = TcpStream::connect(service.address).await.unwrap();
            stream.write_all(&request).await.unwrap();
            let mut part = vec![0; length];
            let _ = tokio::time::timeout(Duration::from_millis(20), stream.read_exact(&mut part)).await;
            stream.set_zero_linger().unwrap();
        }
    }
    service.still_serves().await;
    service.idle().await;
}
