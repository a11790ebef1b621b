//! The overview of a hub in a terminal.

use rustix::process::Signal;

use super::*;
use crate::client::PseudoTerminal;
use crate::process::run;

/// A hub with the built-in server `echo` as `a`, and the words to watch it with.
#[track_caller]
fn hub(test: &str) -> (RunningCommand, SocketAddr, Vec<String>) {
    let place = HubFolder::new(test, "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let socket = place.socket().to_str().unwrap().to_owned();
    let (hub, address) = place.serve(&["--admin-socket", &socket]);
    tools(address);
    (hub, address, ["top", "--admin-socket", &socket].map(str::to_owned).to_vec())
}

#[test]
fn terminal_is_restored_after_keys_and_signals() {
    let (_hub, address, words) = hub("hub_top");
    for (columns, end) in
        [(80, None), (60, Some(Signal::TERM)), (80, Some(Signal::HUP)), (200, Some(Signal::INT))]
    {
        let mut terminal = PseudoTerminal::start(&words, columns, &[]);
        terminal.wait_for("\u{1b}[?1049h");
        terminal.wait_for_screen("trunkline top");
        terminal.wait_for_screen("ready");
        assert_eq!(echoed(address, "a__echo", "hello"), "hello");
        terminal.wait_for_screen("a__echo");
        match end {
            None => terminal.type_keys("q"),
            Some(signal) => terminal.signal(signal),
        }
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{end:?}: {screen}");
        let (_, after) = screen.rsplit_once("\u{1b}[?1049l").unwrap_or_else(|| panic!("{end:?}: {screen:?}"));
        assert_eq!(after.replace("\u{1b}[?25h", "").trim(), "", "{end:?}: nothing is printed afterwards");
    }
}

#[test]
fn keys_filter_pause_and_show_details() {
    let (hub, address, words) = hub("hub_top_keys");
    let mut terminal = PseudoTerminal::start(&words, 100, &[("NO_COLOR", "1")]);
    terminal.wait_for_screen("ready");
    terminal.type_keys("?");
    terminal.wait_for_screen("sort the servers");
    terminal.type_keys("?/server:a");
    terminal.wait_for_screen("server:a_");
    terminal.type_keys("\r");
    echoed(address, "a__echo", "hello");
    terminal.wait_for_screen("a__echo");
    terminal.type_keys("j\r");
    terminal.wait_for_screen("at the server");
    terminal.type_keys("p");
    terminal.wait_for_screen("PAUSED");
    terminal.type_keys("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    for color in ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[38;5;"] {
        assert!(!screen.contains(color), "{color:?}: {screen:?}");
    }
    // The hub may end first.
    let mut terminal = PseudoTerminal::start(&words, 80, &[]);
    terminal.wait_for_screen("ready");
    drop(hub);
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains("the hub has closed the connection"), "{screen}");
}

#[test]
fn snapshot_counts_calls_for_a_while() {
    let (_hub, address, words) = hub("hub_top_json");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let counting = {
        let words = [&words[..], &["--json", "--for", "3s"]].concat();
        RunningCommand::start(&words)
    };
    // Calls count from the moment on that the command follows them.
    wait_until("it ends", || {
        echoed(address, "a__echo", "hello");
        is_gone(i32::try_from(counting.id()).unwrap()).then_some(())
    });
    let counted = counting.wait();
    assert_eq!(counted.code, Some(0), "{counted:?}");
    let shown: Value = serde_json::from_str(&counted.stdout).unwrap();
    let server = &shown["servers"][0];
    assert_eq!((&server["name"], &server["state"]), (&json!("a"), &json!("ready")), "{shown}");
    assert!(server["calls"].as_u64() > Some(0) && server["p95_us"].as_u64() > Some(0), "{shown}");
    assert_eq!(shown["calls"][0]["name"], "a__echo", "{shown}");

    let refused = run(&words, "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("needs a terminal") && refused.stderr.contains("--json"), "{refused:?}");
    let missing = run(&["top", "--json", "--config", "/nowhere/mcp.json"], "");
    assert_eq!(missing.code, Some(4), "{missing:?}");
}
