//! Files that are not served.

use super::*;
use crate::process::run_in;

#[test]
fn invalid_or_writable_config_exits_with_3() {
    let good = mcp_json(&[("a", builtin("echo"))]);
    for (text, mode, parts) in [
        (&*good, 0o622, &["is writable by other users", "chmod go-w"][..]),
        (&*good, 0o602, &["is writable by other users"]),
        ("{", 0o600, &["mcp.json:1:"]),
        (r#"{"mcpServers":{"a":{"command":"x"}},"servers":{"a":{"command":"y"}}}"#, 0o600, &["server `a`"]),
    ] {
        let folder = folder("hub_wrong");
        file(&folder, "mcp.json", text, mode);
        for how in [&["serve", "--http", ":0"][..], &["serve", "--stdio"]] {
            let finished = run_in(how, &folder);
            assert_eq!(finished.code, Some(3), "{finished:?}");
            for part in parts {
                assert!(finished.stderr.contains(part), "no `{part}` in {}", finished.stderr);
            }
        }
        let without = run_in(&["serve", "--stdio", "--no-config"], &folder);
        assert_eq!(without.code, Some(0), "{without:?}");
    }
}

#[test]
fn unknown_table_does_not_hide_the_mistakes_of_other_tables() {
    let folder = folder("hub_unknown_table");
    let text = "[polcy]\n[servers.a]\ncomand = 'x'\n[commands.c]\nargv = ['true']\ntimeout = 5\n[store]\nplace = 'x'\n";
    file(&folder, "trunkline.toml", text, 0o600);
    let finished = run_in(&["serve", "--http", ":0"], &folder);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    for place in [
        ":1:2: key `polcy`",
        ":3:1: server `a`",
        ":6:11: key `commands.c.timeout`",
        ":8:1: key `store.place`",
    ] {
        assert_eq!(finished.stderr.matches(place).count(), 1, "{place} in {}", finished.stderr);
    }
}

#[test]
fn hub_listed_in_its_own_config_does_not_start_itself() {
    let ourselves = json!({ "command": OWN_BINARY, "args": ["serve", "--stdio"] });
    let place =
        HubFolder::new("hub_itself", "mcp.json", &mcp_json(&[("a", builtin("echo")), ("me", ourselves)]));
    let (_running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
    let (_, ready) = readiness(address);
    let reason = ready["servers"]["me"]["reason"].as_str().unwrap();
    assert!(reason.contains("was started by itself"), "{reason}");
}

#[test]
fn bridge_that_leads_back_to_the_hub_is_not_served() {
    let own = ("a", builtin("echo"));
    let place = HubFolder::new("hub_circle", "mcp.json", &mcp_json(std::slice::from_ref(&own)));
    let (mut running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
    let mirror = json!({ "command": OWN_BINARY, "args": ["bridge", format!("http://{address}/mcp")] });
    place.write(&mcp_json(&[own, ("mirror", mirror)]));
    running.wait_for("lead back to this hub");
    running.wait_for("reloaded ");
    let offered = tools(address);
    assert!(!offered.iter().any(|name| name.starts_with("mirror")), "{offered:?}");
    assert_eq!(echoed(address, "a__echo", "still"), "still");
}

#[test]
fn disabled_server_may_use_an_unset_variable() {
    let off = json!({ "command": "${UNSET_VARIABLE}", "disabled": true });
    let place = HubFolder::new("hub_lacking", "mcp.json", &mcp_json(&[("a", builtin("echo")), ("off", off)]));
    let (_running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
}

/// A file with one server that works, and one of each kind that does not.
fn partly_invalid(required: bool) -> String {
    mcp_json(&[
        ("a", builtin("echo")),
        ("address", json!({ "url": "ftp://x" })),
        ("entry", json!(3)),
        ("unset", json!({ "command": "${UNSET_VARIABLE}", "args": ["x"], "required": required })),
        (&"n".repeat(65), builtin("time")),
        ("this hub", builtin("time")),
    ])
}

#[test]
fn invalid_server_is_unavailable_alone_with_its_reason() {
    let place = HubFolder::new("hub_partly_invalid", "mcp.json", &partly_invalid(false));
    let socket = place.socket();
    let (mut running, address) = place.serve(&["--admin-socket", socket.to_str().unwrap()]);
    running.wait_for_whole("1 server from ./mcp.json (5 unavailable)");
    running.wait_for_whole("UNSET_VARIABLE");
    assert_eq!(tools(address), ["a__echo"]);
    assert_eq!(echoed(address, "a__echo", "works"), "works");
    let unknown = called(address, "unset__echo", json!({ "message": "x" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let (status, ready) = readiness(address);
    assert_eq!((status, &ready["servers"]["unset"]["state"]), (200, &json!("invalid")), "{ready}");

    let admin = ["--admin-socket", socket.to_str().unwrap()];
    let listed = run_in(&[&["servers", "--json"][..], &admin].concat(), &place.folder);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let servers = listed["servers"].as_array().unwrap();
    let states: Vec<_> = servers.iter().map(|server| server["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ready", "invalid", "invalid", "invalid", "invalid", "invalid"], "{listed}");
    for (index, reason) in [
        (1, "server `address`, key `url`"),
        (2, "server `entry`"),
        (3, "1 to 64 characters"),
        (4, "is reserved"),
        (5, "environment variable `UNSET_VARIABLE` is not set"),
    ] {
        assert!(servers[index]["reason"].as_str().unwrap().contains(reason), "{reason}: {listed}");
    }
    assert_eq!(servers[5]["reach"], "${UNSET_VARIABLE} x");
    let shown = run_in(&[&["servers"][..], &admin].concat(), &place.folder);
    assert!(shown.stdout.contains("UNSET_VARIABLE` is not set"), "{shown:?}");
    for command in ["reconnect", "enable"] {
        let refused = run_in(&[&[command, "unset"][..], &admin].concat(), &place.folder);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("UNSET_VARIABLE"), "{refused:?}");
    }
}

#[test]
fn commands_that_name_an_invalid_server_exit_with_3_and_the_reason() {
    let place = HubFolder::new("hub_named_invalid", "mcp.json", &partly_invalid(false));
    for words in [&["tools", "unset"][..], &["call", "unset", "echo"], &["doctor", "unset"]] {
        let finished = run_in(words, &place.folder);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stderr.contains("UNSET_VARIABLE"), "{finished:?}");
    }
    let report = run_in(&["doctor", "unset"], &place.folder).stdout;
    assert!(report.starts_with("problem  configuration") && report.contains("UNSET_VARIABLE"), "{report}");
    let listed = run_in(&["servers", "--json"], &place.folder);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["hub"], Value::Null, "no hub runs from the file");
    let unset = &listed["servers"][5];
    assert_eq!((&unset["name"], &unset["state"]), (&json!("unset"), &json!("invalid")), "{listed}");
    assert!(unset["reason"].as_str().unwrap().contains("UNSET_VARIABLE"), "{listed}");
}

#[test]
fn required_invalid_server_makes_the_hub_unready() {
    let place = HubFolder::new("hub_required_invalid", "mcp.json", &partly_invalid(true));
    let (_running, address) = place.serve(&[]);
    let (status, ready) = readiness(address);
    assert_eq!(status, 503, "{ready}");
    let reason = ready["reason"].as_str().unwrap();
    assert!(reason.starts_with("required server `unset`: ") && reason.contains("UNSET_VARIABLE"), "{reason}");
}

#[test]
fn server_that_becomes_invalid_on_reload_is_unavailable_alone() {
    let place = HubFolder::new(
        "hub_invalid_reload",
        "mcp.json",
        &mcp_json(&[("a", builtin("echo")), ("b", builtin("time"))]),
    );
    let (mut running, address) = place.serve(&[]);
    assert_eq!(tools(address).len(), 5);
    let same = wait_until("the server runs", || process_with(running.id(), "--builtin echo"));
    place.write(&mcp_json(&[("a", builtin("echo")), ("b", json!({ "command": "${UNSET_VARIABLE}" }))]));
    let logged = running.wait_for("unavailable: ");
    assert!(logged.contains("mcp.json:1:") && logged.contains("UNSET_VARIABLE"), "{logged}");
    let reloaded = running.wait_for("reloaded ");
    assert!(reloaded.contains("removed `b`; unavailable `b`"), "{reloaded}");
    assert_eq!(tools(address), ["a__echo"]);
    assert_eq!(process_with(running.id(), "--builtin echo"), Some(same), "it is the same process");
    place.write(&mcp_json(&[("a", builtin("echo")), ("b", builtin("time"))]));
    running.wait_for("added `b`");
    assert_eq!(tools(address).len(), 5);
}

#[test]
fn unset_variable_of_env_or_a_command_makes_only_its_users_unavailable() {
    let program = |name: &str, more: &str| {
        format!(
            "[servers.{name}]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n{more}"
        )
    };
    let command =
        |name: &str, more: &str| format!("[commands.{name}]\nargv = [\"printf\", \"{name}\"]\n{more}");
    let own = "env = { A = \"1\" }\n";
    let text = [
        "[env]\nA = \"${UNSET_VARIABLE}\"\n".to_owned(),
        program("gets", ""),
        program("sets", own),
        command("inherits", ""),
        command("works", own),
        command("uses", "env = { A = \"1\", B = \"${UNSET_OTHER}\" }\n"),
    ];
    let place = HubFolder::new("hub_unset_env", "trunkline.toml", &text.concat());
    let (mut running, address) = place.serve(&[]);
    for part in ["UNSET_VARIABLE", "command=\"inherits\"", "command=\"uses\"", "UNSET_OTHER"] {
        running.wait_for_whole(part);
    }
    assert_eq!(tools(address), ["sets__echo", "works"]);
    assert_eq!(echoed(address, "sets__echo", "works"), "works");
    assert_eq!(readiness(address).1["servers"]["gets"]["state"], "invalid");
    assert_eq!(run_in(&["run", "works"], &place.folder).stdout, "works");
    let unavailable = run_in(&["run", "uses"], &place.folder);
    assert_eq!(unavailable.code, Some(3), "{unavailable:?}");
    assert!(unavailable.stderr.contains("UNSET_OTHER"), "{unavailable:?}");
}
