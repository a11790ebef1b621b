//! A hub with a session store in a file that is killed at random points under load: every session that was acknowledged
//! answers after the restart, and none that was deleted does.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use crate::bare_client::{HttpReply, post, request};
use crate::messages::{initialize, legacy};
use crate::process::DEADLINE;
use crate::session_store::{StoreFolder, kill};

/// How often the hub is killed; `cargo xtask crashes` sets another number.
const POINTS_VARIABLE: &str = "CRASH_POINTS";
const POINTS: u64 = 4;

/// How many clients write at the same time, so that commits are shared.
const CLIENTS: usize = 4;

/// What the clients know: ids enter a set when the response has arrived whole, except for `deleting`.
#[derive(Debug, Default)]
struct KnownSessions {
    opened: BTreeSet<String>,
    deleting: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct LoadState {
    known: Mutex<KnownSessions>,
    /// How many responses have arrived.
    steps: AtomicU64,
}

/// Sends a request and reads its response; `None` if the hub was killed meanwhile.
fn exchange(address: SocketAddr, start: &str, headers: &[(&str, &str)], body: &str) -> Option<HttpReply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    stream.write_all(request(address, start, headers, body).as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    if length.is_some_and(|length: usize| body.len() < length) {
        return None;
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(HttpReply { status, head: head.to_owned(), body: body.to_owned() })
}

/// Opens sessions, uses them and deletes every other one, until the hub is killed.
fn write_until_killed(address: SocketAddr, load: &LoadState) -> Option<()> {
    for round in 0_u64.. {
        let opened = exchange(address, "POST /mcp", &[], &initialize().to_string())?;
        assert_eq!(opened.status, 200, "{opened:?}");
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        load.known.lock().opened.insert(id.clone());
        load.steps.fetch_add(1, Ordering::Relaxed);
        let headers = [("Mcp-Session-Id", &*id), ("MCP-Protocol-Version", "2025-11-25")];
        let ping = legacy(2, "ping", json!({})).to_string();
        assert_eq!(exchange(address, "POST /mcp", &headers, &ping)?.status, 200);
        load.steps.fetch_add(1, Ordering::Relaxed);
        if round % 2 == 0 {
            load.known.lock().deleting.insert(id.clone());
            assert_eq!(exchange(address, "DELETE /mcp", &headers, "")?.status, 204);
            load.known.lock().deleted.insert(id);
            load.steps.fetch_add(1, Ordering::Relaxed);
        }
    }
    None
}

/// Pseudo-random numbers, the same in every run (an xorshift generator).
struct RandomPoints(u64);

impl RandomPoints {
    fn next(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn ping_status(address: SocketAddr, id: &str) -> u16 {
    let headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", "2025-11-25")];
    post(address, &legacy(3, "ping", json!({})), &headers).status
}

/// Asks for every session of the last life, and deletes those that go on.
fn check(address: SocketAddr, known: &KnownSessions) -> BTreeSet<String> {
    for id in known.opened.difference(&known.deleting) {
        assert_eq!(ping_status(address, id), 200, "session {id} was acknowledged and is gone");
        let headers = [("Mcp-Session-Id", &**id), ("MCP-Protocol-Version", "2025-11-25")];
        assert_eq!(exchange(address, "DELETE /mcp", &headers, "").unwrap().status, 204);
    }
    for id in &known.deleted {
        assert_eq!(ping_status(address, id), 404, "session {id} was deleted and is back");
    }
    known.opened.difference(&known.deleting).cloned().collect()
}

#[test]
fn acknowledged_sessions_answer_after_kills_under_load() {
    let points = std::env::var(POINTS_VARIABLE).ok().and_then(|points| points.parse().ok()).unwrap_or(POINTS);
    let place = StoreFolder::new("crashes");
    let (mut acknowledged, mut deleted) = (0, 0);
    let mut random = RandomPoints(20);
    let (mut running, mut address) = place.serve(&["--no-config"]);
    for _ in 0..points {
        let load = Arc::new(LoadState::default());
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let load = load.clone();
                std::thread::spawn(move || write_until_killed(address, &load))
            })
            .collect();
        // Another moment of a commit each time, after another number of steps.
        let steps = random.next(80);
        while load.steps.load(Ordering::Relaxed) < steps {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(random.next(5_000)));
        kill(running);
        for client in clients {
            client.join().unwrap();
        }
        (running, address) = place.serve(&["--no-config"]);
        let removed = check(address, &load.known.lock());
        acknowledged += removed.len();
        deleted += load.known.lock().deleted.len();
        // What was deleted after the restart stays deleted after the next one.
        kill(running);
        (running, address) = place.serve(&["--no-config"]);
        for id in &removed {
            assert_eq!(ping_status(address, id), 404, "session {id} was deleted and is back");
        }
    }
    println!("{points} kills: {acknowledged} sessions went on, {deleted} stayed deleted");
    assert!(acknowledged > 0 && deleted > 0, "nothing was checked");
    drop(running);
}
