//! Large requests, many of which at once would exceed the memory budget: incomplete, running and suspended ones.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use trunkline_server::session::Principal;
use trunkline_server::transport::LineChannel;
use trunkline_server::{Confirm, Context, Host, HostOptions, ServeError, ServerLimits, Tool, ask};

use crate::child::{Process, TIGHT};
use crate::raw_http::{self, Connection};
use crate::service::{DEADLINE, Service, Setup, eventually, server};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A budget for one request of 600 KiB, which reserves the power of two above it while it is read.
fn limits() -> ServerLimits {
    ServerLimits { request_memory_bytes: MIB, ..ServerLimits::default() }
}

async fn service() -> Service {
    Service::start_with(Setup { limits: limits(), ..Setup::default() }).await
}

/// A modern call of a tool with so many bytes of padding.
fn padded(id: u64, tool: &str, bytes: usize) -> String {
    let mut call: Value = serde_json::from_str(&raw_http::call(id, tool, &json!({}))).unwrap();
    call["params"]["_meta"]["padding"] = json!("p".repeat(bytes));
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    call.to_string()
}

fn request(id: u64, tool: &str, bytes: usize) -> Vec<u8> {
    raw_http::modern("tools/call", tool, &padded(id, tool, bytes))
}

#[tokio::test]
async fn incomplete_large_requests_stay_within_the_memory_budget() {
    let (process, address) = Process::tight();
    let mut healthy = Connection::open(address).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "healthy"));
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);
    let before = process.resident_bytes();
    let whole = request(2, "wait", 3 * MIB);
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut connection = Connection::open(address).await;
        connection.send(&whole[..whole.len() - 1]).await;
        held.push(connection);
        healthy.send(&echo).await;
        assert_eq!(healthy.reply().await.json()["result"]["content"][0]["text"], "healthy");
    }
    let grown = process.peak_bytes().saturating_sub(before);
    println!("32 requests of 3 MiB each cost {} KiB", grown / 1024);
    // Beside what is reserved there are buffers of the connections, which are small.
    assert!(grown < TIGHT + 24 * MIB, "32 requests of 3 MiB each cost {} KiB", grown / 1024);
    drop(held);
    eventually_asks(address, &request(3, "bulk", 3 * MIB), 200).await;
}

