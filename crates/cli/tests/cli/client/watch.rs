//! `watch`: changes as they come.

use serde_json::{Value, json};

use super::{TRANSPORTS, TestPeer, output};
use crate::process::{RunningCommand, run};

#[track_caller]
fn start(peer: &TestPeer, way: &str, words: &[&str]) -> RunningCommand {
    let command = peer.command(way, words);
    let mut running = RunningCommand::start(&command.iter().map(String::as_str).collect::<Vec<_>>());
    running.wait_for("watching ");
    running
}

#[test]
fn watch_prints_the_differences_of_lists() {
    for way in TRANSPORTS.iter().filter(|way| **way != "pipes") {
        // Each way has a server of its own, since what comes with one call goes with the next.
        let peer = TestPeer::start();
        let running = start(&peer, way, &["watch", "--count", "3"]);
        output(&peer, "modern", &["call", "test_trigger_tool_change"]);
        assert_eq!(running.read_line(), "tools: added test_passing\n", "{way}");
        output(&peer, "modern", &["call", "test_trigger_tool_change"]);
        assert_eq!(running.read_line(), "tools: removed test_passing\n", "{way}");
        output(&peer, "modern", &["call", "test_trigger_prompt_change"]);
        assert_eq!(running.read_line(), "prompts: added test_passing\n", "{way}");
        let finished = running.wait();
        assert_eq!(finished.code, Some(0), "{way}: {finished:?}");
    }
}

#[test]
fn programs_get_a_line_of_json_for_each_change() {
    for way in TRANSPORTS.iter().filter(|way| **way != "pipes") {
        let peer = TestPeer::start();
        let words = ["watch", "--json", "--tools", "--count", "2", "test://watched-resource"];
        let running = start(&peer, way, &words);
        output(&peer, "modern", &["call", "test_trigger_resource_update"]);
        let change: Value = serde_json::from_str(&running.read_line()).unwrap();
        assert_eq!(change, json!({ "change": "resource", "uri": "test://watched-resource" }), "{way}");
        output(&peer, "modern", &["call", "test_trigger_tool_change"]);
        let change: Value = serde_json::from_str(&running.read_line()).unwrap();
        assert_eq!(change["added"], json!(["test_passing"]), "{way}: {change}");
        assert_eq!(running.wait().code, Some(0), "{way}");
    }
}

#[test]
fn watch_fails_when_the_server_disconnects() {
    let peer = TestPeer::start();
    let running = start(&peer, "websocket", &["watch"]);
    drop(peer);
    let finished = running.wait();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.stderr.contains("error: the server closed the connection"), "{finished:?}");
}

#[test]
fn word_that_is_no_uri_is_refused_before_connecting() {
    for (word, hint) in [("tools", "did you mean `--tools`?"), ("page", "a resource is watched by its URI")] {
        let refused = run(&["watch", "http://127.0.0.1:1/mcp", word], "");
        let expected = format!("error: `{word}` is not a URI\nhint: {hint}");
        assert_eq!((refused.code, refused.stderr.starts_with(&expected)), (Some(2), true), "{refused:?}");
    }
}
