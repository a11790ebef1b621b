//! `serve --stdio`: what goes in by lines comes out by lines, and nothing else does.

use rustix::process::Signal;
use serde_json::json;

use crate::messages::{call, initialize, initialized, legacy, lines, modern, parse_lines};
use crate::process::{RunningCommand, file, folder, run, run_with_files};

#[test]
fn legacy_lines_are_answered_and_the_end_of_the_input_is_a_clean_end() {
    let input = lines(&[initialize(), initialized(), legacy(2, "tools/list", json!({}))]);
    let finished = run(&["serve", "--stdio"], &input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stderr, "", "nothing went wrong, so nothing is said");
    let answers = parse_lines(&finished.stdout);
    assert_eq!(answers.len(), 2, "a notification has no answer: {answers:?}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["convert", "echo", "now"]);
}

#[test]
fn modern_lines_are_answered_without_a_handshake() {
    let berlin = call("convert", json!({ "time": "2026-07-28T14:30", "from": "UTC", "to": "Europe/Berlin" }));
    let input = lines(&[
        modern(1, "server/discover", json!({})),
        modern(2, "tools/call", call("echo", json!({ "message": "hello" }))),
        modern(3, "tools/call", berlin),
        modern(4, "tools/call", call("now", json!({ "timezone": "Mars/Phobos" }))),
        modern(5, "resources/read", json!({ "uri": "time://now" })),
    ]);
    let finished = run(&["serve", "--stdio"], &input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut answers = parse_lines(&finished.stdout);
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 5);
    assert!(answers[0]["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(answers[1]["result"]["content"][0]["text"], "hello");
    assert_eq!(answers[2]["result"]["structuredContent"]["to"]["time"], "2026-07-28T16:30:00+02:00");
    assert_eq!(answers[3]["result"]["isError"], true);
    let now = answers[4]["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(now.ends_with("+00:00"), "{now}");
}

#[test]
fn end_of_input_cuts_off_a_running_call_after_five_seconds() {
    let folder = folder("end_of_input_during_a_call");
    let config = file(&folder, "trunkline.toml", "[commands.wait]\nargv = [\"sleep\", \"1000\"]\n", 0o600);
    let input = lines(&[initialize(), initialized(), legacy(2, "tools/call", call("wait", json!({})))]);
    let finished = run(&["serve", "--stdio", "--trust", "--config", &config], &input);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    // Not after the 30 s of `--grace`, which are for a client that still reads.
    let hint = "hint: after the end of its input, calls have 5s to finish\n";
    assert!(finished.stderr.ends_with(hint), "{finished:?}");
}

#[test]
fn only_the_chosen_built_in_servers_are_there() {
    for (chosen, expected) in [("echo", vec!["echo"]), ("time", vec!["convert", "now"])] {
        let finished =
            run(&["serve", "--stdio", "--builtin", chosen], &lines(&[modern(1, "tools/list", json!({}))]));
        let answers = parse_lines(&finished.stdout);
        let tools = answers[0]["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn every_answer_reaches_a_file() {
    let folder = folder("every_answer_reaches_a_file");
    let calls: Vec<_> = (0..200)
        .map(|id| modern(id, "tools/call", call("echo", json!({ "message": "x".repeat(500) }))))
        .collect();
    let input = file(&folder, "input", &lines(&calls), 0o600);
    let finished = run_with_files(&["serve", "--stdio"], input.as_ref(), &folder.join("output"));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(parse_lines(&finished.stdout).len(), calls.len());
}

#[test]
fn json_logs_go_to_the_log_file_and_never_to_stdout() {
    let path = folder("logs_go_to_their_file").join("log");
    let path = path.to_str().unwrap();
    let args = ["serve", "--stdio", "--log-level", "trace", "--log-format", "json", "--log-file", path];
    let finished = run(&args, &lines(&[initialize()]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert_eq!(parse_lines(&finished.stdout).len(), 1);
    let log = parse_lines(&std::fs::read_to_string(path).unwrap());
    for said in ["session opened", "session ended"] {
        assert_eq!(log.iter().filter(|line| line["message"] == said).count(), 1, "{said}: {log:?}");
    }
    assert!(log.iter().all(|line| line["level"] != "ERROR"), "{log:?}");
}

#[test]
fn oversized_stdio_line_is_rejected_and_the_next_is_answered() {
    let long = modern(1, "tools/call", call("echo", json!({ "message": "x".repeat(2000) })));
    let input = lines(&[long, modern(2, "tools/call", call("echo", json!({ "message": "short" })))]);
    let finished = run(&["serve", "--stdio", "--max-message", "1KiB"], &input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let answers = parse_lines(&finished.stdout);
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("1024 bytes"), "{answers:?}");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "short");
}

#[test]
fn signal_stops_serve_with_open_stdin() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut running = RunningCommand::start(&["serve", "--stdio"]);
        running.write(&lines(&[initialize()]));
        assert!(running.read_line().contains("protocolVersion"));
        running.signal(signal);
        let finished = running.wait();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}

#[test]
fn stdio_call_longer_than_the_grace_is_cut_off_and_exits_with_1() {
    let folder = folder("a_call_that_outlasts_the_input");
    // Longer than any machine takes to get there; it is ended with its group.
    file(&folder, "trunkline.toml", "[commands.slow]\nargv = [\"sleep\", \"1000\"]\n", 0o600);
    let config = folder.join("trunkline.toml");
    let args = ["serve", "--stdio", "--trust", "--config", config.to_str().unwrap(), "--grace", "100ms"];
    let input = lines(&[initialize(), initialized(), legacy(3, "tools/call", call("slow", json!({})))]);
    let finished = run(&args, &input);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("1 call was cut off before it finished"), "{finished:?}");
    assert!(finished.stderr.contains("`--grace`"), "{finished:?}");
    let answers = parse_lines(&finished.stdout);
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(3), &json!(-32603)), "{answers:?}");
}

#[test]
fn require_initialized_refuses_early_requests() {
    let input = lines(&[initialize(), legacy(2, "tools/list", json!({}))]);
    for (options, strict) in [(&[][..], false), (&["--strict", "--session-in-meta"], true)] {
        let finished = run(&[&["serve", "--stdio", "--no-config"], options].concat(), &input);
        let answers = parse_lines(&finished.stdout);
        assert_eq!(answers[1].get("error").is_some(), strict, "{answers:?}");
        let id = &answers[0]["result"]["_meta"]["trunkline/sessionId"];
        assert_eq!(id.is_string(), strict, "{answers:?}");
    }
}
