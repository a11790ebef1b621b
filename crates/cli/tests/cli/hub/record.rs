//! What goes through a hub is recorded, and the file replays.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use super::*;
use crate::process::run;

/// The value of a variable, a bearer token, and a state, none of which may be recorded.
const SECRETS: [&str; 3] = ["canary-of-the-environment", "canary-of-the-token", "canary-of-the-state"];

/// Records what clients do with a hub, and returns the file.
#[track_caller]
fn record(test: &str, server: Value, work: impl FnOnce(SocketAddr)) -> PathBuf {
    let place = HubFolder::new(test, "mcp.json", &mcp_json(&[("a", server)]));
    let token = file(&place.folder, "tokens", &format!("ann {}\n", SECRETS[1]), 0o600);
    let (hub, address) = place.serve(&["--auth", &format!("bearer:{token}")]);
    let recording = place.folder.join("record.jsonl");
    let words = ["record", "-o", "record.jsonl", "--config", "mcp.json", "--json"];
    let mut recorder = RunningCommand::start_in(&words, &place.folder);
    recorder.wait_for("recording to record.jsonl");
    work(address);
    recorder.signal(Signal::INT);
    let finished = recorder.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&report["ended"], &report["dropped"]), (&json!("interrupted"), &json!(0)), "{report}");
    drop(hub);
    recording
}

/// Lists and calls as a client does, in both eras.
#[track_caller]
fn use_hub(address: SocketAddr) {
    let bearer = format!("Bearer {}", SECRETS[1]);
    let headers = [("authorization", bearer.as_str())];
    let hostile = "\u{1b}[2J\u{202e} red\u{7}";
    for message in [
        modern(1, "tools/list", json!({})),
        modern(2, "tools/call", call("a__echo", json!({ "message": "one" }))),
        modern(3, "tools/call", call("a__echo", json!({ "message": hostile }))),
        modern(4, "tools/call", {
            let mut stale = call("a__echo", json!({ "message": "stale" }));
            stale["requestState"] = json!(SECRETS[2]);
            stale
        }),
    ] {
        post(address, &message, &headers);
    }
    // Too long for an event, so that only its beginning is recorded.
    let long = call("a__echo", json!({ "message": "x".repeat(300_000) }));
    assert_eq!(post(address, &modern(5, "tools/call", long), &headers).status, 200);
}

fn echo_server(builtin: &str) -> Vec<String> {
    let words = [OWN_BINARY, "serve", "--stdio", "--no-config", "--builtin", builtin];
    words.map(str::to_owned).to_vec()
}

#[test]
fn recording_replays_as_mock_and_against_servers_without_secrets() {
    let mut server = builtin("echo");
    server["env"] = json!({ "CANARY": SECRETS[0] });
    let recording = record("hub_record", server, use_hub);
    assert_eq!(std::fs::metadata(&recording).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&recording).unwrap();
    for secret in SECRETS {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret} is in the file");
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(r#""requestState":"[masked]""#) && text.len() < 100_000, "{} bytes", text.len());
    for kind in ["message", "call_started", "call_ended"] {
        assert!(text.contains(&format!(r#""kind":"{kind}""#)), "{kind}: {text}");
    }

    let path = recording.to_str().unwrap();
    let shown = run(&["replay", path], "");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("tools/call echo at a"), "{}", shown.stdout);
    assert!(!shown.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "controls the terminal");

    // The mock answers as the hub did, and knows nothing else.
    let mock = ["replay", path, "--serve"].map(str::to_owned);
    let against = |words: &[&str], target: &[String]| {
        let target = target.iter().map(String::as_str);
        let words: Vec<&str> = words.iter().copied().chain(["--"]).chain(target).collect();
        run(&words, "")
    };
    let mock_command = [&[OWN_BINARY.to_owned()][..], &mock].concat();
    let equal = against(&["replay", path, "--against"], &mock_command);
    assert_eq!(equal.code, Some(0), "{equal:?}");
    assert!(equal.stdout.contains(" 0 different"), "{equal:?}");
    let unknown = against(&["call", "a__echo", "message=other", "--no-check"], &mock_command);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("this request was not recorded"), "{unknown:?}");

    // What the server itself did: equal at the same server, and different at another one.
    let of_server = ["replay", path, "--server", "a", "--against"];
    let same = against(&of_server, &echo_server("echo"));
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.contains(" 0 different"), "{same:?}");
    let other = against(&of_server, &echo_server("time"));
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other
            .stdout
            .contains("different: tools/call {\"arguments\":{\"message\":\"one\"},\"name\":\"echo\"}")
    );
    assert!(other.stdout.contains("tools.0[echo]"), "the change is named: {}", other.stdout);
    assert!(other.stderr.contains("the server answers differently"), "{other:?}");
}

#[test]
fn recordings_are_compared_call_by_call() {
    let before = record("hub_record_before", builtin("echo"), use_hub);
    let after = record("hub_record_after", builtin("echo"), |address| {
        use_hub(address);
        let bearer = format!("Bearer {}", SECRETS[1]);
        let more = modern(9, "tools/call", call("a__echo", json!({ "message": "more" })));
        post(address, &more, &[("authorization", bearer.as_str())]);
    });
    let [before, after] = [before, after].map(|path| path.to_str().unwrap().to_owned());
    let equal = run(&["diff", &before, &before], "");
    assert_eq!(equal.code, Some(0), "{equal:?}");
    let different = run(&["diff", &before, &after], "");
    assert_eq!(different.code, Some(1), "{different:?}");
    assert!(different.stdout.contains(&format!("only in {after}: tools/call")), "{different:?}");
    assert!(different.stdout.contains("\"more\""), "{different:?}");
    let missing = run(&["diff", &before, "/nowhere"], "");
    assert_eq!(missing.code, Some(3), "{missing:?}");
}
