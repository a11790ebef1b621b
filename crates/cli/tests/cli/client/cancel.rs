//! Ctrl-C reaches the server.

use rustix::process::Signal;

use super::TestPeer;
use crate::process::{RunningCommand, folder};

#[test]
fn interrupt_sends_a_cancellation_and_exits_with_130() {
    let peer = TestPeer::start();
    for way in ["modern", "legacy", "sse", "websocket"] {
        for signal in [Signal::INT, Signal::TERM] {
            let command = peer.command(way, &["call", "wait", "-v"]);
            let mut running = RunningCommand::start(&command.iter().map(String::as_str).collect::<Vec<_>>());
            running.wait_for("progress: 1/4 working");
            peer.wait_for("called");
            running.signal(signal);
            peer.wait_for("cancelled");
            let finished = running.wait();
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{way}: {finished:?}");
            assert!(finished.stderr.ends_with("error: interrupted\n"), "{way}: {finished:?}");
        }
    }
}

/// A legacy server that notes every line it reads, and answers everything but calls.
const NOTING: &str = r#"n=0
while read -r line; do
printf '%s\n' "$line" >>"$NOTES"
case $line in
*'"initialize"'*) n=$((n+1)); printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' $n;;
*'"tools/list"'*) n=$((n+1)); printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}}\n' $n;;
*'"tools/call"'*) printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"called"}}';;
esac
done"#;

#[test]
fn interrupted_call_is_cancelled_before_stdin_closes() {
    let notes = folder("a_program_is_told").join("notes");
    let variable = format!("NOTES={}", notes.display());
    let options = ["--era", "legacy", "--log-level", "info", "--env", &variable];
    let command = [&["call", "wait"], &options[..], &["--", "sh", "-c", NOTING]].concat();
    let mut running = RunningCommand::start(&command);
    running.wait_for("info: called");
    running.signal(Signal::INT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let notes = std::fs::read_to_string(notes).unwrap();
    let last: serde_json::Value = serde_json::from_str(notes.lines().last().unwrap()).unwrap();
    assert_eq!(last["method"], "notifications/cancelled", "{notes}");
    assert_eq!(last["params"]["requestId"], 3, "{notes}");
}

#[test]
fn second_interrupt_skips_the_wait_for_the_server() {
    // The server ignores the end of its input and the signals to stop.
    let program = format!("trap '' TERM INT\n{NOTING}\nwhile true; do sleep 1; done");
    let options = ["--era", "legacy", "--log-level", "info", "--env", "NOTES=/dev/null"];
    let command = [&["call", "wait"], &options[..], &["--", "sh", "-c", &program]].concat();
    let mut told = String::new();
    // On a busy machine the server may be killed, as it is in the end, before the second interrupt comes.
    for _ in 0..5 {
        let mut running = RunningCommand::start(&command);
        running.wait_for("info: called");
        running.signal(Signal::INT);
        running.wait_for("waiting for the server to exit; Ctrl-C skips the wait");
        running.signal(Signal::INT);
        let finished = running.wait();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{finished:?}");
        told = finished.stderr;
        if told.ends_with("error: interrupted while waiting for the server to exit\n") {
            return;
        }
    }
    panic!("it was waited for five times: {told}");
}

#[test]
fn interrupt_abandons_a_program_that_ignores_its_end() {
    // The server reads nothing, and ignores the end of its input and the signals to stop.
    let program = "trap '' TERM INT; while true; do sleep 1; done";
    let mut running = RunningCommand::start(&["tools", "-v", "--", "sh", "-c", program]);
    running.wait_for("connecting to");
    running.signal(Signal::INT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{finished:?}");
}

#[test]
fn interrupt_ends_watching() {
    let peer = TestPeer::start();
    for way in ["modern", "legacy"] {
        let command = peer.command(way, &["watch"]);
        let mut running = RunningCommand::start(&command.iter().map(String::as_str).collect::<Vec<_>>());
        running.wait_for("watching tools, prompts");
        running.signal(Signal::INT);
        let finished = running.wait();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{way}: {finished:?}");
    }
}
