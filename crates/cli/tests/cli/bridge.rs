//! `bridge`: any client uses any server, over pipes and over HTTP, and nothing is left of it afterwards.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::bare_client::{get, post};
use crate::client::{TRANSPORTS, TestPeer};
use crate::messages::{call, initialize, initialized, legacy, lines, modern, parse_lines};
use crate::process::{DEADLINE, FinishedCommand, RunningCommand, file, folder, run};

/// The command, as a program that another one starts.
const TRUNKLINE: &str = env!("CARGO_BIN_EXE_trunkline");

/// The words by which a bridge reaches a peer.
fn upstream(peer: &TestPeer, way: &str) -> Vec<String> {
    peer.command(way, &["bridge"])
}

/// Runs a command of the client against a bridge that it starts.
fn through_pipes(era: &str, words: &[&str], bridge: &[String]) -> FinishedCommand {
    let bridge: Vec<&str> = bridge.iter().map(String::as_str).collect();
    run(&[words, &["--era", era, "--", TRUNKLINE], &bridge].concat(), "")
}

const BOOK: &[&str] = &["call", "book", "--answer", "name=Ann", "--answer", "seat=window"];
const BOOKED: &str = "Accept {\"name\":\"Ann\",\"guests\":2,\"seat\":\"w\",\"vip\":false}\n";

#[test]
fn clients_of_both_eras_use_servers_of_both_eras_over_pipes() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let bridge = upstream(&peer, way);
        for era in ["modern", "legacy"] {
            let booked = through_pipes(era, BOOK, &bridge);
            assert_eq!((booked.code, booked.stdout.as_str()), (Some(0), BOOKED), "{era} {way}: {booked:?}");
        }
    }
}

#[test]
fn clients_of_both_eras_use_servers_of_both_eras_over_http() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let bridge = upstream(&peer, way);
        let (running, address) = over_http(&format!("bridge_http_{way}"), &bridge);
        for client in [
            &["--era", "modern", &format!("http://{address}/mcp")][..],
            &["--era", "legacy", &format!("http://{address}/mcp")],
            &[&format!("http://{address}/sse")],
            &[&format!("ws://{address}/ws")],
        ] {
            let booked = run(&[&["call"], client, &BOOK[1..]].concat(), "");
            assert_eq!((booked.code, &*booked.stdout), (Some(0), BOOKED), "{client:?} {way}: {booked:?}");
        }
        running.signal(Signal::TERM);
        assert_eq!(running.wait().code, Some(0), "{way}");
    }
}

/// Starts a bridge on a free port, and waits until it is ready.
#[track_caller]
fn over_http(test: &str, bridge: &[String]) -> (RunningCommand, SocketAddr) {
    let port_file = folder(test).join("address");
    let (name, rest) = bridge.split_first().unwrap();
    let fixed = [&**name, "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut running = RunningCommand::start(&[&fixed[..], &rest].concat());
    running.wait_for("listening on");
    let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
    (running, address)
}

#[test]
fn stdio_bridge_forwards_every_revision_and_the_server_identity() {
    for upstream in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let bridge = ["bridge", "--revision", upstream, "--", TRUNKLINE, "serve", "--stdio"];
        for client in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut hello = initialize();
            hello["params"]["protocolVersion"] = json!(client);
            let hi = call("echo", json!({ "message": "hi" }));
            let input = lines(&[
                hello,
                initialized(),
                legacy(2, "tools/list", json!({})),
                legacy(3, "tools/call", hi),
            ]);
            let answers = answers(&run(&bridge, &input));
            assert_eq!(answers[0]["result"]["protocolVersion"], client, "{upstream}");
            assert_eq!(answers[0]["result"]["serverInfo"]["name"], "trunkline", "{client} {upstream}");
            let tools = answers[1]["result"]["tools"].as_array().unwrap();
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["convert", "echo", "now"], "{client} {upstream}");
            assert_eq!(answers[2]["result"]["content"][0]["text"], "hi", "{client} {upstream}");
        }
        let hi = call("echo", json!({ "message": "hi" }));
        let input = lines(&[
            modern(1, "server/discover", json!({})),
            modern(2, "tools/call", hi),
            modern(3, "resources/read", json!({ "uri": "time://now" })),
        ]);
        let answers = answers(&run(&bridge, &input));
        assert!(answers[0]["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
        assert_eq!(answers[1]["result"]["content"][0]["text"], "hi", "{upstream}");
        assert_eq!(answers[2]["result"]["contents"][0]["uri"], "time://now", "{upstream}");
    }
}

