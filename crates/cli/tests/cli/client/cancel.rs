//! Ctrl-C reaches the server.

use rustix::process::Signal;

use super::Peer;
use crate::process::Running;

#[test]
fn an_interrupt_cancels_on_the_wire_and_exits_with_130() {
    let peer = Peer::start();
    for way in ["modern", "legacy", "sse", "websocket"] {
        for signal in [Signal::INT, Signal::TERM] {
            let command = peer.command(way, &["call", "wait", "-v"]);
            let mut running = Running::start(&command.iter().map(String::as_str).collect::<Vec<_>>());
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

#[test]
fn a_program_that_does_not_answer_is_left_at_once_by_a_second_interrupt() {
    // It reads nothing, does not end when its input does, and takes no notice of being asked to.
    let program = "trap '' TERM INT; echo started >&2; while true; do sleep 1; done";
    let mut running = Running::start(&["tools", "-v", "--", "sh", "-c", program]);
    running.wait_for("connecting to");
    running.signal(Signal::INT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(130), "{finished:?}");
}

#[test]
fn an_interrupt_ends_watching() {
    let peer = Peer::start();
    for way in ["modern", "legacy"] {
        let command = peer.command(way, &["watch"]);
        let mut running = Running::start(&command.iter().map(String::as_str).collect::<Vec<_>>());
        running.wait_for("watching tools, prompts");
        running.signal(Signal::INT);
        let finished = running.wait();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{way}: {finished:?}");
    }
}
