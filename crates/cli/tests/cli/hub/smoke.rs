//! A folder with an `mcp.json`, and no flags.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::*;
use crate::messages::{initialize, initialized, legacy, lines, parse_lines};

#[test]
fn serve_uses_the_mcp_json_of_the_folder_without_flags() {
    for file in ["mcp.json", ".mcp.json"] {
        let secret = json!({ "command": OWN_BINARY, "args": ["serve", "--stdio", "--no-config"], "env": { "TOKEN": "${HOME:-x}canary" }, "disabled": true });
        let servers = [("a", builtin("echo")), ("b b", builtin("time")), ("off", secret)];
        let place = HubFolder::new("hub_no_flags", file, &mcp_json(&servers));
        let (mut running, address) = place.serve(&[]);
        // Every command line is printed before the hub runs any of them.
        for part in ["  a    ", "--builtin echo  (on first use)", "--builtin time", "(disabled)"] {
            running.wait_for_whole(part);
        }
        assert_eq!(echoed(address, "a__echo", "hello"), "hello");
        let tools = tools(address);
        assert_eq!(
            tools,
            ["a__echo", "b_b__convert", "b_b__now", "list_mcp_resources", "read_mcp_resource"],
            "{file}"
        );
        assert_eq!(get(address, "/healthz", &[]).body, "ok");
        let (status, ready) = readiness(address);
        assert_eq!((status, &ready["ready"]), (200, &json!(true)), "{ready}");
        assert_eq!(ready["servers"]["a"], json!({ "state": "ready" }));
        assert_eq!(ready["servers"]["off"], json!({ "state": "disabled" }));
        running.signal(Signal::TERM);
        let finished = running.wait();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(!finished.stderr.contains("canary"), "{}", finished.stderr);
    }
}

#[test]
fn serve_stdio_offers_the_same_as_http() {
    let place = HubFolder::new("hub_stdio", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let messages = [
        initialize(),
        initialized(),
        legacy(2, "tools/list", json!({})),
        legacy(3, "tools/call", call("a__echo", json!({ "message": "over pipes" }))),
    ];
    let mut running = RunningCommand::start_in(&["serve", "--stdio", "--trust"], &place.folder);
    running.write(&lines(&messages));
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut answers = parse_lines(&finished.stdout);
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[1]["result"]["tools"][0]["name"], "a__echo", "{answers:?}");
    assert_eq!(answers[2]["result"]["content"][0]["text"], "over pipes");
    assert!(finished.stderr.contains("--builtin echo"), "{}", finished.stderr);
}

#[test]
fn own_items_are_served_under_plain_names_next_to_servers() {
    let text = format!(
        "[servers.far]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n\
         [serve]\nnames = \"{{server}}-{{tool}}\"\n\
         [commands.greet]\nargv = [\"printf\", \"Hello {{name}}\"]\narguments.name = {{}}\n\
         [commands.hide]\nargv = [\"true\"]\n[policy]\ncommands = [\"deny hide\", \"allow *\"]\n"
    );
    let place = HubFolder::new("hub_beside", "trunkline.toml", &text);
    let (mut running, address) = place.serve(&["--builtin", "echo"]);
    let listed = tools(address);
    assert_eq!(listed, ["echo", "far-echo", "greet"]);
    assert_eq!(echoed(address, "echo", "near"), "near");
    assert_eq!(echoed(address, "far-echo", "far"), "far");
    let greeted = called(address, "greet", json!({ "name": "Ann" }));
    assert_eq!(greeted["result"]["content"][0]["text"], "Hello Ann", "{greeted}");
    let hidden = called(address, "hide", json!({}));
    assert_eq!(hidden["error"]["message"], "Unknown tool: hide", "{hidden}");
    running.wait_for("denied by `deny hide`");
    drop(running);
    let (_running, address) = place.serve(&["--names", "mcp__{server}__{tool}"]);
    assert!(tools(address).contains(&"mcp__far__echo".to_owned()));
}