/// Reads what a bridge that ended in order has answered, in the order of the requests.
#[track_caller]
fn answers(finished: &FinishedCommand) -> Vec<serde_json::Value> {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let mut answers = parse_lines(&finished.stdout);
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// A legacy server that has one more tool for clients that accept input requests.
const ASKS_SOME: &str = r#"more=
while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case $line in
*'"initialize"'*) case $line in *'"elicitation"'*) more=',{"name":"ask","inputSchema":{"type":"object"}}';; esac
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
*'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"plain","inputSchema":{"type":"object"}}%s]}}\n' "$id" "$more";;
*'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"called"}]}}\n' "$id";;
esac
done"#;

#[test]
fn bridge_forwards_lists_unchanged() {
    let bridge = ["bridge", "--era", "legacy", "--", "sh", "-c", ASKS_SOME].map(str::to_owned);
    for era in ["modern", "legacy"] {
        let asked = through_pipes(era, &["call", "ask", "--answer", "accept"], &bridge);
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "called\n"), "{era}: {asked:?}");
        let unasked = through_pipes(era, &["call", "ask"], &bridge);
        assert!(unasked.stderr.contains("unknown tool `ask`"), "{era}: {unasked:?}");
    }
}

#[test]
fn client_cancellation_cancels_the_call_at_the_server() {
    let peer = TestPeer::start();
    for way in ["modern", "legacy"] {
        let bridge = upstream(&peer, way);
        let bridge: Vec<&str> = bridge.iter().map(String::as_str).collect();
        for era in ["modern", "legacy"] {
            let words = [&["call", "wait", "-v", "--era", era, "--", TRUNKLINE], &bridge[..]].concat();
            let mut running = RunningCommand::start(&words);
            running.wait_for("progress: 1/4 working");
            peer.wait_for("called");
            running.signal(Signal::INT);
            peer.wait_for("cancelled");
            assert_eq!(running.wait().code, Some(130), "{era} {way}");
        }
    }
}

#[test]
fn bridge_uses_the_configuration_of_a_named_server() {
    let here = folder("bridge_by_name");
    let toml = format!(
        "[servers.clock]\ncommand = {TRUNKLINE:?}\nargs = [\"serve\", \"--stdio\"]\ntools.deny = [\"convert\"]\n"
    );
    let config = file(&here, "trunkline.toml", &toml, 0o600);
    let input = lines(&[modern(1, "tools/list", json!({}))]);
    let answers = answers(&run(&["bridge", "--config", &config, "clock"], &input));
    let tools = answers[0]["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{tools:?}");
    let unknown = run(&["bridge", "--config", &config, "clok"], "");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(3), ""), "{unknown:?}");
    assert!(unknown.stderr.contains("did you mean `clock`?"), "{unknown:?}");
}

#[test]
fn bridge_fails_before_responding_if_the_server_is_unreachable() {
    let input = lines(&[initialize()]);
    let silent = ["bridge", "--", "sh", "-c", "exit 3"];
    let finished = run(&silent, &input);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(4), ""), "{finished:?}");
    let told = "server/discover at 2026-07-28: ";
    assert!(finished.stderr.contains("error: cannot connect to sh -c"), "{finished:?}");
    assert!(finished.stderr.contains(told) && finished.stderr.contains("initialize at"), "{finished:?}");
    let missing = run(&["bridge", "--http", "127.0.0.1:0", "--", "/no/such/program"], "");
    assert_eq!(missing.code, Some(4), "{missing:?}");
    assert!(!missing.stderr.contains("listening on"), "{missing:?}");
}

#[test]
fn bridge_sends_credentials_upstream_and_requires_its_own() {
    let here = folder("bridge_credentials");
    let tokens = file(&here, "tokens", "ann upstream-token-of-ann\n", 0o600);
    let mine = file(&here, "mine", "upstream-token-of-ann\n", 0o600);
    let others = file(&here, "others", "bob downstream-token-of-bob\n", 0o600);
    let (_server, server) = RunningCommand::serve("bridge_behind", &["--auth", &format!("bearer:{tokens}")]);
    let url = format!("http://{server}/mcp");
    let wrong = file(&here, "wrong", "another-token\n", 0o600);
    let refused = run(&["bridge", &url, "--bearer", &format!("@{wrong}")], "");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""), "{refused:?}");
    // Without a token a user can log in later.
    let waiting = run(&["bridge", &url], "");
    assert_eq!((waiting.code, waiting.stdout.as_str()), (Some(0), ""), "{waiting:?}");
    assert!(waiting.stderr.contains("has to log in"), "{waiting:?}");
    let words = ["bridge", &url, "--bearer", &format!("@{mine}"), "--auth", &format!("bearer:{others}")];
    let (bridge, address) = over_http("bridge_auth", &words.map(str::to_owned));
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hi" })));
    assert_eq!(post(address, &message, &[]).status, 401);
    assert_eq!(post(address, &message, &[("Authorization", "Bearer upstream-token-of-ann")]).status, 401);
    let reply = post(address, &message, &[("Authorization", "Bearer downstream-token-of-bob")]);
    assert_eq!(reply.json()["result"]["content"][0]["text"], "hi", "{reply:?}");
    assert_eq!(get(address, "/readyz", &[]).status, 200);
    bridge.signal(Signal::TERM);
    let finished = bridge.wait();
    assert!(!finished.stderr.contains("token-of"), "{finished:?}");
}

