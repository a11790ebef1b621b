//! What a server gives back to the system once large messages are gone.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, sockopt};
use serde_json::json;
use trunkline_testing::resident_bytes;

use crate::bare_client::{get, mirror_headers, post, request};
use crate::messages::{call, modern};
use crate::process::{DEADLINE, RunningCommand};

const MIB: usize = 1 << 20;

const READERS: usize = 32;

/// Larger than what the kernel takes for a client with a small receive buffer.
const RESPONSE: usize = 3 * MIB;

/// Of so many clients one stays connected.
const STAYING: usize = 8;

/// What may be resident beyond what was before: responses of the clients that stay, and what the arenas keep at their ends.
const MOST_RETAINED: usize = 64 * MIB;

#[test]
fn memory_of_unread_responses_returns_to_the_system_after_their_clients_left() {
    let (running, address) = RunningCommand::serve("memory", &["--builtin", "echo"]);
    let large = |bytes| modern(1, "tools/call", call("echo", json!({ "message": "m".repeat(bytes) })));
    // By default glibc stops to map blocks one by one once it has seen one of their size freed.
    assert_eq!(post(address, &large(RESPONSE + MIB / 2), &[]).status, 200);
    let before = resident_bytes(running.id()).unwrap();

    let large = large(RESPONSE);
    let request = request(address, "POST /mcp", &mirror_headers(&large), &large.to_string());
    let mut clients: Vec<_> = (0..READERS)
        .map(|_| {
            let mut client = connect_without_reading(address);
            client.write_all(request.as_bytes()).unwrap();
            Some(client)
        })
        .collect();
    let held = wait_until(|| unread(address), |held| held >= READERS * RESPONSE);
    assert!(held >= READERS * RESPONSE, "only {} MiB are unread", held / MIB);

    // The blocks of those that stay are between the freed ones, so that no arena becomes free as a whole.
    clients.iter_mut().enumerate().filter(|(n, _)| n % STAYING != 0).for_each(|(_, client)| *client = None);
    let most = before + MOST_RETAINED;
    let after = wait_until(|| resident_bytes(running.id()).unwrap(), |after| after < most);
    assert!(after < most, "{} MiB more than before stay resident", (after - before) / MIB);
}

/// Connects with so small a receive buffer that the response stays in the server.
fn connect_without_reading(address: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 4096).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket.into()
}

/// Looks at a figure until it is as wanted or the time is over, and returns the last one.
fn wait_until(figure: impl Fn() -> usize, wanted: impl Fn(usize) -> bool) -> usize {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let figure = figure();
        if wanted(figure) || Instant::now() > deadline {
            return figure;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns how many bytes of responses the server holds for clients that do not read.
fn unread(address: SocketAddr) -> usize {
    let metrics = get(address, "/metrics", &[]);
    let line = metrics.body.lines().find_map(|line| line.strip_prefix("mcp_server_unread_bytes "));
    line.unwrap().parse().unwrap()
}
