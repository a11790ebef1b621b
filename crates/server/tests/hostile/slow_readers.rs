//! Clients that ask and never read the answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use trunkline_server::session::Principal;
use trunkline_server::transport::LineChannel;
use trunkline_server::{Host, HostOptions, ServeError, ServerLimits};

use crate::child::{Process, TIGHT};
use crate::raw_http::{self, Connection};
use crate::service::{DEADLINE, Service, Setup, server};

const MIB: usize = 1 << 20;

/// What a client that never reads may cost the server: two buffers of 64 KiB, and its pending changes.
const MOST_PER_READER: usize = 256 * 1024;

/// Returns how many sockets may be open at once, with some left for everything else.
fn sockets() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let most: usize = line.split_whitespace().nth(3).and_then(|number| number.parse().ok()).unwrap_or(1024);
    most.saturating_sub(200)
}

#[tokio::test]
async fn thousand_clients_that_never_read_use_bounded_memory() {
    let readers = sockets().min(1000);
    let (process, address) = Process::http();
    let mut healthy = Connection::open(address).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "healthy"));
    let publish = raw_http::modern("tools/call", "publish", &raw_http::call(2, "publish", &json!({})));
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);
    healthy.send(&raw_http::post(&[], raw_http::initialize(raw_http::LEGACY).as_bytes())).await;
    let session = healthy.reply().await.header("mcp-session-id").expect("a session").to_owned();

    let before = process.resident_bytes();
    let flood = json!({ "count": 1_000_000, "bytes": 8000 });
    let requests = [
        raw_http::modern("subscriptions/listen", "-", &raw_http::listen(3)),
        raw_http::modern("tools/call", "flood", &raw_http::call(4, "flood", &flood)),
        raw_http::legacy(&session, &raw_http::legacy_call(5, "flood", &flood)),
        raw_http::modern("subscriptions/listen", "-", &raw_http::listen(6)),
    ];
    let mut held = Vec::new();
    for n in 0..readers {
        let mut connection = Connection::open_deaf(address).await;
        let mut request = requests[n % requests.len()].clone();
        if n % requests.len() == 2 {
            // Ids that run may not be used again within a session.
            request = raw_http::legacy(&session, &raw_http::legacy_call(100 + n as u64, "flood", &flood));
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
    let grown = process.resident_bytes().saturating_sub(before);
    let most = readers * MOST_PER_READER + 16 * MIB;
    println!("{readers} readers cost {} KiB, {} each", grown / 1024, grown / readers);
    assert!(grown < most, "{readers} readers cost {} KiB", grown / 1024);
    drop(held);
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);
}

#[tokio::test]
async fn client_that_reads_nothing_is_disconnected_and_its_call_cancelled() {
    let limits = ServerLimits { write_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let flood = raw_http::call(1, "flood", &json!({ "count": 1_000_000, "bytes": 8000 }));
    let mut stuck = Vec::new();
    for _ in 0..5 {
        let mut connection = service.connect().await;
        connection.send(&raw_http::modern("tools/call", "flood", &flood)).await;
        stuck.push(connection);
    }
    for connection in &stuck {
        connection.stream.readable().await.unwrap();
    }
    service.still_serves().await;
    service.idle().await;
}

fn bulk(id: u64, bytes: usize) -> String {
    raw_http::call(id, "bulk", &json!({ "bytes": bytes }))
}

#[tokio::test]
async fn unread_responses_share_one_write_budget_and_readers_are_still_served() {
    const READERS: usize = 48;
    let (process, address) = Process::tight();
    let mut healthy = Connection::open(address).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "healthy"));
    let large = raw_http::modern("tools/call", "bulk", &bulk(2, 2 * MIB));
    healthy.send(&echo).await;
    assert_eq!(healthy.reply().await.status, 200);

    let before = process.resident_bytes();
    let mut deaf = Vec::new();
    for _ in 0..READERS {
        let mut connection = Connection::open_deaf(address).await;
        connection.send(&large).await;
        // What can be read of the answer is not, but now the rest waits.
        connection.stream.readable().await.unwrap();
        deaf.push(connection);
        healthy.send(&echo).await;
        assert_eq!(healthy.reply().await.json()["result"]["content"][0]["text"], "healthy");
    }
    healthy.send(&large).await;
    assert!(healthy.reply().await.body.len() > 2 * MIB, "those who read get large answers too");
    let grown = process.peak_bytes().saturating_sub(before);
    println!("{READERS} readers of 2 MiB each cost {} KiB", grown / 1024);
    // Besides the unread data there are responses in progress, on two threads: text, and its message in a buffer that
    // doubles.
    assert!(grown < TIGHT + 24 * MIB, "{READERS} readers of 2 MiB each cost {} KiB", grown / 1024);

    let mut whole = 0;
    for mut connection in deaf {
        whole += usize::from(connection.reply_or_end().await.is_some_and(|reply| reply.body.len() > 2 * MIB));
    }
    assert!((1..=TIGHT / (2 * MIB)).contains(&whole), "{whole} of {READERS} were kept");
}

#[tokio::test]
async fn channel_idle_longest_is_evicted_from_the_shared_write_budget() {
    // Three answers with what is around them.
    let limits = ServerLimits { unread_bytes: 3 * MIB + MIB / 2, ..ServerLimits::default() };
    let options = HostOptions { limits, ..HostOptions::default() };
    let host = Host::new(server(&Arc::new(Semaphore::new(0))).handle().unwrap(), options).unwrap();
    let mut channels = Vec::new();
    for _ in 0..4 {
        let (mut ours, theirs) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(theirs);
        let served = {
            let host = host.clone();
            tokio::spawn(async move {
                host.serve_channel(LineChannel::new(reader, writer, MIB), Principal::Process).await
            })
        };
        ours.write_all(format!("{}\n", bulk(1, MIB)).as_bytes()).await.unwrap();
        // The first word of an answer, of which the rest waits.
        ours.read_exact(&mut [0]).await.unwrap();
        channels.push((ours, served));
    }
    // Three are within the budget, so that the fourth is one too many.
    let (_silent, cut) = channels.remove(0);
    let ended = tokio::time::timeout(DEADLINE, cut).await.expect("it is cut").unwrap();
    let quota = io::ErrorKind::QuotaExceeded;
    assert!(matches!(&ended, Err(ServeError::Transport(why)) if why.kind() == quota), "{ended:?}");
    assert!(channels.iter().all(|(_, served)| !served.is_finished()), "the others stay");
}
