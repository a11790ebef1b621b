//! Clients that ask and never read the answer.

use std::time::Duration;

use serde_json::json;
use trunkline_server::Limits;

use crate::child::Process;
use crate::service::{Service, Setup};
use crate::wire::{self, Connection};

const MIB: usize = 1 << 20;

/// What a reader that never reads may cost the server: two buffers of 64 KiB, and the changes that it was not told.
const MOST_PER_READER: usize = 256 * 1024;

/// Returns how many sockets may be open at once, with some left for everything else.
fn sockets() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let most: usize = line.split_whitespace().nth(3).and_then(|number| number.parse().ok()).unwrap_or(1024);
    most.saturating_sub(200)
}

#[tokio::test]
async fn a_thousand_clients_that_never_read_cost_a_bounded_amount_and_nobody_else_anything() {
    let readers = sockets().min(1000);
    let (process, address) = Process::http();
    let mut healthy = Connection::open(address).await;
    let echo = wire::modern("tools/call", "echo", &wire::echo(1, "healthy"));
    let publish = wire::modern("tools/call", "publish", &wire::call(2, "publish", &json!({})));
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);
    healthy.send(&wire::post(&[], wire::initialize(wire::LEGACY).as_bytes())).await;
    let session = healthy.reply().await.header("mcp-session-id").expect("a session").to_owned();

    let before = process.memory("VmRSS");
    let flood = json!({ "count": 1_000_000, "bytes": 8000 });
    let requests = [
        wire::modern("subscriptions/listen", "-", &wire::listen(3)),
        wire::modern("tools/call", "flood", &wire::call(4, "flood", &flood)),
        wire::legacy(&session, &wire::legacy_call(5, "flood", &flood)),
        wire::modern("subscriptions/listen", "-", &wire::listen(6)),
    ];
    let mut held = Vec::new();
    for n in 0..readers {
        let mut connection = Connection::open_deaf(address).await;
        let mut request = requests[n % requests.len()].clone();
        if n % requests.len() == 2 {
            // Ids that run may not be used again within a session.
            request = wire::legacy(&session, &wire::legacy_call(100 + n as u64, "flood", &flood));
        }
        connection.send(&request).await;
        held.push(connection);
    }
    for _ in 0..40 {
        healthy.send(&publish).await;
        assert_eq!(healthy.reply().await.status, 200);
        healthy.send(&echo).await;
        assert_eq!(healthy.reply().await.json()["result"]["content"][0]["text"], "healthy");
    }
    let grown = process.memory("VmRSS").saturating_sub(before);
    let most = readers * MOST_PER_READER + 16 * MIB;
    println!("{readers} readers cost {} KiB, {} each", grown / 1024, grown / readers);
    assert!(grown < most, "{readers} readers cost {} KiB", grown / 1024);
    drop(held);
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_and_its_call_with_it() {
    let limits = Limits { write_within: Duration::from_millis(200), ..Limits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let flood = wire::call(1, "flood", &json!({ "count": 1_000_000, "bytes": 8000 }));
    let mut stuck = Vec::new();
    for _ in 0..5 {
        let mut connection = service.connect().await;
        connection.send(&wire::modern("tools/call", "flood", &flood)).await;
        stuck.push(connection);
    }
    for connection in &stuck {
        connection.stream.readable().await.unwrap();
    }
    service.still_serves().await;
    service.idle().await;
}
