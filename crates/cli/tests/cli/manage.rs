//! `servers`, `add`, `remove`, `enable`, `disable`, `reconnect`: the file of a configuration, and the hub that runs from it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::bare_client::post;
use crate::messages::modern;
use crate::process::{FinishedCommand, RunningCommand, file, folder, run_at_home};

/// Runs a command in a folder, checks that it succeeds and returns its output.
#[track_caller]
fn run_ok(words: &[&str], here: &Path) -> String {
    let finished = run_at_home(words, here, &[]);
    assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
    finished.stdout + &finished.stderr
}

#[track_caller]
fn run_refused(words: &[&str], here: &Path, code: i32) -> String {
    let FinishedCommand { code: exit, stdout, stderr } = run_at_home(words, here, &[]);
    assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{words:?}: {stderr}");
    stderr
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn servers_are_added_switched_and_removed_in_a_file_that_is_made() {
    let here = folder("manage_file");
    let config = here.join("trunkline.toml");
    let text = || std::fs::read_to_string(&config).unwrap();
    let told = run_ok(&["add", "files", "--", "npx", "-y", "files", "${HOME}/x y", "--flag"], &here);
    assert_eq!(told, "added `files` to trunkline.toml; no hub is running from it\n");
    let url = "https://wiki.example.com/mcp";
    run_ok(&["add", "wiki", url, "--bearer", "env:WIKI", "--timeout", "30s", "--required"], &here);
    run_ok(&["add", "off", "--disabled", "--env", "A=env:B", "--env", "C", "--cwd", "sub", "--", "x"], &here);
    let files =
        "[servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\", \"${HOME}/x y\", \"--flag\"]\n";
    let wiki = "\n[servers.wiki]\nurl = \"https://wiki.example.com/mcp\"\n\
headers = { authorization = \"Bearer ${WIKI}\" }\nrequired = true\ntimeout = \"30s\"\n";
    let off = "\n[servers.off]\ncommand = \"x\"\nenv = { A = \"${B}\", C = \"${C}\" }\ncwd = \"sub\"\nenabled = false\n";
    assert_eq!(text(), format!("{files}{wiki}{off}"));
    assert_eq!(
        run_ok(&["enable", "off"], &here),
        "`off` is enabled in trunkline.toml; no hub is running from it\n"
    );
    assert!(run_ok(&["enable", "off"], &here).starts_with("`off` is already enabled"));
    assert!(text().ends_with("enabled = true\n"));
    assert_eq!(
        run_ok(&["remove", "off"], &here),
        "removed `off` from trunkline.toml; no hub is running from it\n"
    );
    assert_eq!(text(), format!("{files}{wiki}"));
    run_ok(&["add", "wiki", "wss://wiki.example.com/ws", "--replace"], &here);
    assert_eq!(text(), format!("{files}\n[servers.wiki]\nurl = \"wss://wiki.example.com/ws\"\n"));
}

#[test]
fn found_or_named_file_is_edited_and_keeps_the_rest() {
    let here = folder("manage_found");
    std::fs::create_dir(here.join(".vscode")).unwrap();
    let theirs = "{\n  // Mine.\n  \"servers\": {\n    \"a\": { \"command\": \"x\", \"odd\": [1] }\n  },\n  \"inputs\": []\n}\n";
    let found = file(&here, ".vscode/mcp.json", theirs, 0o644);
    let told = run_ok(&["add", "b", "https://h.example/mcp"], &here);
    assert!(told.starts_with("added `b` to .vscode/mcp.json"), "{told}");
    let text = std::fs::read_to_string(&found).unwrap();
    assert!(
        text.contains("// Mine.") && text.contains("\"odd\": [1]") && text.contains("\"inputs\": []"),
        "{text}"
    );
    let names: serde_json::Value =
        serde_json::from_str(&run_ok(&["servers", "--json"], &here).replace("no hub", "")).unwrap();
    assert_eq!(names["servers"][1]["reach"], "https://h.example/mcp", "{names}");
    run_ok(&["remove", "b"], &here);
    assert_eq!(std::fs::read_to_string(&found).unwrap(), theirs);
    // One that is named comes first, and is made if it is not there.
    run_ok(&["add", "b", "--config", "sub/other.toml", "--", "y"], &here);
    assert_eq!(
        std::fs::read_to_string(here.join("sub/other.toml")).unwrap(),
        "[servers.b]\ncommand = \"y\"\n"
    );
    assert_eq!(std::fs::read_to_string(&found).unwrap(), theirs);
}

#[test]
fn servers_are_listed_without_starting_any() {
    let here = folder("manage_list");
    let toml = "[servers.a]\ncommand = \"run\"\nargs = [\"--token\", \"canary-canary\"]\n\
[servers.b]\nurl = \"https://h.example/mcp?key=${KEY}\"\nenabled = false\n[servers.c]\ncomand = \"x\"\n";
    file(&here, "trunkline.toml", toml, 0o600);
    let FinishedCommand { code, stdout, stderr } = run_at_home(&["servers"], &here, &[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "no hub is running from trunkline.toml; start one with `trunkline serve`\n");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["NAME", "STATE", "TARGET", "REASON"],
        "{stdout}"
    );
    assert!(lines[1].starts_with("a     enabled   run --token …"), "{stdout}");
    assert!(lines[2].starts_with("b     disabled  https://h.example/mcp?…"), "{stdout}");
    assert!(lines[3].starts_with("c     invalid"), "{stdout}");
    assert!(!stdout.contains("canary"), "{stdout}");
    let json: serde_json::Value =
        serde_json::from_str(&run_at_home(&["servers", "--json"], &here, &[]).stdout).unwrap();
    assert_eq!((&json["file"], &json["hub"]), (&"trunkline.toml".into(), &serde_json::Value::Null));
    let reason = json["servers"][2]["reason"].as_str().unwrap();
    assert!(reason.contains("did you mean `command`?"), "{reason}");
}

#[test]
fn management_errors_have_hints() {
    let here = folder("manage_refusals");
    let nothing = run_refused(&["servers"], &here, 3);
    assert!(
        nothing.contains("no trunkline.toml or mcp.json") && nothing.contains("`trunkline add`"),
        "{nothing}"
    );
    assert!(run_refused(&["remove", "x"], &here, 3).contains("no trunkline.toml or mcp.json"));
    let toml = "[servers.github]\ncommand = \"x\"\n";
    file(&here, "trunkline.toml", toml, 0o644);
    for (words, code, told) in [
        (&["remove", "githab"][..], 3, "has no server `githab`; did you mean `github`?"),
        (&["enable", "githab"], 3, "did you mean `github`?"),
        (&["disable", "zzz"], 3, "it has `github`"),
        (
            &["reconnect", "github"],
            4,
            "no hub is running from trunkline.toml\nhint: start one with `trunkline serve`",
        ),
        (&["add", "github", "--", "y"], 3, "a server `github` already exists\nhint: use `--replace`"),
        (&["add"], 2, "missing argument: NAME"),
        (&["add", "x"], 2, "missing URL or command for `x`"),
        (&["add", "x", "y"], 2, "`y` is not a URL\nhint: put a command after --: `trunkline add x -- y`"),
        (
            &["add", "x", "h.example"],
            2,
            "did you mean `https://h.example/mcp`? A command goes after --: `trunkline add x -- h.example`",
        ),
        (&["add", "x", "localhost:7411"], 2, "did you mean `http://localhost:7411/mcp`?"),
        (&["add", "x", "https://h", "y"], 2, "unexpected argument `y`"),
        (&["add", "x", "ftp://h"], 2, "`ftp://h`"),
        (&["add", "x", "https://h", "--env", "A=b"], 2, "variables and folders apply only to a program"),
        (&["add", "x", "--header", "A:b", "--", "y"], 2, "headers and transports apply only to a server"),
        (&["add", "x", "https://h", "--bearer", "@token"], 2, "can refer to variables but not to files"),
        (&["add", "x", "--", "${"], 3, "server `x`, key `command`: `${` is not closed"),
        (&["add", " x", "--", "y"], 2, "1 to 64 characters"),
        (&["add", "x", "--transport", "carrier-pigeon", "https://h"], 2, "expected http, sse or websocket"),
    ] {
        let stderr = run_refused(words, &here, code);
        assert!(stderr.contains(told), "{words:?}: {stderr}");
    }
    let json = run_refused(&["remove", "githab", "--json"], &here, 3);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["exit"], 3, "{json}");
    assert_eq!(std::fs::read_to_string(here.join("trunkline.toml")).unwrap(), toml, "nothing was changed");
}

