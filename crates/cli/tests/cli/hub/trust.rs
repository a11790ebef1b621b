//! Files that came with a folder start nothing before the user trusts them.

use super::*;
use crate::client::PseudoTerminal;
use crate::process::{FinishedCommand, run_at_home};

/// A server that leaves a file behind when it is started.
fn leaves_trace(trace: &Path) -> Value {
    let script =
        format!("touch '{}'; exec '{OWN_BINARY}' serve --stdio --no-config --builtin echo", trace.display());
    json!({ "command": "sh", "args": ["-c", script], "env": { "SETTING": "canary-value" }, "cwd": "." })
}

/// Serves over pipes to the end of the input, without a terminal.
#[track_caller]
fn serve_stdio(place: &HubFolder, args: &[&str]) -> FinishedCommand {
    let mut running =
        RunningCommand::start_at_home(&[&["serve", "--stdio"][..], args].concat(), &place.folder, &[]);
    running.write(&format!("{}\n", modern(1, "tools/list", json!({}))));
    running.finish()
}

fn at_home(place: &HubFolder, words: &[&str]) -> FinishedCommand {
    run_at_home(words, &place.folder, &[])
}

/// Starts a hub that listens, in a folder that is also the home folder.
#[track_caller]
fn serve_at_home(place: &HubFolder, args: &[&str]) -> (RunningCommand, SocketAddr) {
    let port_file = place.folder.join("address");
    let fixed = ["serve", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
    let mut running = RunningCommand::start_at_home(&[&fixed[..], args].concat(), &place.folder, &[]);
    running.wait_for("listening on http://127.0.0.1:");
    let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
    (running, address)
}

#[test]
fn untrusted_config_exits_with_3_without_a_terminal_and_starts_nothing() {
    for name in ["mcp.json", ".mcp.json"] {
        let place = HubFolder::new("trust_pipes", name, "{}");
        let trace = place.folder.join("trace");
        place.write(&mcp_json(&[("a", leaves_trace(&trace))]));
        for args in [&[][..], &["--config", place.path().to_str().unwrap()]] {
            let refused = serve_stdio(&place, args);
            assert_eq!((refused.code, &*refused.stdout), (Some(3), ""), "{refused:?}");
            assert!(refused.stderr.contains("is not trusted yet; it would use `a`"), "{refused:?}");
            assert!(refused.stderr.contains("trunkline trust") && refused.stderr.contains("--trust"));
        }
        assert!(!trace.exists(), "nothing was started");

        let granted = serve_stdio(&place, &["--trust"]);
        assert_eq!(granted.code, Some(0), "{granted:?}");
        assert!(granted.stdout.contains("a__echo") && trace.exists(), "{granted:?}");
        assert_eq!(serve_stdio(&place, &[]).code, Some(3), "the option holds for one run");

        let trusted = at_home(&place, &["trust"]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
        let shown = ["a  sh -c", "environment: SETTING", "folder: ."];
        assert!(shown.iter().all(|part| trusted.stderr.contains(part)), "{trusted:?}");
        assert!(!trusted.stderr.contains("canary-value"), "{trusted:?}");
        assert_eq!(serve_stdio(&place, &[]).code, Some(0), "it is remembered");
        // The same by another path is the same file.
        let absolute = place.path();
        assert_eq!(serve_stdio(&place, &["--config", absolute.to_str().unwrap()]).code, Some(0));

        // A comment or a timeout is not a command; another argument is.
        let mut changed = leaves_trace(&trace);
        changed["timeout"] = json!("3s");
        place.write(&mcp_json(&[("a", changed.clone())]));
        assert_eq!(serve_stdio(&place, &[]).code, Some(0));
        changed["env"]["SETTING"] = json!("other");
        place.write(&mcp_json(&[("a", changed)]));
        assert_eq!(serve_stdio(&place, &[]).code, Some(3));

        assert_eq!(at_home(&place, &["trust"]).code, Some(0));
        assert_eq!(at_home(&place, &["trust", "--revoke"]).code, Some(0));
        assert_eq!(serve_stdio(&place, &[]).code, Some(3), "it is revoked");
    }
}

#[test]
fn config_without_commands_needs_no_trust() {
    for (text, code) in [
        (mcp_json(&[]), Some(0)),
        (mcp_json(&[("a", json!({ "url": "http://127.0.0.1:1/mcp" }))]), Some(0)),
        // One that sends variables elsewhere does.
        (
            mcp_json(&[("a", json!({ "url": "http://127.0.0.1:1/mcp", "headers": { "x": "${HOME}" } }))]),
            Some(3),
        ),
        (mcp_json(&[("a", json!({ "url": "http://127.0.0.1:1/${HOME}" }))]), Some(3)),
        (mcp_json(&[("a", json!({ "command": "x", "disabled": true }))]), Some(0)),
    ] {
        let place = HubFolder::new("trust_urls", "mcp.json", &text);
        let finished = at_home(&place, &["serve", "--stdio"]);
        assert_eq!(finished.code, code, "{text}: {finished:?}");
    }
    let place = HubFolder::new("trust_commands", "trunkline.toml", "[commands.log]\nargv = [\"git\"]\n");
    assert_eq!(at_home(&place, &["serve", "--stdio"]).code, Some(3), "clients could run the command");
}

#[test]
fn settings_of_an_untrusted_file_write_and_read_nothing() {
    let outside = folder("trust_settings_outside");
    let (target, port) = (outside.join("target"), outside.join("port"));
    let path = target.to_str().unwrap();
    for (name, table, shown) in [
        ("audit", format!("[audit]\nfile = {path:?}\narguments = true\n"), "writes a line for each call to"),
        ("store", format!("[store]\nlocation = \"file:{path}\"\n"), "stores sessions in"),
        ("vault", format!("[vault]\nfile = {path:?}\n"), "stores logins in"),
        ("manifests", format!("[manifests]\nfiles = [\"*\"]\ndirectory = {path:?}\n"), "serves the files"),
        (
            "telemetry",
            format!("[telemetry]\nendpoint = \"http://127.0.0.1:9\"\nca = {path:?}\n"),
            "sends names and times of calls to http://127.0.0.1:9",
        ),
        ("auth", format!("[auth]\ntokens = {path:?}\n"), "admits callers with the tokens in"),
        (
            "serve",
            "[serve]\nnames = \"{server}${PART:-_}_{tool}\"\n".to_owned(),
            "environment variables: PART",
        ),
    ] {
        let place = HubFolder::new(&format!("trust_settings_{name}"), "trunkline.toml", &table);
        for transport in [&["--stdio"][..], &["--http", "127.0.0.1:0", "--port-file", port.to_str().unwrap()]]
        {
            let refused = at_home(&place, &[&["serve"], transport].concat());
            assert_eq!(refused.code, Some(3), "{name}: {refused:?}");
            let asked = format!("is not trusted yet; it would use `[{name}]`");
            assert!(refused.stderr.contains(&asked), "{name}: {refused:?}");
        }
        assert!(!target.exists(), "{name}");
        let trusted = at_home(&place, &["trust"]);
        assert!(trusted.stderr.contains(shown), "{name}: {trusted:?}");
        assert!(name == "serve" || trusted.stderr.contains(path), "{name}: {trusted:?}");
    }
    let place = HubFolder::new("trust_audit", "trunkline.toml", &format!("[audit]\nfile = {path:?}\n"));
    file(&outside, "target", "# mine\n", 0o666);
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    let refused = serve_stdio(&place, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("other users can write to it"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "# mine\n");
    file(&outside, "target", "# mine\n", 0o600);
    assert_eq!(serve_stdio(&place, &[]).code, Some(0));
    assert!(std::fs::read_to_string(&target).unwrap().contains("tools/list"), "it is trusted now");
}

#[test]
fn running_hub_keeps_its_settings_until_changed_ones_are_trusted() {
    let command = "[commands.one]\nargv = [\"printf\", \"1\"]\n";
    let place = HubFolder::new("trust_setting_reload", "trunkline.toml", command);
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    let (mut running, address) = serve_at_home(&place, &[]);
    let outside = folder("trust_setting_reload_outside");
    file(&outside, "secret.txt", "outside", 0o600);
    place.write(&format!("{command}[manifests]\nfiles = [\"*.txt\"]\ndirectory = {outside:?}\n"));
    running.wait_for("not trusted and without effect: new or changed [manifests]");
    running.wait_for("reloaded ");
    let resources = || post(address, &modern(1, "resources/list", json!({})), &[]).body;
    assert!(!resources().contains("secret.txt"), "{}", resources());
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    wait_until("the manifests are served", || resources().contains("secret.txt").then_some(()));
}

#[test]
fn config_in_the_users_own_settings_needs_no_trust() {
    let place = HubFolder::new("trust_own", "mcp.json", "{}");
    let settings = place.folder.join(".config/trunkline");
    std::fs::create_dir_all(&settings).unwrap();
    let own = file(&settings, "mcp.json", &mcp_json(&[("a", builtin("echo"))]), 0o600);
    let finished = at_home(&place, &["serve", "--stdio", "--config", &own]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn terminal_asks_once_for_trust_with_every_command_line() {
    let place = HubFolder::new("trust_terminal", "mcp.json", "{}");
    let trace = place.folder.join("trace");
    place.write(&mcp_json(&[("a", leaves_trace(&trace)), ("b\u{1b}[2J", json!({ "command": "b" }))]));
    let config = place.path();
    let words = ["serve", "--http", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    let words = words.map(str::to_owned);
    let state = place.folder.join("state");
    let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];

    let mut declined = PseudoTerminal::start(&words, 200, &variables);
    declined.answer("[y/N]", "n");
    let (code, seen) = declined.finish();
    assert_eq!(code, Some(3), "{seen}");
    for part in ["is not trusted yet", "sh -c", "environment: SETTING", "folder: .", "nothing was started"] {
        assert!(seen.contains(part), "no `{part}` in {seen}");
    }
    assert!(!seen.contains("canary-value"), "{seen}");
    assert!(!trace.exists());

    let mut accepted = PseudoTerminal::start(&words, 200, &variables);
    accepted.answer("[y/N]", "y");
    accepted.wait_for("listening on");
    accepted.type_keys("\x03");
    assert_eq!(accepted.finish().0, Some(0));
    let mut again = PseudoTerminal::start(&words, 200, &variables);
    again.wait_for("listening on");
    again.type_keys("\x03");
    let (code, seen) = again.finish();
    assert_eq!(code, Some(0));
    assert!(!seen.contains("[y/N]"), "{seen}");
}

#[test]
fn commands_of_the_user_are_trusted_and_the_rest_of_the_file_is_not() {
    let place = HubFolder::new("trust_added", "mcp.json", "{}");
    let add = ["add", "mine", "--", OWN_BINARY, "serve", "--stdio", "--no-config"];
    assert_eq!(at_home(&place, &add).code, Some(0));
    assert_eq!(serve_stdio(&place, &[]).code, Some(0), "the user typed it");

    place.write(&mcp_json(&[("theirs", builtin("time"))]));
    assert_eq!(at_home(&place, &add).code, Some(0));
    let refused = serve_stdio(&place, &[]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("`theirs`") && !refused.stderr.contains("`mine`"), "{refused:?}");

    let installed = at_home(&place, &["install", "cursor"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert!(installed.stderr.contains("theirs  ") && !installed.stderr.contains("mine  "), "{installed:?}");
    assert_eq!(serve_stdio(&place, &[]).code, Some(0), "the client starts it without a terminal");

    let home = HubFolder::new("trust_imported", ".claude.json", "{}");
    home.write(&mcp_json(&[("found", leaves_trace(&home.folder.join("trace")))]));
    assert_eq!(at_home(&home, &["import", "--all"]).code, Some(0));
    let served = serve_stdio(&home, &["--config", "trunkline.toml"]);
    assert_eq!(served.code, Some(0), "{served:?}");
    assert!(served.stdout.contains("found__echo"), "{served:?}");
}

#[test]
fn running_hub_ignores_untrusted_commands_until_they_are_trusted() {
    let place = HubFolder::new("trust_reload", "mcp.json", "{}");
    let trace = place.folder.join("trace");
    let (a, url) = (("a", builtin("echo")), ("url", json!({ "url": "http://127.0.0.1:1/mcp" })));
    place.write(&mcp_json(&[a.clone(), ("b", builtin("time"))]));
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    let (mut running, address) = serve_at_home(&place, &[]);
    assert_eq!(tools(address).len(), 5);

    let mut other_b = leaves_trace(&trace);
    other_b["disabledTools"] = json!([]);
    place.write(&mcp_json(&[a.clone(), ("b", other_b), ("c", leaves_trace(&trace)), url]));
    let logged = running.wait_for("its changed command is not trusted");
    assert!(logged.contains("trunkline trust") && logged.contains("server=\"b\""), "{logged}");
    let logged = running.wait_for("unavailable: not trusted");
    assert!(logged.contains("trunkline trust") && logged.contains("server=\"c\""), "{logged}");
    let reloaded = running.wait_for("reloaded ");
    assert!(reloaded.contains("added `url`") && reloaded.contains("unavailable `c`"), "{reloaded}");
    let listed = tools(address);
    assert!(listed.contains(&"b__now".to_owned()), "the previous `b` goes on: {listed:?}");
    assert!(!listed.iter().any(|tool| tool.starts_with("c__")), "{listed:?}");
    let shown = at_home(&place, &["servers"]);
    assert!(shown.stdout.contains("untrusted") && shown.stdout.contains("trunkline trust"), "{shown:?}");
    assert_eq!(at_home(&place, &["reconnect", "c"]).code, Some(3));
    assert!(!trace.exists(), "nothing untrusted was started");

    let trusted = at_home(&place, &["trust"]);
    assert!(trusted.stderr.contains("the running hub has reloaded it"), "{trusted:?}");
    wait_until("the new server is served", || tools(address).contains(&"c__echo".to_owned()).then_some(()));
    assert!(trace.exists() && tools(address).contains(&"b__echo".to_owned()));
}

#[test]
fn running_hub_keeps_its_commands_until_changed_ones_are_trusted() {
    let command = |name: &str| format!("[commands.{name}]\nargv = [\"printf\", \"{name}\"]\n");
    let place = HubFolder::new("trust_command_reload", "trunkline.toml", &command("one"));
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    let (mut running, address) = serve_at_home(&place, &[]);
    assert_eq!(tools(address), ["one"]);
    place.write(&command("two"));
    running.wait_for("new or changed [commands] and [policy] are not trusted");
    running.wait_for("reloaded ");
    assert_eq!(tools(address), ["one"]);
    assert_eq!(at_home(&place, &["trust"]).code, Some(0));
    wait_until("the other command is listed", || (tools(address) == ["two"]).then_some(()));
}

#[test]
fn settings_of_a_linked_file_are_shown_where_the_hub_writes() {
    let outside = std::fs::canonicalize(folder("trust_linked_outside")).unwrap();
    let command = "[commands.log]\nargv = [\"./log\"]\n";
    let original = file(&outside, "original.toml", &format!("[audit]\nfile = \"calls\"\n{command}"), 0o600);
    let place = HubFolder::new("trust_linked", "other.toml", "");
    let target = std::fs::canonicalize(&place.folder).unwrap().join("victim");
    std::os::unix::fs::symlink(&original, place.folder.join("trunkline.toml")).unwrap();
    std::os::unix::fs::symlink("victim", place.folder.join("calls")).unwrap();
    assert_eq!(at_home(&place, &["trust", &original]).code, Some(0));
    let refused = serve_stdio(&place, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("`log`") && refused.stderr.contains("`[audit]`"), "{refused:?}");
    assert!(!target.exists() && !outside.join("calls").exists());

    let trusted = at_home(&place, &["trust"]);
    let line = format!("writes a line for each call to {}\n", target.display());
    assert!(trusted.stderr.contains(&line), "{trusted:?}");
    assert_eq!(serve_stdio(&place, &[]).code, Some(0));
    assert!(target.exists() && !outside.join("calls").exists(), "the line shows where the hub writes");
}

#[test]
fn link_to_the_users_own_settings_needs_trust() {
    let place = HubFolder::new("trust_own_linked", "other.json", "{}");
    let settings = place.folder.join(".config/trunkline");
    std::fs::create_dir_all(&settings).unwrap();
    let own = file(&settings, "mcp.json", &mcp_json(&[("a", builtin("echo"))]), 0o600);
    std::os::unix::fs::symlink(own, place.folder.join("mcp.json")).unwrap();
    let refused = serve_stdio(&place, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("is not trusted yet; it would use `a`"), "{refused:?}");
}

#[test]
fn trust_shows_the_files_and_not_the_password_of_a_redis_store() {
    for (location, expected) in [
        (
            "rediss://hub:s3cret@127.0.0.1:1/0?ca=sub/link",
            "stores sessions in rediss://hub:***@127.0.0.1:1/0",
        ),
        ("redis://127.0.0.1:1?password_file=sub/link", "stores sessions in redis://127.0.0.1:1/0"),
        ("redis://hub:s3cret${HOME}@127.0.0.1:1", "stores sessions in redis://127.0.0.1:1"),
    ] {
        let text = format!("[store]\nlocation = {location:?}\n");
        let place = HubFolder::new("trust_redis", "trunkline.toml", &text);
        let _ = std::fs::create_dir(place.folder.join("sub"));
        let _ = std::os::unix::fs::symlink("/nowhere/key", place.folder.join("sub/link"));
        let trusted = at_home(&place, &["trust"]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
        assert!(trusted.stderr.contains(expected), "{location}: {trusted:?}");
        assert!(!trusted.stderr.contains("s3cret"), "{trusted:?}");
        assert_eq!(trusted.stderr.contains("/nowhere/key"), location.contains("link"), "{trusted:?}");
    }
}
