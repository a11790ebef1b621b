//! Calls that send more than their clients read, with handlers that never really wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use trunkline_server::session::Principal;
use trunkline_server::transport::LineChannel;
use trunkline_server::{Context, Host, HostOptions, Server, Tool};

use crate::raw_http;
use crate::service::{DEADLINE, Service, eventually};

/// A tool that reports progress for ever, and the count of its reports.
fn endless() -> (Tool, Arc<AtomicUsize>) {
    let said = Arc::new(AtomicUsize::new(0));
    let counted = said.clone();
    let tool = Tool::new("endless").run(move |context: Context| {
        let said = counted.clone();
        async move {
            loop {
                let n = said.fetch_add(1, Ordering::SeqCst);
                context.progress_with(n as f64, None, "still at it");
                tokio::task::yield_now().await;
            }
            #[allow(unreachable_code, reason = "a tool has to return something")]
            ""
        }
    });
    (tool, said)
}

fn serve(tool: Tool) -> (Host, tokio::io::DuplexStream) {
    let host = Server::new("target").with(tool).host(HostOptions::default()).unwrap();
    let (ours, theirs) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(theirs);
    let serving = host.clone();
    tokio::spawn(async move {
        serving.serve_channel(LineChannel::new(reader, writer, 1 << 20), Principal::Process).await
    });
    (host, ours)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_notification_flood_stops_at_the_queue_limit() {
    let (tool, said) = endless();
    let (host, mut peer) = serve(tool);
    for request in [
        raw_http::call(1, "endless", &json!({})),
        raw_http::initialize(raw_http::LEGACY),
        raw_http::legacy_call(2, "endless", &json!({})),
    ] {
        peer.write_all(request.as_bytes()).await.unwrap();
        peer.write_all(b"\n").await.unwrap();
    }
    eventually("the call runs", || said.load(Ordering::SeqCst) > 0).await;
    let mut before = 0;
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    let settled = async {
        while said.load(Ordering::SeqCst) != before {
            before = said.load(Ordering::SeqCst);
            pace.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, settled).await.expect("the flood stops");
    // 256 KiB of messages of a hundred bytes each, and what fits into the pipe.
    assert!(said.load(Ordering::SeqCst) < 10_000, "{} messages wait", said.load(Ordering::SeqCst));
    drop(peer);
    eventually("the calls end with their channel", || host.load() == (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notification_flood_lets_other_calls_run_and_can_be_cancelled() {
    let (tool, _said) = endless();
    let (host, peer) = serve(tool);
    let (reader, mut writer) = tokio::io::split(peer);
    let mut lines = BufReader::new(reader).lines();
    let requests =
        [raw_http::call(1, "endless", &json!({})), r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#.to_owned()];
    writer.write_all(format!("{}\n", requests.join("\n")).as_bytes()).await.unwrap();
    let answered = async {
        while !lines.next_line().await.unwrap().expect("a line").contains(r#""id":2,"result""#) {}
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        writer.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
        while host.load() != (0, 0) {
            let _ = tokio::time::timeout(Duration::from_millis(5), lines.next_line()).await;
        }
    };
    tokio::time::timeout(DEADLINE, answered).await.expect("the ping is answered and the call ends");
}

#[tokio::test]
async fn notification_flood_without_a_stream_does_not_block_other_calls() {
    let service = Service::start().await;
    let (tool, said) = endless();
    service.parts.add(tool).unwrap();
    let headers = [
        ("Accept", "application/json"),
        ("MCP-Protocol-Version", raw_http::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "endless"),
    ];
    let mut connection = service.connect().await;
    connection.send(&raw_http::post(&headers, raw_http::call(1, "endless", &json!({})).as_bytes())).await;
    eventually("the call runs", || said.load(Ordering::SeqCst) > 0).await;
    service.still_serves().await;
    drop(connection);
    service.idle().await;
}

#[tokio::test]
async fn notification_flood_of_a_detached_call_does_not_block_other_calls() {
    let service = Service::start().await;
    let (tool, said) = endless();
    service.parts.add(tool).unwrap();
    let session = service.session(raw_http::LEGACY).await;
    let mut connection = service.connect().await;
    connection.send(&raw_http::legacy(&session, &raw_http::legacy_call(1, "endless", &json!({})))).await;
    eventually("the call runs", || said.load(Ordering::SeqCst) > 0).await;
    drop(connection);
    service.still_serves().await;
    // Leaving is not cancelling in this era; ending the session is.
    assert_eq!(service.host.load().0, 1);
    assert_eq!(service.ask(&raw_http::bare("DELETE", &[("Mcp-Session-Id", &session)])).await.status, 204);
    service.idle().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let service = Service::start().await;
    let requests: Vec<u8> = (0..40)
        .flat_map(|id| raw_http::modern("tools/call", "echo", &raw_http::echo(id, &format!("word {id}"))))
        .collect();
    for piece in [requests.len(), 4096, 333] {
        let mut connection = service.connect().await;
        for part in requests.chunks(piece) {
            connection.send(part).await;
            tokio::task::yield_now().await;
        }
        for id in 0..40 {
            let reply = connection.reply().await;
            let text = format!("word {id}");
            assert_eq!(reply.json()["result"]["content"][0]["text"], text, "in pieces of {piece}");
        }
    }
}
