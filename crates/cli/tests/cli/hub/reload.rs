//! The file is edited while clients work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use super::*;

#[test]
fn config_edit_is_applied_live_and_keeps_unchanged_servers_connected() {
    let (a, b) = (("a", builtin("echo")), ("b", builtin("time")));
    let place = HubFolder::new("hub_edit", "mcp.json", &mcp_json(&[a.clone(), b.clone()]));
    let (mut running, address) = place.serve(&[]);
    assert_eq!(tools(address).len(), 5);
    let same = wait_until("the server runs", || process_with(running.id(), "--builtin echo"));
    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let worker = {
        let (over, count) = (over.clone(), count.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                let message = format!("call {}", count.fetch_add(1, Ordering::SeqCst));
                assert_eq!(echoed(address, "a__echo", &message), message);
            }
        })
    };
    place.write(&mcp_json(&[a.clone(), ("c", builtin("time"))]));
    let told = running.wait_for("reloaded ");
    assert!(told.contains("added `c`") && told.contains("removed `b`") && !told.contains("`a`"), "{told}");
    assert!(tools(address).contains(&"c__now".to_owned()) && !tools(address).contains(&"b__now".to_owned()));
    let mut changed = builtin("time");
    changed["disabledTools"] = json!(["convert"]);
    place.write(&mcp_json(&[a.clone(), ("c", changed)]));
    let told = running.wait_for("reloaded ");
    assert!(told.contains("updated `c`"), "{told}");
    assert!(!tools(address).contains(&"c__convert".to_owned()));
    over.store(true, Ordering::SeqCst);
    worker.join().unwrap();
    assert_eq!(process_with(running.id(), "--builtin echo"), Some(same), "it is the same process");
}

#[test]
fn invalid_config_on_reload_keeps_the_previous_one_and_logs_the_position() {
    let server = |word: &str| {
        format!(
            "[servers.a]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"{word}\"]\n"
        )
    };
    let place = HubFolder::new("hub_bad_edit", "trunkline.toml", &server("echo"));
    let (mut running, address) = place.serve(&[]);
    assert_eq!(echoed(address, "a__echo", "before"), "before");
    let good = server("time");
    for (wrong, part) in [
        (format!("{good}[serers.b]\ncommand = \"x\"\n"), "trunkline.toml:4:2: key `serers`"),
        (format!("{good}[serve]\nnames = \"{{tool}}{{server}}\"\n"), "trunkline.toml:5:9: key `serve.names`"),
        (format!("{good}[commands.x]\nargv = 3\n"), "trunkline.toml:5:8: key `commands.x.argv`"),
        (format!("{good}[servers.b\n"), "trunkline.toml:4:"),
        (format!("{good}[commands.x]\nargv = [\"${{UNCLOSED\"]\n"), "is not closed"),
    ] {
        place.write(&wrong);
        let told = running.wait_for("invalid config, keeping the previous one");
        assert!(told.contains(part), "{part}: {told}");
        assert_eq!(echoed(address, "a__echo", "still"), "still");
    }
    place.write(&good);
    running.wait_for("updated `a`");
    let listed = tools(address);
    assert!(listed.contains(&"a__now".to_owned()), "{listed:?}");
}

#[test]
fn sighup_reloads_the_config_and_its_commands() {
    let command = |name: &str| format!("[commands.{name}]\nargv = [\"printf\", \"{name}\"]\n");
    let place = HubFolder::new("hub_hangup", "trunkline.toml", &command("one"));
    let (mut running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["one"]);
    running.signal(Signal::HUP);
    let told = running.wait_for("reloaded ");
    assert!(told.trim_end().ends_with(": nothing changed"), "{told}");
    place.write(&command("two"));
    let told = running.wait_for("reloaded ");
    assert!(told.trim_end().ends_with(": changed: commands"), "{told}");
    place.write(&format!("{}[policy]\ncommands = [\"allow *\"]\n", command("two")));
    let told = running.wait_for("reloaded ");
    assert!(told.trim_end().ends_with(": changed: policy"), "{told}");
    wait_until("the other command is listed", || (tools(address) == ["two"]).then_some(()));
    let answer = called(address, "two", json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "two", "{answer}");
    // A server may be added to a file that had none.
    place.write(&format!("{}[servers.a]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n", command("two")));
    running.wait_for("added `a`");
    assert!(tools(address).contains(&"a__echo".to_owned()));
}

