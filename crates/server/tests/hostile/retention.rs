//! Small things that outlive a large message must not keep it, and what a peer may leave behind has a bound in bytes.

use serde_json::json;

use crate::child::Process;
use crate::raw_http::{self, Connection};
use crate::service::DEADLINE;

const MIB: usize = 1 << 20;

async fn opened(address: std::net::SocketAddr, request: &[u8]) -> Connection {
    let mut connection = Connection::open(address).await;
    connection.send(request).await;
    assert!(connection.stream_head().await.contains("200 OK"));
    connection.read_until("acknowledged").await;
    connection
}

fn padded_listen(id: usize, wanted: &serde_json::Value, padding: usize) -> Vec<u8> {
    let params =
        json!({ "notifications": wanted, "padding": "p".repeat(padding), "_meta": raw_http::meta() });
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params });
    raw_http::modern("subscriptions/listen", "-", &request.to_string())
}

#[tokio::test]
async fn subscription_does_not_retain_its_request_buffer() {
    let (process, address) = Process::http();
    let mut held = vec![opened(address, &padded_listen(0, &json!({ "toolsListChanged": true }), MIB)).await];
    let before = process.resident_bytes();
    for id in 1..=24 {
        held.push(opened(address, &padded_listen(id, &json!({ "toolsListChanged": true }), MIB)).await);
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 8 * MIB, "24 streams opened by 24 MiB keep {} KiB", grown / 1024);
}

#[tokio::test]
async fn idle_connection_retains_no_message_buffers() {
    let (process, address) = Process::http();
    let call = raw_http::modern("tools/call", "bulk", &raw_http::call(1, "bulk", &json!({ "bytes": MIB })));
    let ask = async || {
        let mut connection = Connection::open(address).await;
        connection.send(&call).await;
        assert!(connection.reply().await.body.len() > MIB);
        connection
    };
    let mut held = vec![ask().await];
    let before = process.resident_bytes();
    for _ in 0..24 {
        held.push(ask().await);
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 8 * MIB, "24 connections that rest after 24 MiB keep {} KiB", grown / 1024);
}

#[tokio::test]
async fn resource_subscriptions_are_bounded_in_bytes_in_both_eras() {
    let (process, address) = Process::http();
    let send = async |request: Vec<u8>| {
        let mut connection = Connection::open(address).await;
        connection.send(&request).await;
        connection.reply().await
    };
    let uris: Vec<String> = (0..1000).map(|n| format!("test://{n}/{}", "u".repeat(3000))).collect();
    let reply = send(padded_listen(1, &json!({ "resourceSubscriptions": uris }), 0)).await;
    assert_eq!(reply.json()["error"]["code"], -32602);

    let opened = send(raw_http::post(&[], raw_http::initialize(raw_http::LEGACY).as_bytes())).await;
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let subscribe = |n: usize, length: usize| {
        let params = json!({ "uri": format!("test://{n}/{}", "u".repeat(length)) });
        raw_http::legacy(
            &session,
            &json!({ "jsonrpc": "2.0", "id": n, "method": "resources/subscribe", "params": params })
                .to_string(),
        )
    };
    assert!(send(subscribe(0, 100)).await.json()["result"].is_object(), "an ordinary one");
    let before = process.resident_bytes();
    for n in 1..=24 {
        assert_eq!(send(subscribe(n, MIB)).await.json()["error"]["code"], -32602, "{n}");
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 8 * MIB, "24 MiB of addresses keep {} KiB", grown / 1024);
    assert!(
        send(subscribe(99, 100)).await.json()["result"].is_object(),
        "there is still room for an ordinary one"
    );
}

#[tokio::test]
async fn batch_of_millions_allocates_no_more_than_its_text() {
    let (process, address) = Process::http();
    let body = format!("[{}1]", "1,".repeat(MIB - 2));
    let mut connection = Connection::open(address).await;
    connection.send(&raw_http::post(&[], b"[1]")).await;
    assert_eq!(connection.reply().await.status, 400);
    let before = process.peak_bytes();
    connection.send(&raw_http::post(&[], body.as_bytes())).await;
    assert_eq!(tokio::time::timeout(DEADLINE, connection.reply()).await.expect("in time").status, 400);
    let grown = process.peak_bytes() - before;
    assert!(grown < 3 * body.len(), "{} KiB for {} KiB", grown / 1024, body.len() / 1024);
}

#[tokio::test]
async fn long_progress_token_is_not_repeated_in_every_notification() {
    let (_process, address) = Process::http();
    let mut params = json!({ "name": "flood", "arguments": { "count": 100 }, "_meta": raw_http::meta() });
    params["_meta"]["progressToken"] = json!("t".repeat(MIB));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut connection = Connection::open(address).await;
    connection.send(&raw_http::modern("tools/call", "flood", &request.to_string())).await;
    let reply = connection.reply().await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "flooded");
    assert!(reply.body.len() < 64 * 1024, "{} bytes came back", reply.body.len());
}
