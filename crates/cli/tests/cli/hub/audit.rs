//! The audit log: a line for each call, without arguments and results.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use super::*;
use crate::messages::parse_lines;

const CANARY: &str = "canary-71c1f0";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn audit_log_has_one_line_per_call_without_secrets() {
    let mut server = builtin("echo");
    server["env"] = json!({ "TOKEN": CANARY });
    let place = HubFolder::new("hub_audit", "mcp.json", &mcp_json(&[("a", server)]));
    let log = place.folder.join("audit.jsonl");
    let tokens = file(&place.folder, "tokens", &format!("ann {CANARY}-ann-token\n"), 0o600);
    let auth = format!("bearer:{tokens}");
    let (running, address) =
        place.serve(&["--audit", log.to_str().unwrap(), "--auth", &auth, "--builtin", "time"]);
    let bearer = format!("Bearer {CANARY}-ann-token");
    let send = |message: &Value| post(address, message, &[("Authorization", &bearer)]).json();
    let talk = |tool: &str, arguments: Value| send(&modern(1, "tools/call", call(tool, arguments)));
    assert_eq!(talk("a__echo", json!({ "message": CANARY }))["result"]["content"][0]["text"], CANARY);
    talk("a__echo", json!({}));
    talk("now", json!({ "timezone": CANARY }));
    talk(CANARY, json!({}));
    let read_time = modern(1, "resources/read", json!({ "uri": "time://now" }));
    let read_time = post(address, &read_time, &[("Authorization", &bearer), ("Mcp-Name", "time://now")]);
    assert_eq!(read_time.status, 200, "{read_time:?}");
    send(&modern(1, "tools/list", json!({})));
    running.signal(Signal::TERM);
    let finished = running.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let written = read(&log);
    assert!(!written.contains(CANARY), "{written}");
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = parse_lines(&written);
    assert_eq!(lines.len(), 6, "{written}");
    for line in &lines {
        assert_eq!((&line["principal"], &line["client"]), (&json!("ann"), &json!("test 1")), "{line}");
        assert_eq!(line["revision"], "2026-07-28");
        assert!(line["time"].as_str().unwrap().ends_with('Z') && line["ms"].is_u64(), "{line}");
        assert!(line["bytes_in"].is_u64() && line.get("arguments").is_none(), "{line}");
    }
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
            [text("method"), text("name"), text("server"), text("item"), text("outcome")].join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "tools/call a__echo a echo ok",
            "tools/call a__echo a echo tool_error",
            "tools/call now this hub now tool_error",
            "tools/call - - - INVALID_PARAMS",
            "resources/read time://now this hub time://now ok",
            "tools/list - - - ok",
        ]
    );
    let bytes = |key: &str| lines[0][key].as_u64().unwrap();
    assert!(bytes("bytes_in") > 10 && bytes("bytes_out") > 10, "{}", lines[0]);
}

#[test]
fn audit_table_enables_arguments_and_sighup_reopens_the_log() {
    let text = "[commands.hide]\nargv = [\"true\"]\n[policy]\ncommands = [\"deny hide\", \"allow *\"]\n\
                [commands.greet]\nargv = [\"printf\", \"Hello {name}\"]\narguments.name = {}\n\
                [audit]\nfile = \"calls.jsonl\"\narguments = true\n";
    let place = HubFolder::new("hub_audit_file", "trunkline.toml", text);
    let log = place.folder.join("calls.jsonl");
    let (mut running, address) = place.serve(&[]);
    called(address, "greet", json!({ "name": "Ann" }));
    called(address, "greet", json!({ "name": "x".repeat(10_000) }));
    called(address, "hide", json!({}));
    let lines = wait_until("three lines are written", || {
        let lines = parse_lines(&read(&log));
        (lines.len() == 3).then_some(lines)
    });
    assert_eq!((&lines[2]["name"], &lines[2]["rule"]), (&json!("hide"), &json!("denied by `deny hide`")));
    assert_eq!(lines[0]["arguments"], json!({ "name": "Ann" }));
    assert!(lines[1].get("arguments").is_none() && lines[1]["bytes_in"].as_u64().unwrap() > 10_000);
    let old = place.folder.join("calls.1");
    std::fs::rename(&log, &old).unwrap();
    running.signal(Signal::HUP);
    running.wait_for("reloaded ");
    called(address, "greet", json!({ "name": "Bob" }));
    wait_until("the new file has the line", || read(&log).contains("Bob").then_some(()));
    assert!(!read(&old).contains("Bob"));
}

#[test]
fn calls_are_refused_while_the_audit_log_cannot_be_written() {
    for (on_failure, is_refused) in [("continue", false), ("refuse", true)] {
        let text = format!(
            "[commands.greet]\nargv = [\"printf\", \"Hello\"]\n[audit]\nfile = \"/dev/full\"\non_failure = \"{on_failure}\"\n"
        );
        let place = HubFolder::new(&format!("hub_audit_{on_failure}"), "trunkline.toml", &text);
        let (mut running, address) = place.serve(&[]);
        let first = called(address, "greet", json!({}));
        assert_eq!(first["result"]["content"][0]["text"], "Hello", "{first}");
        running.wait_for("cannot write to the audit log");
        let next = called(address, "greet", json!({}));
        assert_eq!(next.get("error").is_some(), is_refused, "{on_failure}: {next}");
        let told = next["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(told.contains("audit log"), is_refused, "{on_failure}: {next}");
    }
}

#[test]
fn unopenable_audit_log_exits_with_the_configuration_code() {
    let place = HubFolder::new("hub_audit_wrong", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let finished = run_in(&["serve", "--stdio", "--trust", "--audit", "missing/log"], &place.folder);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("cannot open audit log missing/log"), "{finished:?}");
}

#[test]
fn sighup_reopens_the_audit_log_of_a_server_without_a_configuration_file() {
    let place = HubFolder::new("no_config_hangup", "other.json", "{}");
    let log = place.folder.join("calls.jsonl");
    let (mut running, address) = place.serve(&["--no-config", "--audit", "calls.jsonl"]);
    called(address, "echo", json!({ "text": "before" }));
    wait_until("the call is written", || read(&log).contains("echo").then_some(()));
    let old = place.folder.join("calls.1");
    std::fs::rename(&log, &old).unwrap();
    running.signal(Signal::HUP);
    running.wait_for("reopened the audit log");
    called(address, "echo", json!({ "text": "after" }));
    wait_until("the new file has the line", || {
        log.exists().then(|| read(&log)).filter(|text| text.contains("echo"))
    });
    assert_eq!(parse_lines(&read(&old)).len(), 1);
}
