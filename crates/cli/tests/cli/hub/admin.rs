//! Those who run a hub talk to it over a socket that is theirs alone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::*;

/// Sends a request to the admin socket of a hub.
#[track_caller]
fn ask(socket: &Path, request: &Value) -> Value {
    asked(socket, &format!("{request}\n"))
}

#[track_caller]
fn asked(socket: &Path, request: &str) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // The hub may close the connection before the whole request is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn admin_socket_enables_disables_and_reconnects_servers() {
    let servers = [("a", builtin("echo")), ("b", json!({ "command": "/nowhere" }))];
    let place = HubFolder::new("hub_admin", "mcp.json", &mcp_json(&servers));
    let socket = place.socket();
    let (running, address) = place.serve(&["--admin-socket", socket.to_str().unwrap()]);
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(tools(address), ["a__echo"]);
    let status = ask(&socket, &json!({ "do": "status" }));
    let report = &status["status"];
    assert_eq!(report["url"], format!("http://{address}/mcp"), "{status}");
    assert_eq!(report["config"], json!(place.path().canonicalize().unwrap()));
    let [a, b] = &report["servers"].as_array().unwrap()[..] else { panic!("{status}") };
    assert_eq!(
        (&a["name"], &a["state"], &a["tools"], &a["starts"]),
        (&json!("a"), &json!("ready"), &json!(1), &json!(1))
    );
    assert!(a["reach"].as_str().unwrap().ends_with("--builtin echo"), "{a}");
    assert!(b["reason"].as_str().unwrap().contains("was not found"), "{b}");

    let process = process_with(running.id(), "--builtin echo").unwrap();
    assert_eq!(ask(&socket, &json!({ "do": "disable", "server": "a" })), json!({ "switched": true }));
    assert_eq!(ask(&socket, &json!({ "do": "disable", "server": "a" })), json!({ "switched": false }));
    assert!(tools(address).is_empty());
    assert_eq!(process_with(running.id(), "--builtin echo"), Some(process), "the connection stays");
    assert_eq!(ask(&socket, &json!({ "do": "enable", "server": "a" })), json!({ "switched": true }));
    assert_eq!(echoed(address, "a__echo", "back"), "back");

    assert!(ask(&socket, &json!({ "do": "ping", "server": "a" }))["pinged"].as_f64().unwrap() >= 0.0);
    assert_eq!(ask(&socket, &json!({ "do": "reconnect", "server": "a" })), json!("done"));
    assert_ne!(process_with(running.id(), "--builtin echo"), Some(process), "it is another process");
    assert_eq!(ask(&socket, &json!({ "do": "disconnect", "server": "a" })), json!("done"));
    assert_eq!(children(running.id()).len(), children_without(running.id(), "--builtin echo"));
    assert_eq!(ask(&socket, &json!({ "do": "connect", "server": "a" })), json!("done"));
    assert_eq!(echoed(address, "a__echo", "again"), "again");

    for (request, kind) in [
        (json!({ "do": "enable", "server": "c" }), "no-such-server"),
        (json!({ "do": "enable", "server": "this hub" }), "no-such-server"),
        (json!({ "do": "connect", "server": "b" }), "unavailable"),
        (json!({ "do": "dance" }), "request"),
        (json!("x".repeat(70_000)), "request"),
    ] {
        assert_eq!(ask(&socket, &request)["failed"]["kind"], kind);
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    assert!(!socket.exists(), "it is taken away at the end");
}

/// Counts the processes of which no word of the command line is this.
fn children_without(parent: u32, word: &str) -> usize {
    children(parent).into_iter().filter(|id| !command_line(*id).contains(word)).count()
}