/// Repeats a request until the response has a status, that of a limit which is reached or left sooner or later.
async fn eventually_asks(address: std::net::SocketAddr, request: &[u8], status: u16) -> raw_http::RawReply {
    let asked = async {
        loop {
            let mut connection = Connection::open(address).await;
            connection.send(request).await;
            match connection.reply_or_end().await {
                Some(reply) if reply.status == status => return reply,
                _ => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, asked).await.unwrap_or_else(|_| panic!("never answered with {status}"))
}

#[tokio::test]
async fn request_over_the_memory_budget_is_refused_by_received_bytes() {
    let service = service().await;
    let large = request(1, "echo", 600 * KIB);
    let mut announced = Vec::new();
    for _ in 0..8 {
        let mut connection = service.connect().await;
        connection.send(&large[..1000]).await;
        announced.push(connection);
    }
    assert_eq!(service.ask(&request(2, "bulk", 200 * KIB)).await.status, 200);
    let mut half = service.connect().await;
    half.send(&large[..550 * KIB]).await;
    let refused = eventually_asks(service.address, &request(3, "echo", 65 * KIB), 429).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    service.still_serves().await;
    half.send(&large[550 * KIB..]).await;
    assert_eq!(half.reply().await.status, 200, "it had its room");
    assert_eq!(service.ask(&request(4, "bulk", 65 * KIB)).await.status, 200);
}

#[tokio::test]
async fn large_call_holds_its_memory_permit_while_it_runs_in_both_eras() {
    let service = service().await;
    let session = service.session(raw_http::LEGACY).await;
    let legacy = {
        let params =
            json!({ "name": "wait", "arguments": {}, "_meta": { "padding": "p".repeat(600 * KIB) } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        raw_http::legacy(&session, &call.to_string())
    };
    for large in [request(1, "wait", 600 * KIB), legacy] {
        let mut running = service.connect().await;
        running.send(&large).await;
        eventually("the call runs", || service.host.load().0 == 1).await;
        assert_eq!(service.ask(&request(2, "bulk", 600 * KIB)).await.status, 429);
        service.still_serves().await;
        service.gate.add_permits(1);
        assert_eq!(running.reply().await.status, 200);
        service.idle().await;
        assert_eq!(service.ask(&request(3, "bulk", 600 * KIB)).await.status, 200);
    }
}

#[tokio::test]
async fn large_suspended_call_is_evicted_for_new_requests() {
    let service = service().await;
    let asks = Tool::new("asks").run(|context: Context| async move {
        context.ask(ask::<Confirm>("Go on?")).await.map(|_| "went on")
    });
    service.parts.add(asks).unwrap();
    let asked = service.ask(&request(1, "asks", 600 * KIB)).await;
    assert_eq!(asked.json()["result"]["resultType"], "input_required");
    assert_eq!(service.host.load(), (0, 1));
    assert_eq!(service.ask(&request(2, "bulk", 600 * KIB)).await.status, 429);
    eventually("the call that waited has ended", || service.host.load().1 == 0).await;
    eventually_asks(service.address, &request(3, "bulk", 600 * KIB), 200).await;
}

fn channel(
    limits: ServerLimits,
    principal: Principal,
) -> (Host, DuplexStream, JoinHandle<Result<(), ServeError>>) {
    let options = HostOptions { limits, ..HostOptions::default() };
    let host = Host::new(server(&Arc::new(Semaphore::new(0))).handle().unwrap(), options).unwrap();
    let (ours, theirs) = tokio::io::duplex(64 * KIB);
    let (reader, writer) = tokio::io::split(theirs);
    let served = {
        let host = host.clone();
        tokio::spawn(
            async move { host.serve_channel(LineChannel::new(reader, writer, 4 * MIB), principal).await },
        )
    };
    (host, ours, served)
}

#[tokio::test]
async fn channel_refuses_a_large_call_over_budget_and_stays_open() {
    let (host, peer, _served) = channel(limits(), Principal::Process);
    let (reader, mut writer) = tokio::io::split(peer);
    let mut lines = BufReader::new(reader).lines();
    for call in [padded(1, "wait", 600 * KIB), padded(2, "wait", 600 * KIB), raw_http::echo(3, "small")] {
        writer.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    let mut answers = [Value::Null, Value::Null];
    for answer in &mut answers {
        let line = tokio::time::timeout(DEADLINE, lines.next_line()).await.expect("an answer").unwrap();
        *answer = serde_json::from_str(&line.unwrap()).unwrap();
    }
    let [refused, echoed] = answers;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)));
    assert_eq!(echoed["result"]["content"][0]["text"], "small");
    assert_eq!(host.load().0, 1);
}

#[tokio::test(start_paused = true)]
async fn channel_closes_on_a_partial_message_over_budget_or_past_its_deadline() {
    for (sent, room, expected) in
        [(300 * KIB, 256 * KIB, io::ErrorKind::QuotaExceeded), (100 * KIB, MIB, io::ErrorKind::TimedOut)]
    {
        // Unlike the peer of our own pipes, a named principal may have many connections.
        let ann = Principal::Named("ann".into());
        let (_host, mut peer, served) = channel(ServerLimits { request_memory_bytes: room, ..limits() }, ann);
        // A line without an end; bytes beyond the budget may not be read any more.
        let line = padded(1, "wait", sent);
        let _ = peer.write_all(line.as_bytes()).await;
        let ended = served.await.unwrap();
        assert!(matches!(&ended, Err(ServeError::Transport(why)) if why.kind() == expected), "{ended:?}");
        let mut told = String::new();
        peer.read_to_string(&mut told).await.unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["id"], Value::Null);
        assert!(told["error"]["message"].is_string());
    }
}
