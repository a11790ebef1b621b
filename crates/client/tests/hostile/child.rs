//! A hostile server in a process of its own: this test program, started once more.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_transport::Command;

use crate::peer::text_result;

/// Names the role of the program; without it, it is a test program.
const ROLE: &str = "TRUNKLINE_HOSTILE_SERVER";

/// The answer to a call, as every role gives it that gives one.
pub(crate) const TEXT: &str = "hello";

/// Makes a command that is a server of a kind.
pub(crate) fn server(role: &str) -> Command {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::serve", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
}

/// Makes a command that is a server of a kind, below a shell that does something first.
pub(crate) fn server_below(script: &str, role: &str) -> Command {
    let itself = server(role);
    let script = format!("{script}\n\"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(itself.program())
        .args(itself.arguments())
        .env(ROLE, role)
}

/// The bytes of the answer to a call.
pub(crate) fn answer(id: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": text_result(TEXT) }))
}

#[test]
#[ignore = "is the server that others start"]
fn serve() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, number) = role.split_once(':').unwrap_or((&role, "0"));
    // The harness has begun a line of its own, which is noise to every client.
    say("\n");
    if role == "dies-at-start" {
        eprintln!("cannot find its configuration");
        exit(78);
    }
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match message["method"].as_str() {
            Some("server/discover") => discover(role, &message["id"]),
            Some("tools/call") => call(role, number.parse().unwrap(), &message["id"]),
            _ => {}
        }
    }
    if matches!(role, "ignores-everything" | "never-ends-a-line") {
        linger();
    }
    exit(0);
}

fn discover(role: &str, id: &Value) {
    if role == "dies-at-the-probe" {
        eprintln!("what is server/discover?");
        exit(1);
    }
    let result = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
    say(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result })));
    if role == "dies-after-the-handshake" {
        eprintln!("one\ntwo\nthree");
        exit(3);
    }
}

fn call(role: &str, number: usize, id: &Value) {
    match role {
        "dies-in-mid-call" => {
            eprintln!("thread panicked at 'oh no'");
            std::process::abort();
        }
        "dies-in-mid-message" => {
            say(&answer(id)[..number]);
            exit(4);
        }
        "closes-its-output" => {
            // Another process could hold it; this one has it alone.
            say("{\"jsonrpc\":\"2.0\"");
            exit(0);
        }
        "floods-stderr" => {
            let flood = vec![b'e'; 1 << 20];
            for _ in 0..64 {
                std::io::stderr().write_all(&flood).unwrap();
            }
            say(&answer(id));
        }
        "floods-stdout" => {
            for number in 0..100_000 {
                say(&format!("noise {number}\n"));
            }
            say(&answer(id));
        }
        "never-ends-a-line" => {
            let flood = vec![b'x'; 1 << 20];
            // Until the reader closes the pipe.
            while std::io::stdout().write_all(&flood).is_ok() {}
            linger();
        }
        "ignores-everything" => {}
        _ => say(&answer(id)),
    }
}

/// Writes to standard output; a client that is gone is the end.
fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    if output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
        exit(0);
    }
}

fn linger() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

/// Ends at once; returning would let the harness report to standard output.
#[allow(clippy::exit, reason = "this is a program here")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
