//! WebSockets that do not open, or do not stay.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use trunkline_client::protocol::Revision;
use trunkline_client::transport::accept_key;
use trunkline_client::{ClientLimits, DroppedMessage, Error};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

/// Accepts the upgrade, and disconnects.
fn agree_and_leave(seen: &SeenRequest) -> ScriptedResponse {
    let accept = accept_key(seen.headers["sec-websocket-key"].as_bytes());
    ScriptedResponse::bytes(format!(
        "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    ))
}

#[tokio::test]
async fn failed_websocket_handshake_is_reported_with_the_reason() {
    type WebSocketScript = fn(&SeenRequest) -> ScriptedResponse;
    let table: &[(&str, WebSocketScript, &str)] = &[
        ("no such place", |_| ScriptedResponse::status(404, "nothing here"), "HTTP 404: nothing here"),
        ("no WebSocket", |_| ScriptedResponse::status(200, "<html>"), "HTTP 200: <html>"),
        ("a failure", |_| ScriptedResponse::status(503, ""), "HTTP 503"),
        (
            "a wrong handshake",
            |_| {
                ScriptedResponse::bytes(
                    "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
                )
            },
            "handshake is wrong",
        ),
        ("nothing", |_| ScriptedResponse::bytes(""), "closed"),
    ];
    for (what, script, expected) in table {
        let server = ScriptedHttpServer::start(*script).await;
        let url = server.url.replacen("http://", "ws://", 1);
        let connecting = direct().bearer("sentinel").connect(url.as_str());
        let Err(Error::Unreachable(error)) = within(connecting).await else { panic!("{what}") };
        assert!(error.cause.contains(expected), "{what}: {error}");
        assert_eq!(error.attempts.len(), 1, "{what}");
        assert_eq!(server.seen()[0].header("authorization"), Some("Bearer sentinel"));
    }
    let server =
        ScriptedHttpServer::start(|_| ScriptedResponse::status(401, "").with("www-authenticate", "Bearer"))
            .await;
    let url = server.url.replacen("http://", "ws://", 1);
    let Err(Error::Unauthorized { status: 401, challenge }) = within(direct().connect(url.as_str())).await
    else {
        panic!()
    };
    assert_eq!(challenge.as_deref(), Some("Bearer"));
}

#[tokio::test]
async fn websocket_closed_during_the_probe_is_inconclusive() {
    let server = ScriptedHttpServer::start(agree_and_leave).await;
    let url = server.url.replacen("http://", "ws://", 1);
    let Err(Error::Unreachable(error)) = within(direct().connect(url.as_str())).await else { panic!() };
    assert_eq!(error.attempts.len(), 1);
    assert!(error.attempts[0].action.starts_with("server/discover"), "{:?}", error.attempts);
    assert_eq!(server.seen().len(), 1, "nothing else was tried");
}

/// The limit of the clients of a [`hostile_server`].
const LIMIT: usize = 64 << 10;

/// Reads one frame of a client, which is text of at most 64 KiB, and unmasks it.
async fn read_frame(stream: &mut TcpStream) -> Value {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await.unwrap();
    let length = match head[1] & 0x7f {
        126 => usize::from(stream.read_u16().await.unwrap()),
        short => usize::from(short),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await.unwrap();
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.unwrap();
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    serde_json::from_slice(&payload).unwrap()
}

/// Returns a whole frame of a server.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode, 127];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend(payload);
    frame
}

/// A WebSocket server of the legacy era that answers two calls with one frame; returns its URL.
async fn hostile_server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("sec-websocket-key").then_some(value)
        });
        let accept = accept_key(key.unwrap().as_bytes());
        let switched = format!(
            "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
        );
        stream.write_all(switched.as_bytes()).await.unwrap();
        let mut calls = 0;
        while calls < 2 {
            let message = read_frame(&mut stream).await;
            if message["method"] == "initialize" {
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "hostile", "version": "1" },
                });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                stream.write_all(&frame(1, answer.to_string().as_bytes())).await.unwrap();
            }
            calls += usize::from(message["method"] == "tools/call");
        }
        stream.write_all(&answer).await.unwrap();
        // The client ends the connection.
        while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
    });
    format!("ws://{address}/ws")
}

/// Makes two calls of a server that answers with one frame; returns both errors and what was dropped.
async fn calls_answered_with(answer: Vec<u8>) -> ([Error; 2], Vec<DroppedMessage>) {
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = dropped.clone();
    let limits = ClientLimits { message_bytes: LIMIT, ..ClientLimits::default() };
    let builder = direct().limits(limits).pin(Revision::NEWEST_LEGACY);
    let builder = builder.on_dropped(move |kind| seen.lock().unwrap().push(kind));
    let url = hostile_server(answer).await;
    let client = within(builder.connect(url.as_str())).await.unwrap();
    let call = || async { within(client.call("t", json!({}))).await.unwrap_err() };
    let (first, second) = tokio::join!(call(), call());
    assert!(client.is_closed());
    let dropped = dropped.lock().unwrap().clone();
    ([first, second], dropped)
}

#[tokio::test]
async fn websocket_message_above_the_limit_fails_all_calls_with_the_limit() {
    let long = "x".repeat(LIMIT + 1);
    let (errors, dropped) = calls_answered_with(frame(1, long.as_bytes())).await;
    for error in errors {
        assert!(matches!(error, Error::TooLong { limit: LIMIT }), "{error:?}");
    }
    assert_eq!(dropped, [DroppedMessage::TooLong { limit: LIMIT }]);
}

#[tokio::test]
async fn broken_websocket_message_fails_all_calls_with_the_cause() {
    for (answer, expected) in [
        (frame(1, b"\xff\xfe"), "text that is not UTF-8"),
        (frame(2, b"{}"), "a binary message"),
        (frame(0xb, b"{}"), "an invalid frame"),
    ] {
        let (errors, dropped) = calls_answered_with(answer).await;
        for error in errors {
            let Error::Closed { cause, .. } = &error else { panic!("{expected}: {error:?}") };
            assert!(cause.contains(expected), "{expected}: {cause}");
        }
        assert_eq!(dropped, [DroppedMessage::Unreadable], "{expected}");
    }
}