#[test]
fn admin_reload_returns_the_applied_changes() {
    let place = HubFolder::new("hub_admin_reload", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let socket = place.socket();
    let (_running, address) = place.serve(&["--admin-socket", socket.to_str().unwrap()]);
    assert_eq!(tools(address), ["a__echo"]);
    place.write("{");
    let refused = ask(&socket, &json!({ "do": "reload" }));
    assert_eq!(refused["failed"]["kind"], "configuration", "{refused}");
    assert!(refused["failed"]["what"].as_str().unwrap().contains("mcp.json:1:"), "{refused}");
    place.write(&mcp_json(&[("b", builtin("echo")), ("c", json!({ "command": "/nowhere" }))]));
    ask(&socket, &json!({ "do": "reload" }));
    assert_eq!(tools(address), ["b__echo"]);
    let again = ask(&socket, &json!({ "do": "reload" }));
    assert_eq!(again["applied"]["unchanged"], json!(["b", "c"]), "{again}");
}

#[test]
fn by_default_the_socket_is_in_a_folder_of_its_user_and_a_second_hub_serves_without_one() {
    let place = HubFolder::new("hub_socket", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let run = place.folder.join("run");
    std::fs::create_dir(&run).unwrap();
    let variables = [("XDG_RUNTIME_DIR", run.to_str().unwrap())];
    let config = place.path();
    let args = ["--trust", "--config", config.to_str().unwrap()];
    let (running, _) = RunningCommand::serve_with("hub_socket_first", &args, &variables);
    let sockets = || -> Vec<PathBuf> {
        std::fs::read_dir(run.join("trunkline")).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let [socket] = &sockets()[..] else { panic!("{:?}", sockets()) };
    assert_eq!((mode(socket), mode(&run.join("trunkline"))), (0o600, 0o700));
    let process = |socket: &Path| ask(socket, &json!({ "do": "status" }))["status"]["pid"].clone();
    assert_eq!(process(socket), json!(running.id()));
    let (mut second, address) = RunningCommand::serve_with("hub_socket_second", &args, &variables);
    assert_eq!(tools(address), ["a__echo"]);
    assert_eq!(process(socket), json!(running.id()), "the first keeps its place");
    second.signal(Signal::TERM);
    assert!(second.wait_for("shutting down").contains("SIGTERM"));
    assert_eq!(second.wait().code, Some(0));
    assert_eq!(process(socket), json!(running.id()), "and loses it to nobody who leaves");
    // The socket file that a killed hub left behind does not block the next one.
    let left = socket.clone();
    drop(running);
    assert!(left.exists());
    let (third, _) = RunningCommand::serve_with("hub_socket_third", &args, &variables);
    assert_eq!(process(&left), json!(third.id()));
}

#[test]
fn commands_without_a_target_use_the_hub_that_runs_here() {
    let place = HubFolder::new("hub_as_target", "mcp.json", &mcp_json(&[("a", builtin("echo"))]));
    let here = |words: &[&str]| run_in(words, &place.folder);
    let none = here(&["tools"]);
    assert_eq!(none.code, Some(4), "{none:?}");
    assert!(none.stderr.starts_with("error: no hub is running from mcp.json\nhint: start one"), "{none:?}");
    let (_running, address) = place.serve(&[]);
    let listed = here(&["tools"]);
    assert_eq!(
        (listed.code, listed.stdout.lines().next()),
        (Some(0), Some("a__echo(message: str)")),
        "{listed:?}"
    );
    assert_eq!(listed.stderr, format!("hub running from mcp.json at http://{address}/mcp\n"));
    for words in
        [&["tools", "--hub", "a__echo", "-q"][..], &["info", "-q"], &["resources", "-q"], &["doctor", "-q"]]
    {
        let finished = here(words);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{words:?}: {finished:?}");
    }
    let called = here(&["call", "--hub", "a__echo", "message=hi"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "hi\n"), "{called:?}");
    let config = place.path();
    let elsewhere = ["call", "--hub", "a__echo", "message=hi", "--config", config.to_str().unwrap()];
    assert_eq!(crate::process::run(&elsewhere, "").stdout, "hi\n");
    // A call always names its target.
    assert_eq!(here(&["call"]).code, Some(2));
}

#[test]
fn tools_of_servers_that_are_still_starting_are_waited_for() {
    // Longer than a hub waits for the first lists of a server.
    let slow = format!("sleep 4; exec '{OWN_BINARY}' serve --stdio --no-config --builtin echo");
    let servers = [("slow", json!({ "command": "sh", "args": ["-c", slow] }))];
    let place = HubFolder::new("hub_starting", "mcp.json", &mcp_json(&servers));
    let (_running, _) = place.serve(&[]);
    let called = run_in(&["call", "--hub", "slow__echo", "message=hi"], &place.folder);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "hi\n"), "{called:?}");
    assert!(called.stderr.contains("waiting up to 15 s for `slow` to start\n"), "{called:?}");
    let listed = run_in(&["tools"], &place.folder);
    assert!(listed.stdout.starts_with("slow__echo(") && !listed.stderr.contains("waiting"), "{listed:?}");
}

#[test]
fn tools_of_a_hub_name_the_servers_without_tools() {
    let servers = [("a", builtin("echo")), ("dies", json!({ "command": "false" }))];
    let place = HubFolder::new("hub_unlisted", "mcp.json", &mcp_json(&servers));
    let (_running, _) = place.serve(&[]);
    let here = |words: &[&str]| run_in(words, &place.folder);
    let note = "no tools are listed yet of `dies` (failed); see `trunkline servers`\n";
    wait_until("the server has failed", || here(&["tools"]).stderr.ends_with(note).then_some(()));
    let unknown = here(&["call", "--hub", "dies__work"]);
    assert!(
        unknown.stderr.ends_with(&format!("error: unknown tool `dies__work`\nhint: {note}")),
        "{unknown:?}"
    );
    let quiet = here(&["tools", "-q"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
}

#[test]
fn hub_without_listed_servers_is_not_reported_as_a_server_without_tools() {
    let place =
        HubFolder::new("hub_none_listed", "mcp.json", &mcp_json(&[("dies", json!({ "command": "false" }))]));
    let (_running, _) = place.serve(&[]);
    let note = "no tools are listed yet of `dies` (failed); see `trunkline servers`\n";
    let listed = wait_until("the server has failed", || {
        let listed = run_in(&["tools"], &place.folder);
        listed.stderr.contains(note).then_some(listed)
    });
    assert!(listed.stderr.ends_with(note), "{listed:?}");
}

#[test]
fn verbose_server_list_has_capabilities_reasons_and_output() {
    let script = |rest: &str| json!({ "command": "sh", "args": ["-c", format!("echo one >&2; echo two >&2; {rest}")] });
    let working = script(&format!("exec '{OWN_BINARY}' serve --stdio --no-config --builtin time"));
    let servers = [("works", working), ("dies", script("exit 3"))];
    let place = HubFolder::new("hub_verbose", "mcp.json", &mcp_json(&servers));
    let (_running, address) = place.serve(&[]);
    assert!(tools(address).iter().any(|tool| tool == "works__now"));
    let listed = wait_until("both states are known", || {
        let listed = run_in(&["servers"], &place.folder).stdout;
        (listed.contains("ready") && listed.contains("failed")).then_some(listed)
    });
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(!listed.contains("\\n") && listed.contains("`sh` exited with code 3\n"), "{listed}");
    let verbose = run_in(&["servers", "-v"], &place.folder).stdout;
    for part in [
        "\nworks\n  capabilities  tools (listChanged), ",
        "\n  output        its standard error ended with:\n                  one\n                  two\n",
        "\ndies\n  reason        cannot connect to sh -c",
        "\n                its standard error ended with:\n                  one\n                  two\n",
    ] {
        assert!(verbose.contains(part), "{part:?} in\n{verbose}");
    }
}