#[test]
fn list_of_a_file_without_servers_names_the_key_that_was_meant() {
    let here = folder("manage_misspelled");
    for (name, text, problem) in [
        ("mcp.json", r#"{"mcpServer":{}}"#, "`mcpServer` is not a known key; did you mean `mcpServers`?"),
        (
            "x.yaml",
            r#"{"context_servers":{"a":{"command":"x"}}}"#,
            "is a file of Zed, in JSON and not in YAML",
        ),
    ] {
        file(&here, name, text, 0o600);
        let refused = run_refused(&["servers", "--config", name], &here, 3);
        assert!(refused.contains(problem), "{refused}");
    }
    file(&here, "mcp.json", r#"{"mcpServers":{}}"#, 0o600);
    let listed = run_ok(&["servers", "--config", "mcp.json"], &here);
    assert!(listed.contains("no servers; add one with `trunkline add`"), "{listed}");
}

#[test]
fn add_writes_secrets_only_to_files_that_other_users_cannot_read() {
    let here = folder("manage_secrets");
    let config = here.join("trunkline.toml");
    let secret = ["add", "a", "https://h.example/mcp", "--header", "X-Api-Key: canary-canary"];
    let told = run_ok(&secret, &here);
    assert!(!told.contains("canary"), "{told}");
    assert_eq!(mode(&config), 0o600);
    assert!(std::fs::read_to_string(&config).unwrap().contains("canary-canary"));
    std::fs::write(&config, "").unwrap();
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    let told = run_refused(&secret, &here, 3);
    assert!(
        told.contains("header x-api-key would be written to trunkline.toml, which other users can read"),
        "{told}"
    );
    assert!(told.contains("chmod 600 trunkline.toml") && !told.contains("canary"), "{told}");
    run_ok(&["add", "a", "https://h.example/mcp", "--header", "X-Api-Key: env:KEY"], &here);
    assert_eq!(mode(&config), 0o644);
}

/// Runs a command next to a hub in the same folder, checks that it succeeds and returns its output.
#[track_caller]
fn run_beside_hub(words: &[&str], here: &Path) -> String {
    let finished = run_at_home(words, here, &[("XDG_RUNTIME_DIR", here.to_str().unwrap())]);
    assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
    finished.stdout + &finished.stderr
}

#[track_caller]
fn run_refused_beside_hub(words: &[&str], here: &Path) -> (Option<i32>, String) {
    let finished = run_at_home(words, here, &[("XDG_RUNTIME_DIR", here.to_str().unwrap())]);
    assert_eq!(finished.stdout, "", "{words:?}: {finished:?}");
    (finished.code, finished.stderr)
}

/// The state of a server, as the hub reports it.
#[track_caller]
fn server_state(here: &Path, server: &str) -> serde_json::Value {
    let told = run_beside_hub(&["servers", "--json"], here);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let servers = told["servers"].as_array().unwrap();
    servers.iter().find(|known| known["name"] == server).cloned().unwrap_or_default()
}

#[test]
fn management_commands_update_the_running_hub() {
    let here = folder("manage_hub");
    let ourselves = env!("CARGO_BIN_EXE_trunkline");
    let toml = format!(
        "# Ours.\n[servers.say]\ncommand = {ourselves:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n"
    );
    file(&here, "trunkline.toml", &toml, 0o600);
    let address = here.join("address");
    let words = ["serve", "--trust", "--http", "127.0.0.1:0", "--port-file", address.to_str().unwrap()];
    let mut running =
        RunningCommand::start_at_home(&words, &here, &[("XDG_RUNTIME_DIR", here.to_str().unwrap())]);
    running.wait_for("listening on");
    let address = std::fs::read_to_string(address).unwrap().trim_end().parse().unwrap();
    let tools = || -> Vec<String> {
        let listed = post(address, &modern(1, "tools/list", json!({})), &[]).json();
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let has = |name: &str| tools().iter().any(|tool| tool == name);
    assert!(has("say__echo"));

    // The tools of an added server are available at once, since the command waits for its lists.
    let clock = ["--", ourselves, "serve", "--stdio", "--no-config", "--builtin", "time"];
    let told = run_beside_hub(&[&["add", "clock"], &clock[..]].concat(), &here);
    assert_eq!(told, "added `clock` to trunkline.toml; the running hub has it: ready, 2 tools\n");
    assert!(has("clock__now") && has("say__echo"));
    let listed = run_beside_hub(&["servers"], &here);
    assert!(listed.contains(&format!("serves http://{address}/mcp\n")), "{listed}");
    let row = |name: &str| {
        let line = listed.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("say"), ["say", "ready", "1"], "{listed}");
    assert_eq!(row("clock"), ["clock", "ready", "2"], "{listed}");
    let more = run_beside_hub(&["servers", "-v"], &here);
    assert!(more.contains("2026-07-28") && more.contains("trunkline 0."), "{more}");

    // Switched off and on: the connection is the same.
    let before = server_state(&here, "clock");
    let told = run_beside_hub(&["disable", "clock"], &here);
    assert_eq!(told, "`clock` is disabled in trunkline.toml; the running hub now has it disabled\n");
    assert!(!has("clock__now") && has("say__echo"));
    assert_eq!(server_state(&here, "clock")["connections"], before["connections"]);
    let told = run_beside_hub(&["enable", "clock"], &here);
    assert_eq!(told, "`clock` is enabled in trunkline.toml; the running hub has it: ready, 2 tools\n");
    assert!(has("clock__now"));
    assert_eq!(server_state(&here, "clock")["starts"], before["starts"]);

    // Connected anew.
    assert_eq!(run_beside_hub(&["reconnect", "clock"], &here), "reconnected `clock`: ready, 2 tools\n");
    assert_eq!(
        server_state(&here, "clock")["starts"].as_u64(),
        before["starts"].as_u64().map(|starts| starts + 1)
    );
    let (code, told) = run_refused_beside_hub(&["reconnect", "clok"], &here);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("the running hub has no server `clok`\nhint: did you mean `clock`?"), "{told}");

    // A server that cannot be started is reported as such, affects no other server, and can be removed.
    let told = run_beside_hub(&["add", "gone", "--", "/no/such/program"], &here);
    assert!(told.contains("the running hub has it: failed: ") && told.contains("/no/such/program"), "{told}");
    let (code, told) = run_refused_beside_hub(&["reconnect", "gone"], &here);
    assert_eq!(code, Some(4), "{told}");
    assert!(run_beside_hub(&["servers"], &here).contains("was not found"));
    let told = run_beside_hub(&["remove", "gone"], &here);
    assert_eq!(told, "removed `gone` from trunkline.toml; the running hub no longer has it\n");
    let json = run_beside_hub(&["remove", "clock", "--json"], &here);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["done"], &json["hub"]["state"]), (&json!("removed"), &json!("removed")));
    assert_eq!(tools().iter().filter(|tool| tool.starts_with("clock")).count(), 0);
    assert_eq!(std::fs::read_to_string(here.join("trunkline.toml")).unwrap(), toml);

    // The hub rejects a file with an error elsewhere as a whole, and the command reports that.
    file(&here, "trunkline.toml", &format!("{toml}[commands.odd]\nargs = \"x\"\n"), 0o600);
    let (code, told) = run_refused_beside_hub(&["disable", "say"], &here);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("did you mean `argv`?") && told.contains("the running hub was not"), "{told}");
    assert!(has("say__echo"));
}

#[test]
fn admin_socket_option_finds_the_hub() {
    let here = folder("manage_socket");
    let toml = format!(
        "[servers.say]\ncommand = {:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\"]\n",
        env!("CARGO_BIN_EXE_trunkline")
    );
    file(&here, "trunkline.toml", &toml, 0o600);
    let socket = here.join("s");
    let socket = socket.to_str().unwrap();
    let none = run_at_home(&["servers", "--admin-socket", socket], &here, &[]);
    assert_eq!(none.code, Some(4), "{none:?}");
    assert!(none.stderr.contains("no hub is listening on"), "{none:?}");
    let mut running = RunningCommand::start_at_home(
        &["serve", "--trust", "--http", ":0", "--admin-socket", socket],
        &here,
        &[],
    );
    running.wait_for("listening on");
    let told = run_ok(&["disable", "say", "--admin-socket", socket], &here);
    assert!(told.contains("the running hub now has it disabled"), "{told}");
    assert!(run_ok(&["servers", "--admin-socket", socket], &here).contains("hub "));
}