/// The command line of a server that notes its process.
fn noting(pid_file: &Path) -> [String; 3] {
    let script = format!(
        "echo $$ >'{}.new' && mv '{0}.new' '{0}' && exec '{TRUNKLINE}' serve --stdio",
        pid_file.display()
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

#[track_caller]
fn noted(pid_file: &Path) -> Pid {
    Pid::from_raw(std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap()).unwrap()
}

/// Waits until a process is gone.
#[track_caller]
fn gone(pid: Pid) {
    let began = Instant::now();
    while test_kill_process(pid).is_ok() {
        assert!(began.elapsed() < DEADLINE, "{pid:?} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_child_process_outlives_the_bridge() {
    let pid_file = folder("bridge_ends").join("pid");
    let server = noting(&pid_file);
    for (ending, code) in [
        (None, Some(0)),
        (Some(Signal::TERM), Some(0)),
        (Some(Signal::INT), Some(0)),
        (Some(Signal::KILL), None),
    ] {
        if ending == Some(Signal::KILL) && !cfg!(target_os = "linux") {
            continue;
        }
        let words = ["bridge", "--", &server[0], &server[1], &server[2]];
        let mut running = RunningCommand::start(&words);
        running.write(&lines(&[initialize()]));
        assert!(running.read_line().contains("protocolVersion"));
        let finished = match ending {
            None => running.finish(),
            Some(signal) => {
                running.signal(signal);
                running.wait()
            }
        };
        assert_eq!(finished.code, code, "{ending:?}: {finished:?}");
        gone(noted(&pid_file));
    }
}

#[test]
fn interrupt_ends_a_connecting_bridge() {
    let ready = folder("bridge_interrupted").join("ready");
    let script = format!(
        "echo $$ >'{0}.new'; mv '{0}.new' '{0}'; trap '' TERM INT; while true; do sleep 1; done",
        ready.display()
    );
    let running = RunningCommand::start(&["bridge", "--", "sh", "-c", &script]);
    let began = Instant::now();
    while !ready.exists() {
        assert!(began.elapsed() < DEADLINE, "the program was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let finished = running.wait();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{finished:?}");
    gone(noted(&ready));
}

#[test]
fn bridge_restarts_a_crashed_server_on_demand() {
    let pid_file = folder("bridge_death").join("pid");
    let [program, option, script] = noting(&pid_file);
    let words = ["bridge", "--", &program, &option, &script].map(str::to_owned);
    let (_running, address) = over_http("bridge_death_port", &words);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hi" })));
    assert_eq!(post(address, &message, &[]).json()["result"]["content"][0]["text"], "hi");
    let first = noted(&pid_file);
    kill_process(first, Signal::KILL).unwrap();
    gone(first);
    // A call that was on its way when the server died is lost, and never made twice.
    let began = Instant::now();
    let mut again = post(address, &message, &[]).json();
    while again["error"]["data"]["reason"] == "upstream_lost" && began.elapsed() < DEADLINE {
        again = post(address, &message, &[]).json();
    }
    assert_eq!(again["result"]["content"][0]["text"], "hi", "{again}");
    assert_ne!(noted(&pid_file), first);
}

#[test]
fn options_of_http_need_http() {
    for option in [&["--path", "/x"][..], &["--auth", "bearer:x"], &["--only-streamable"]] {
        let finished = run(&[&["bridge"], option, &["http://127.0.0.1:9/mcp"]].concat(), "");
        assert_eq!(finished.code, Some(2), "{option:?}: {finished:?}");
        assert!(finished.stderr.contains("--http <ADDR>"), "{option:?}: {finished:?}");
    }
}

#[test]
fn sighup_does_not_end_a_bridge_that_has_nothing_to_read_again() {
    let bridge = ["bridge", "--", TRUNKLINE, "serve", "--stdio", "--no-config", "--builtin", "echo"];
    let (running, address) = over_http("bridge_hangup", &bridge.map(str::to_owned));
    running.signal(Signal::HUP);
    let echo = modern(1, "tools/call", call("echo", json!({ "message": "still there" })));
    for _ in 0..3 {
        let answer = post(address, &echo, &[]).json();
        assert_eq!(answer["result"]["content"][0]["text"], "still there", "{answer}");
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
}
