//! Pipes: lines without end, ends without warning, and readers that stop.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::child::Process;
use crate::raw_http;
use crate::service::DEADLINE;

const LIMIT: usize = 4 << 20;

#[test]
fn gibibyte_stdio_line_uses_at_most_twice_the_limit() {
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    input.write_all(br#"{"jsonrpc":"2.0","id":"first","method":"ping"}"#).unwrap();
    input.write_all(b"\n").unwrap();
    process.line_with(r#""id":"first""#);
    let before = process.peak_bytes();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        input.write_all(&piece).unwrap();
    }
    input.write_all(b"\n{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"ping\"}\n").unwrap();
    let refused = process.line_with("jsonrpc");
    assert!(refused.contains("-32600") && !refused.contains(r#""id""#), "{refused}");
    process.line_with(r#""id":"after""#);
    let grown = process.peak_bytes() - before;
    assert!(grown <= 2 * LIMIT, "it grew by {} KiB", grown / 1024);
}

#[test]
fn large_stdio_messages_retain_no_memory() {
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    let large = raw_http::echo(1, &"y".repeat(LIMIT - 1000));
    for _ in 0..3 {
        input.write_all(large.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        process.line_with(r#""id":1,"result""#);
    }
    let kept = process.resident_bytes();
    for n in 0..50 {
        input.write_all(format!("{}\n", raw_http::echo(n, "small")).as_bytes()).unwrap();
        process.line_with("result");
    }
    let after = process.resident_bytes();
    assert!(after <= kept + (1 << 20), "small messages made it grow from {kept} to {after}");
}

#[test]
fn stdio_server_answers_read_requests_at_eof_and_exits() {
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    for id in 100..150 {
        input.write_all(format!("{}\n", raw_http::echo(id, "last")).as_bytes()).unwrap();
    }
    // The last line has no end, and is a message all the same.
    input.write_all(raw_http::echo(150, "last").as_bytes()).unwrap();
    drop(input);
    let mut output = String::new();
    process.output.take().unwrap().read_to_string(&mut output).unwrap();
    for id in 100..=150 {
        assert!(output.contains(&format!(r#""id":{id},"result""#)), "{id} is not answered");
    }
    assert!(process.ended(), "nothing was lost");
}

#[test]
fn stdio_server_refuses_an_overdue_call_at_eof_and_reports_it() {
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    input.write_all(format!("{}\n", raw_http::call(1, "wait", &serde_json::json!({}))).as_bytes()).unwrap();
    drop(input);
    let refused = process.line_with(r#""id":1"#);
    assert!(refused.contains("-32603") && refused.contains("before this call was over"), "{refused}");
    assert!(!process.ended(), "a call was not answered");
}

#[test]
fn stdio_server_exits_when_its_output_is_closed() {
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n").unwrap();
    process.line_with(r#""id":"a""#);
    drop(process.output.take());
    // It may have gone before this is written.
    let _ = input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}\n");
    process.ended();
}

#[test]
fn stdio_backpressure_stops_reading_and_loses_no_message() {
    const REQUESTS: u64 = 20_000;
    let mut process = Process::stdio();
    let mut input = process.input.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n").unwrap();
    process.line_with(r#""id":"a""#);
    let before = process.resident_bytes();
    let written = Arc::new(AtomicUsize::new(0));
    let writer = {
        let written = written.clone();
        std::thread::spawn(move || {
            for id in 0..REQUESTS {
                input.write_all(format!("{}\n", raw_http::echo(id, &"z".repeat(500))).as_bytes()).unwrap();
                written.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let stalled = stalls(&written);
    assert!(stalled < REQUESTS as usize, "it read all of {stalled} requests without being read");
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 4 << 20, "it grew by {} KiB", grown / 1024);
    for id in 0..REQUESTS {
        process.line_with(&format!(r#""id":{id},"result""#));
    }
    writer.join().unwrap();
}

/// Waits until a count has stopped to grow, and returns it.
fn stalls(count: &AtomicUsize) -> usize {
    let started = Instant::now();
    let mut last = (count.load(Ordering::SeqCst), Instant::now());
    while last.1.elapsed() < Duration::from_millis(500) || last.0 == 0 {
        assert!(started.elapsed() < DEADLINE, "it never stalls");
        std::thread::sleep(Duration::from_millis(10));
        let now = count.load(Ordering::SeqCst);
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    last.0
}
