//! The programs behind a hub: which variables reach them, and what becomes of lines that are not the protocol.

use rustix::process::Signal;
use serde_json::json;

use super::*;

/// Calls a tool without arguments, with headers, and returns its text.
#[track_caller]
fn called(address: SocketAddr, tool: &str, headers: &[(&str, &str)]) -> String {
    let reply = post(address, &modern(1, "tools/call", call(tool, json!({}))), headers);
    let json = reply.json();
    json["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{json}")).to_owned()
}

#[test]
fn variables_of_the_caller_reach_commands_and_servers_that_name_them() {
    let show = |key: &str| {
        format!("[commands.show]\nargv = [\"sh\", \"-c\", \"echo m=$MODE\"]\n{key} = [\"MODE\"]\n")
    };
    let remote = HubFolder::new("caller_env_remote", "trunkline.toml", &show("caller_env"));
    let (remote_hub, remote_address) = remote.serve(&["--env", "MODE"]);
    let inner = file(&remote.folder, "inner.toml", &show("inherit"), 0o600);
    let server = |name: &str, key: &str| {
        format!(
            "[servers.{name}]\ncommand = \"{OWN_BINARY}\"\nargs = [\"serve\", \"--stdio\", \"--trust\", \"--config\", \
             \"{inner}\"]\n{key}\n"
        )
    };
    let text = format!(
        "{}{}{}[servers.remote]\nurl = \"http://{remote_address}/mcp\"\ncaller_env = [\"MODE\"]\n",
        show("caller_env").replace("[commands.show]", "[commands.named]")
            + &show("inherit").replace("[commands.show]", "[commands.other]"),
        server("named", "caller_env = [\"MODE\"]"),
        server("other", ""),
    );
    let hub = HubFolder::new("caller_env", "trunkline.toml", &text);
    let (running, address) = hub.serve(&["--env", "MODE"]);
    for (tool, expected) in [
        ("named", "m=u16"),
        ("other", "m="),
        ("named__show", "m=u16"),
        ("other__show", "m="),
        ("remote__show", "m=u16"),
    ] {
        assert_eq!(called(address, tool, &[("X-Env-MODE", "u16")]).trim(), expected, "{tool}");
        assert_eq!(called(address, tool, &[]).trim(), "m=", "{tool} of another caller");
    }
    // Each value has a connection of its own.
    assert_eq!(called(address, "named__show", &[("X-Env-MODE", "u32")]).trim(), "m=u32");
    assert_eq!(called(address, "named__show", &[("X-Env-MODE", "u16")]).trim(), "m=u16");
    for hub in [running, remote_hub] {
        hub.signal(Signal::TERM);
        assert_eq!(hub.wait().code, Some(0));
    }
    // Over pipes it is the variable of this process.
    let messages = crate::messages::lines(&[modern(1, "tools/call", call("named", json!({})))]);
    let config = hub.path();
    let words = ["serve", "--stdio", "--trust", "--env", "MODE", "--config", config.to_str().unwrap()];
    let piped = crate::process::run_with(&words, &[("MODE", "u8")], &messages);
    assert!(piped.stdout.contains("m=u8"), "{piped:?}");
}

#[test]
fn variables_of_one_caller_change_neither_lists_nor_availability_for_others() {
    let show = |more: &str| {
        format!("[commands.show]\nargv = [\"sh\", \"-c\", \"echo m=$MODE\"]\ninherit = [\"MODE\"]\n{more}")
    };
    let place = HubFolder::new("caller_env_isolated", "plain.toml", &show(""));
    let own = "[commands.own]\nargv = [\"sh\", \"-c\", \"echo own\"]\n";
    let with_variable = file(&place.folder, "with_variable.toml", &show(own), 0o600);
    let script = format!(
        "[ \"$MODE\" = bad ] && exit 9; [ -n \"$MODE\" ] && file={with_variable} || file={}; \
         exec {OWN_BINARY} serve --stdio --trust --config $file",
        place.path().display()
    );
    let text =
        format!("[servers.a]\ncommand = \"sh\"\nargs = [\"-c\", '''{script}''']\ncaller_env = [\"MODE\"]\n");
    file(&place.folder, "trunkline.toml", &text, 0o600);
    let hub = HubFolder { folder: place.folder.clone(), file: "trunkline.toml" };
    let (running, address) = hub.serve(&["--env", "MODE"]);
    let refused =
        post(address, &modern(1, "tools/call", call("a__show", json!({}))), &[("X-Env-MODE", "bad")]);
    assert!(refused.json()["result"]["content"][0]["text"] != "m=bad", "{}", refused.json());
    // Its failure is its own: no other caller waits for a backoff.
    assert_eq!(called(address, "a__show", &[]).trim(), "m=");
    assert_eq!(called(address, "a__show", &[("X-Env-MODE", "u16")]).trim(), "m=u16");
    for headers in [&[][..], &[("X-Env-MODE", "u16")]] {
        let listed = post(address, &modern(1, "tools/list", json!({})), headers).json().to_string();
        assert!(listed.contains("a__show") && !listed.contains("a__own"), "{listed}");
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn variables_of_the_table_env_reach_all_programs() {
    let show = "[commands.show]\nargv = [\"sh\", \"-c\", \"echo $ONE $TWO\"]\n";
    let place = HubFolder::new("shared_env", "inner.toml", &format!("{show}inherit = [\"ONE\", \"TWO\"]\n"));
    let inner = place.path();
    let text = format!(
        "[env]\nONE = \"1\"\nTWO = \"2\"\n\n{show}env = {{ TWO = \"own\" }}\n\n[servers.a]\ncommand = \"{OWN_BINARY}\"\n\
         args = [\"serve\", \"--stdio\", \"--trust\", \"--config\", \"{}\"]\nenv = {{ TWO = \"mine\" }}\n",
        inner.display()
    );
    file(&place.folder, "trunkline.toml", &text, 0o600);
    let hub = HubFolder { folder: place.folder.clone(), file: "trunkline.toml" };
    let (running, address) = hub.serve(&[]);
    assert_eq!(called(address, "show", &[]).trim(), "1 own");
    assert_eq!(called(address, "a__show", &[]).trim(), "1 mine");
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn stray_lines_of_a_server_are_logged_and_skipped() {
    let script =
        format!("echo Starting 'the server'; echo again; exec {OWN_BINARY} serve --stdio --no-config");
    let servers = [("noisy", json!({ "command": "sh", "args": ["-c", script] }))];
    let place = HubFolder::new("stray_lines", "mcp.json", &mcp_json(&servers));
    let (running, address) = place.serve(&["--log-level", "debug"]);
    assert_eq!(echoed(address, "noisy__echo", "hello"), "hello");
    running.signal(Signal::TERM);
    let log = running.wait().stderr;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("that is not JSON-RPC")).collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains("noisy")), "{log}");
    assert!(lines[0].contains("WARN") && lines[0].contains("Starting the server"), "{log}");
    assert!(lines[1].contains("DEBUG") && lines[1].contains("again"), "{log}");
}
