//! WebSocket: one connection is one channel.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use trunkline_server::ServerLimits;
use trunkline_server::http::{DrainOutcome, HttpServerOptions};

use crate::http_client::{status, to};
use crate::service::{Service, initialize, request, tool, within};

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Connects with the subprotocols that are offered; returns the one that was chosen too.
pub(crate) async fn connect(
    service: &Service,
    offered: Option<&str>,
) -> Result<(Socket, Option<String>), u16> {
    let mut request = format!("ws://{}/ws", service.address).into_client_request().unwrap();
    if let Some(offered) = offered {
        request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
    }
    let stream = TcpStream::connect(service.address).await.unwrap();
    match within(tokio_tungstenite::client_async(request, stream)).await {
        Ok((socket, response)) => {
            let chosen = response.headers().get("sec-websocket-protocol");
            Ok((socket, chosen.map(|chosen| chosen.to_str().unwrap().to_owned())))
        }
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// Reads until the server closes; returns its code.
pub(crate) async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        match within(socket.next()).await {
            Some(Ok(Message::Close(frame))) => return frame.unwrap().code.into(),
            Some(Ok(_)) => {}
            other => panic!("closed without a word: {other:?}"),
        }
    }
}

#[tokio::test]
async fn websocket_subprotocol_is_chosen_from_the_offered() {
    let service = Service::start().await;
    for (offered, expected) in [(Some("mcp"), Some("mcp")), (Some("mcp, other"), Some("mcp")), (None, None)] {
        let (mut socket, chosen) = connect(&service, offered).await.unwrap();
        assert_eq!(chosen.as_deref(), expected, "{offered:?}");
        socket.send(request(1, "ping", json!({})).to_string().into()).await.unwrap();
        let pong = within(socket.next()).await.unwrap().unwrap();
        assert_eq!(pong.to_text().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
    assert_eq!(connect(&service, Some("other")).await.err(), Some(400));
    let plain = to(service.address, "GET", "/ws");
    let old = to(service.address, "GET", "/ws")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "8")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    for (name, request) in [("no upgrade", plain), ("another version", old)] {
        let (status, headers) = status(service.address, request, "").await;
        assert_eq!(status, 426, "a request that asks for {name}");
        for (header, said) in
            [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-version", "13")]
        {
            assert_eq!(headers[header], said, "{name}: what to ask for instead");
        }
    }
    let (posted, headers) = status(service.address, to(service.address, "POST", "/ws"), "{}").await;
    assert_eq!((posted.as_u16(), headers["allow"].to_str().unwrap()), (405, "GET, OPTIONS"));
}

#[tokio::test]
async fn binary_or_oversized_websocket_message_closes_the_channel() {
    let limits = ServerLimits { message_bytes: 4096, ..ServerLimits::default() };
    let service = Service::start_with(HttpServerOptions::default(), limits).await;
    let long = "x".repeat(100_000);
    for (message, expected) in [(Message::binary(vec![1, 2, 3]), 1003), (Message::text(long), 1009)] {
        let (mut socket, _) = connect(&service, None).await.unwrap();
        socket.send(initialize("2025-11-25").to_string().into()).await.unwrap();
        socket.send(tool(1, "wait", json!({})).to_string().into()).await.unwrap();
        service.waiting.are(1).await;
        // The server may have closed before everything is written.
        let _ = socket.send(message).await;
        assert_eq!(close_code(&mut socket).await, expected);
        service.waiting.are(0).await;
        drop(socket);
        service.is_left_alone().await;
    }
}

#[tokio::test]
async fn malformed_websocket_text_gets_an_error_and_the_channel_stays_open() {
    let service = Service::start().await;
    let (mut socket, _) = connect(&service, None).await.unwrap();
    for (text, code) in [("{", -32700), ("[]", -32600), ("1", -32600)] {
        socket.send(Message::text(text)).await.unwrap();
        let answer = within(socket.next()).await.unwrap().unwrap();
        let answer: serde_json::Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{text}");
    }
}

#[tokio::test]
async fn draining_closes_websockets_with_1001_after_running_calls() {
    let service = Service::start().await;
    let (mut idle, _) = connect(&service, None).await.unwrap();
    let (mut busy, _) = connect(&service, None).await.unwrap();
    busy.send(initialize("2025-11-25").to_string().into()).await.unwrap();
    busy.send(tool(1, "wait", json!({})).to_string().into()).await.unwrap();
    service.waiting.are(1).await;
    service.host.shutdown().drain();
    assert_eq!(close_code(&mut idle).await, 1001);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    busy.send(cancel.to_string().into()).await.unwrap();
    assert_eq!(close_code(&mut busy).await, 1001, "once its call is over");
    drop((idle, busy));
    assert_eq!(service.ended().await, DrainOutcome::Cleanly);
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_websocket_peer_to_close() {
    let service = Service::start().await;
    let (mut socket, _) = connect(&service, None).await.unwrap();
    socket.send(tool(1, "wait", json!({})).to_string().into()).await.unwrap();
    socket.send(initialize("2025-11-25").to_string().into()).await.unwrap();
    socket.send(tool(2, "wait", json!({})).to_string().into()).await.unwrap();
    service.waiting.are(1).await;
    service.host.shutdown().stop();
    assert_eq!(service.ended().await, DrainOutcome::Aborted(1));
}
