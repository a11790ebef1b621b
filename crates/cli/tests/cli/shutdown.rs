//! How a server shuts down: streams get a message, running calls may finish, and a second signal stops at once.

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::json;

use crate::bare_client::{RawConnection, get, mirror_headers, post, request};
use crate::messages::{call, initialize, modern};
use crate::process::RunningCommand;

/// Sends a request with an incomplete body, and returns when the server has begun to read it.
fn half_a_request(address: SocketAddr) -> RawConnection {
    let mut connection = RawConnection::open(address);
    let headers = [("Content-Length", "100"), ("Expect", "100-continue")];
    connection.write(&request(address, "POST /mcp", &headers, ""));
    connection.read_until("100 Continue");
    connection
}

#[test]
fn standalone_stream_is_closed_with_its_result_on_the_first_signal() {
    let (running, address) = RunningCommand::serve("listen", &[]);
    let listen = modern(7, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let mut stream = RawConnection::open(address);
    stream.write(&request(address, "POST /mcp", &mirror_headers(&listen), &listen.to_string()));
    stream.read_until("notifications/subscriptions/acknowledged");
    running.signal(Signal::TERM);
    let all = stream.read_to_end();
    let last = all.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let result: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!((&result["id"], result.get("result").is_some()), (&json!(7), true), "{result}");
    assert!(all.ends_with("0\r\n\r\n"), "the body ends as HTTP says: {all}");
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn shutdown_waits_for_neither_legacy_streams_nor_idle_connections() {
    let (running, address) = RunningCommand::serve("legacy_stream", &[]);
    let opened = post(address, &initialize(), &[]);
    let mut stream = RawConnection::open(address);
    let headers = [
        ("Mcp-Session-Id", opened.header("mcp-session-id").unwrap()),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Accept", "text/event-stream"),
    ];
    stream.write(&request(address, "GET /mcp", &headers, ""));
    stream.read_until("text/event-stream");
    let mut silent = RawConnection::open(address);
    let mut kept = RawConnection::open(address);
    kept.write(&request(address, "GET /healthz", &[("Connection", "keep-alive")], ""));
    kept.read_until("ok");
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    stream.read_to_end();
    assert_eq!(silent.read_to_end(), "");
    kept.read_to_end();
}

#[test]
fn second_signal_during_drain_exits_immediately() {
    for (second, code) in [(Signal::INT, 130), (Signal::TERM, 0)] {
        let (mut running, address) = RunningCommand::serve("second_signal", &["--grace", "1h"]);
        let _half = half_a_request(address);
        running.signal(Signal::TERM);
        running.wait_for("shutting down");
        running.signal(second);
        let finished = running.wait();
        assert_eq!(finished.code, Some(code), "{second:?}: {finished:?}");
        assert_eq!(
            finished.stderr.contains("error: exited immediately on a second signal"),
            code == 130,
            "{finished:?}"
        );
    }
}

#[test]
fn shutdown_never_waits_longer_than_the_grace() {
    let (running, address) = RunningCommand::serve("grace", &["--grace", "50ms"]);
    let mut half = half_a_request(address);
    running.signal(Signal::TERM);
    let finished = running.wait();
    // No call had begun, so nothing that was promised is lost.
    assert_eq!(finished.code, Some(0), "{finished:?}");
    half.read_to_end();
}

#[test]
fn drain_delay_reports_unready_while_still_serving() {
    let (mut running, address) = RunningCommand::serve("drain_delay", &["--drain-delay", "1h"]);
    running.signal(Signal::TERM);
    running.wait_for("shutting down");
    let ready = get(address, "/readyz", &[]);
    assert_eq!((ready.status, ready.json()), (503, json!({ "ready": false, "reason": "shutting down" })));
    assert_eq!(get(address, "/healthz", &[]).status, 200);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "still here" })));
    assert_eq!(post(address, &message, &[]).status, 200);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
}