#[test]
fn killed_server_is_restarted_without_affecting_others() {
    let servers = [("a", builtin("echo")), ("b", builtin("time"))];
    let place = HubFolder::new("hub_kill", "mcp.json", &mcp_json(&servers));
    let (running, address) = place.serve(&[]);
    assert_eq!(tools(address).len(), 5);
    for round in 0..3 {
        let killed = wait_until("the server runs", || process_with(running.id(), "--builtin echo"));
        kill_process(Pid::from_raw(killed).unwrap(), Signal::KILL).unwrap();
        assert_eq!(called(address, "b__now", json!({}))["result"]["isError"], json!(null));
        wait_until(&format!("the server answers again, kill {round}"), || {
            let answer = called(address, "a__echo", json!({ "message": "again" }));
            (answer["result"]["content"][0]["text"] == "again").then_some(())
        });
        assert_eq!(tools(address).len(), 5, "its tools stay listed");
    }
}

#[test]
fn nothing_is_left_when_it_ends_and_calls_may_finish() {
    let text = format!(
        "[servers.a]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\nstart = \"eager\"\n\
         [commands.slow]\nscript = \"touch began; while [ ! -e go ]; do sleep 0.05; done; echo done\"\ntimeout = \"60s\"\n"
    );
    let place = HubFolder::new("hub_drain", "trunkline.toml", &text);
    let (mut running, address) = place.serve(&[]);
    let started = wait_until("the server runs", || process_with(running.id(), "--builtin echo"));
    let slow = std::thread::spawn(move || called(address, "slow", json!({})));
    wait_until("the call runs", || place.folder.join("began").exists().then_some(()));
    running.signal(Signal::TERM);
    running.wait_for("shutting down");
    std::fs::write(place.folder.join("go"), "").unwrap();
    let answer = slow.join().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done\n", "{answer}");
    let finished = running.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // One that was still starting is ended by the guard, a moment after the hub.
    wait_until("its servers end with it", || is_gone(started).then_some(()));
}

#[test]
fn servers_exit_when_the_stdio_client_disconnects_or_the_hub_is_killed() {
    let place = HubFolder::new("hub_gone", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let mut running = RunningCommand::start_in(&["serve", "--stdio", "--trust"], &place.folder);
    running.write(&lines(&[initialize(), initialized(), legacy(2, "tools/list", json!({}))]));
    running.read_line();
    assert!(running.read_line().contains("a__echo"));
    let started = process_with(running.id(), "--builtin echo").unwrap();
    assert_eq!(running.finish().code, Some(0));
    assert!(is_gone(started));

    let (running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
    // The list may have come from the run before.
    let started = wait_until("the server runs", || process_with(running.id(), "--builtin echo"));
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    wait_until("the server ends", || is_gone(started).then_some(()));
}

#[test]
fn restarted_hub_lists_stored_tools_while_a_server_hangs() {
    let script =
        format!("[ -e hang ] && exec sleep 600; exec {OWN_BINARY} serve --stdio --no-config --builtin echo");
    let server = json!({ "command": "sh", "args": ["-c", script] });
    let place = HubFolder::new("hub_stored", "mcp.json", &mcp_json(&[("a", server)]));
    let (running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    std::fs::write(place.folder.join("hang"), "").unwrap();
    let (running, address) = place.serve(&["--list-wait", "1h"]);
    assert_eq!(tools(address), ["a__echo"], "the list does not wait for the server");
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn message_of_a_server_above_the_limit_is_refused_with_the_option_that_raises_it() {
    let place = HubFolder::new("hub_long_message", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let (mut running, address) = place.serve(&["--max-upstream-message", "1MiB"]);
    let answer = called(address, "a__echo", json!({ "message": "x".repeat(2 << 20) }));
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains("more than 1048576 bytes"), "{message}");
    assert!(message.contains("the operator can raise `--max-upstream-message`"), "{message}");
    assert!(message.contains("`a`"), "{message}");
    assert_eq!(echoed(address, "a__echo", "still there"), "still there");
    let logged = running.wait_for("skipped a message that is too long");
    assert!(logged.contains("server=a") && logged.contains("limit=1048576"), "{logged}");
}

#[test]
fn start_of_a_hub_without_problems_logs_nothing() {
    let text = "[commands.hello]\nargv = [\"echo\", \"hello\"]\n";
    let place = HubFolder::new("hub_quiet_start", "trunkline.toml", text);
    let (running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["hello"]);
    running.signal(Signal::TERM);
    let finished = running.wait();
    let logged: Vec<&str> = finished.stderr.lines().filter(|line| line.contains(" INFO ")).collect();
    assert!(logged.iter().all(|line| line.contains("shutting down on SIGTERM")), "{logged:#?}");
    assert!(!finished.stderr.contains("this hub") && !finished.stderr.contains("state-key"), "{finished:?}");
}
