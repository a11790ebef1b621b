//! Sends every message of the table over the two transports that make a channel of HTTP, and a good one after it.

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::malformed::{AFTER, assert_no_faults, check, is_after};
use crate::messages::{ExpectedReply, MessageCase, table};
use crate::raw_http::{self, Connection, LEGACIES};
use crate::service::{DEADLINE, Service};

struct WebSocket(WebSocketStream<TcpStream>);

impl WebSocket {
    async fn open(service: &Service, revision: &str) -> Self {
        let stream = TcpStream::connect(service.address).await.unwrap();
        let url = format!("ws://{}/ws", service.address);
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let mut socket = Self(socket);
        assert!(socket.ask(&raw_http::initialize(revision)).await.contains("serverInfo"));
        socket
    }

    async fn ask(&mut self, message: &str) -> String {
        self.0.send(Message::text(message)).await.unwrap();
        self.receive().await
    }

    async fn receive(&mut self) -> String {
        let message = tokio::time::timeout(DEADLINE, self.0.next()).await.expect("an answer in time");
        message.expect("the server closed the channel").unwrap().into_text().unwrap().to_string()
    }
}

#[tokio::test]
async fn malformed_messages_get_their_documented_error_over_websocket() {
    let service = Service::start().await;
    let mut faults = Vec::new();
    for revision in LEGACIES {
        faults.extend(websocket_faults(&service, revision).await);
    }
    assert_no_faults(&faults);
    service.idle().await;
}

async fn websocket_faults(service: &Service, revision: &str) -> Vec<String> {
    let mut socket = WebSocket::open(service, revision).await;
    let mut faults = Vec::new();
    for row in table() {
        let Some(expect) = row.channel.filter(|_| row.is_in(revision)) else { continue };
        // What is not text cannot be put into a frame of text; that it ends the channel is tested with the transport.
        let Ok(text) = std::str::from_utf8(&row.bytes) else { continue };
        socket.0.send(Message::text(text)).await.unwrap();
        socket.0.send(Message::text(AFTER)).await.unwrap();
        let mut answer = socket.receive().await;
        if is_after(&answer) {
            answer.clear();
        } else {
            let after = socket.receive().await;
            assert!(is_after(&after), "{}: {answer:.300} was followed by {after:.300}", row.name);
        }
        faults.extend(check(&row, expect, revision, None, answer.as_bytes()).err());
    }
    faults
}

/// A stream of HTTP+SSE, and the connection on which messages are posted to it.
struct SsePair {
    stream: Connection,
    posts: Option<Connection>,
    messages: String,
}

impl SsePair {
    async fn open(service: &Service, revision: &str) -> Self {
        let mut stream = service.connect().await;
        stream.send(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").await;
        stream.stream_head().await;
        let first = stream.read_until("\n\n").await;
        let messages = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
        let mut pair = Self { stream, posts: None, messages };
        assert_eq!(pair.post(service, raw_http::initialize(revision).as_bytes()).await.status, 202);
        assert!(pair.stream.read_until("\n\n").await.contains("serverInfo"));
        pair
    }

    async fn post(&mut self, service: &Service, message: &[u8]) -> raw_http::RawReply {
        let mut posts = match self.posts.take() {
            Some(posts) => posts,
            None => service.connect().await,
        };
        let request = raw_http::post(&[], message);
        let (_, rest) = request.split_at("POST /mcp".len());
        // In one piece: a second one would wait for the first to be acknowledged.
        posts.send(&[format!("POST {}", self.messages).as_bytes(), rest].concat()).await;
        let reply = posts.reply().await;
        if reply.header("connection") != Some("close") {
            self.posts = Some(posts);
        }
        reply
    }

    /// Posts a message and a valid one after it; returns the message on the stream for the first.
    async fn exchange(
        &mut self,
        service: &Service,
        row: &MessageCase,
        (expect, revision): (ExpectedReply, &str),
    ) -> Result<(), String> {
        let reply = self.post(service, &row.bytes).await;
        let after = self.post(service, AFTER.as_bytes()).await;
        assert_eq!(after.status, 202, "{}", row.name);
        let said = self.stream.read_until(r#""id":"after""#).await;
        let mut said = said.lines().filter_map(|line| line.strip_prefix("data: "));
        let first = said.next().filter(|line| !is_after(line)).unwrap_or_default();
        match (reply.status, expect) {
            (202, _) => check(row, expect, revision, None, first.as_bytes()),
            // An unreadable message is refused where it was posted, and nothing is sent on the stream.
            (_, ExpectedReply::Refused(_, status)) if first.is_empty() && matches!(status, 400 | 413) => {
                check(row, expect, revision, Some(reply.status), &reply.body)
            }
            (status, _) => Err(format!("{revision}: {}: {status}, and then {first:.300}", row.name)),
        }
    }
}

#[tokio::test]
async fn malformed_messages_get_their_documented_error_over_http_sse() {
    let service = Service::start().await;
    let mut faults = Vec::new();
    for revision in LEGACIES {
        let mut pair = SsePair::open(&service, revision).await;
        for row in table() {
            let Some(expect) = row.channel.filter(|_| row.is_in(revision)) else { continue };
            faults.extend(pair.exchange(&service, &row, (expect, revision)).await.err());
        }
    }
    assert_no_faults(&faults);
    service.idle().await;
}
