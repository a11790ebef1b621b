//! Memory for clients that do not read is counted as it is held: complete buffers, however much the system has taken
//! of them.

use serde_json::json;
use trunkline_server::ServerLimits;

use crate::raw_http::{self, Connection};
use crate::service::{Service, Setup, eventually};

/// More than the system takes for a client with a small window.
const ANSWER: usize = 16 << 20;

/// What may be held beside an answer: what was allocated beyond its length, and what is written before it.
const MOST_BESIDE: usize = 256 << 10;

const HANDSHAKE: &[u8] =
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Reads a figure of the metrics.
fn figure(service: &Service, name: &str) -> usize {
    let text = service.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

fn unread(service: &Service) -> usize {
    figure(service, "mcp_server_unread_bytes")
}

fn bulk() -> String {
    raw_http::call(1, "bulk", &json!({ "bytes": ANSWER }))
}

/// Requests a large response in one content type, and does not read it.
async fn over_http(service: &Service, accept: &str) -> Vec<Connection> {
    let mut connection = Connection::open_deaf(service.address).await;
    let headers = [
        ("MCP-Protocol-Version", raw_http::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "bulk"),
        ("Accept", accept),
    ];
    connection.send(&raw_http::post(&headers, bulk().as_bytes())).await;
    vec![connection]
}

async fn over_websocket(service: &Service) -> Vec<Connection> {
    let mut connection = Connection::open_deaf(service.address).await;
    let message = bulk();
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    // A text that is masked with nothing.
    let frame = [&[0x81, 0x80 | 126][..], &length, &[0; 4], message.as_bytes()].concat();
    connection.send(&[HANDSHAKE, &frame].concat()).await;
    vec![connection]
}

async fn over_http_and_sse(service: &Service) -> Vec<Connection> {
    let mut stream = Connection::open_deaf(service.address).await;
    stream.send(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").await;
    stream.stream_head().await;
    let first = stream.read_until("\n\n").await;
    let messages = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let mut posts = service.connect().await;
    let request = raw_http::post(&[], bulk().as_bytes());
    let (_, rest) = request.split_at("POST /mcp".len());
    posts.send(&[format!("POST {messages}").as_bytes(), rest].concat()).await;
    assert_eq!(posts.reply().await.status, 202);
    vec![stream, posts]
}

#[tokio::test]
async fn unread_response_counts_fully_until_its_client_disconnects() {
    for way in ["application/json", "text/event-stream", "websocket", "http+sse"] {
        let service = Service::start().await;
        let connections = match way {
            "websocket" => over_websocket(&service).await,
            "http+sse" => over_http_and_sse(&service).await,
            accept => over_http(&service, accept).await,
        };
        eventually(&format!("{way}: all of the answer counts"), || unread(&service) >= ANSWER).await;
        let held = unread(&service);
        assert!(held <= ANSWER + MOST_BESIDE, "{way}: {held} bytes count");
        service.still_serves().await;
        drop(connections);
        eventually(&format!("{way}: nothing is left"), || unread(&service) == 0).await;
    }
}

#[tokio::test]
async fn slow_readers_over_the_write_budget_are_evicted_and_counted() {
    let limits = ServerLimits { unread_bytes: 2 * (ANSWER + MOST_BESIDE), ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut readers = Vec::new();
    for count in 1..=2 {
        readers.extend(over_http(&service, "application/json").await);
        eventually("it counts", || unread(&service) >= count * ANSWER).await;
    }
    let (stalled, budget) = (
        r#"mcp_server_slow_readers_total{reason="stalled"}"#,
        r#"mcp_server_slow_readers_total{reason="budget"}"#,
    );
    // Other tests of this process may be counting, too.
    let before = (figure(&service, stalled), figure(&service, budget));
    readers.extend(over_http(&service, "application/json").await);
    eventually("one is cut", || figure(&service, budget) > before.1).await;
    assert!(figure(&service, stalled) >= before.0);
    eventually("two are left", || (2 * ANSWER..3 * ANSWER).contains(&unread(&service))).await;
    service.still_serves().await;
}