#[test]
fn changed_values_that_are_never_shown_are_applied_and_reported() {
    let config = |own: &str, shared: &str, more: &str| {
        format!(
            "[env]\nSHARED = \"{shared}\"\n[commands.show]\nscript = \"echo $OWN $SHARED\"\nenv = {{ OWN = \"{own}\" }}\n{more}"
        )
    };
    let place = HubFolder::new("hub_values", "trunkline.toml", &config("one", "uno", ""));
    let (mut running, address) = place.serve(&[]);
    let shown = || {
        let answer = called(address, "show", json!({}));
        answer["result"]["content"][0]["text"].as_str().unwrap().trim_end().to_owned()
    };
    assert_eq!(shown(), "one uno");
    for (own, shared, expected) in [("two", "uno", "two uno"), ("two", "due", "two due")] {
        place.write(&config(own, shared, ""));
        let told = running.wait_for("reloaded ");
        assert!(told.trim_end().ends_with(": changed: commands"), "{told}");
        wait_until("the command has the value", || (shown() == expected).then_some(()));
    }
    let limits = "[limits]\nprincipal = \"1000/1m\"\n";
    place.write(&config("two", "due", limits));
    let told = running.wait_for("reloaded ");
    assert!(told.trim_end().ends_with(": changed: [limits]"), "{told}");
    place.write(&config("two", "due", &format!("{limits}[vault]\nfile = \"elsewhere.json\"\n")));
    running.wait_for("changes to [vault] need a restart");
}

#[test]
fn changed_secret_of_an_issuer_is_reported_by_the_name_of_its_table_only() {
    let config = |secret: &str| {
        let issuer = "[[auth.issuers]]\nissuer = \"http://127.0.0.1:9\"\n";
        format!(
            "[auth]\npublic_url = \"http://127.0.0.1:1/mcp\"\n{issuer}\
             introspection = {{ client_id = \"hub\", client_secret = \"{secret}\" }}\n\
             [commands.show]\nargv = [\"true\"]\n"
        )
    };
    let place = HubFolder::new("hub_auth_values", "trunkline.toml", &config("sentinel-one"));
    let (mut running, _) = place.serve(&[]);
    place.write(&config("sentinel-two"));
    // The table is reloaded in one place, and the file in another.
    let told = running.wait_for("trunkline.toml: ");
    assert!(told.trim_end().ends_with(": changed: [auth]"), "{told}");
    running.signal(Signal::TERM);
    let finished = running.finish();
    assert!(!finished.stderr.contains("sentinel"), "{finished:?}");
}

#[test]
fn in_place_writes_and_symlink_targets_reload_the_file() {
    let file_of = |name: &str| mcp_json(&[(name, builtin("echo"))]);
    let place = HubFolder::new("hub_in_place", "mcp.json", &file_of("a"));
    let (mut running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["a__echo"]);
    std::fs::write(place.path(), file_of("b")).unwrap();
    running.wait_for("added `b`; removed `a`");
    assert_eq!(tools(address), ["b__echo"]);
    drop(running);

    let linked = HubFolder::new("hub_link", "mcp.json", &file_of("a"));
    let (first, second) = (linked.folder.join("first"), linked.folder.join("second"));
    for (folder, name) in [(&first, "c"), (&second, "d")] {
        std::fs::create_dir(folder).unwrap();
        file(folder, "mcp.json", &file_of(name), 0o600);
    }
    let point_to = |folder: &Path| {
        let link = linked.folder.join("link");
        std::os::unix::fs::symlink(folder.join("mcp.json"), &link).unwrap();
        std::fs::rename(link, linked.path()).unwrap();
    };
    point_to(&first);
    let (mut running, address) = linked.serve(&[]);
    assert_eq!(tools(address), ["c__echo"]);
    point_to(&second);
    running.wait_for("added `d`; removed `c`");
    assert_eq!(tools(address), ["d__echo"]);
}

#[test]
fn rapid_config_edits_apply_the_last_one_without_disturbing_clients() {
    let steady = ("steady", builtin("echo"));
    let with = |name: &str| mcp_json(&[steady.clone(), (name, builtin("echo"))]);
    let place = HubFolder::new("hub_fast_edits", "mcp.json", &with("s0"));
    let (running, address) = place.serve(&[]);
    assert_eq!(tools(address), ["s0__echo", "steady__echo"]);
    for edit in 1..=20 {
        // Every third edit is invalid, and most are replaced before the hub has read them.
        let text = if edit % 3 == 0 { "{".to_owned() } else { with(&format!("s{edit}")) };
        place.write(&text);
        if edit % 4 == 0 {
            running.signal(Signal::HUP);
        }
        let message = edit.to_string();
        assert_eq!(echoed(address, "steady__echo", &message), message);
    }
    place.write(&with("last"));
    wait_until("the last edit counts", || (tools(address) == ["last__echo", "steady__echo"]).then_some(()));
    wait_until("what is gone has ended", || {
        let servers =
            children(running.id()).into_iter().filter(|id| command_line(*id).contains("--builtin echo"));
        (servers.count() == 2).then_some(())
    });
}
