//! Files that are not served.

use super::*;
use crate::process::run_in;

#[test]
fn invalid_or_writable_config_exits_with_3() {
    let good = mcp_json(&[("a", builtin("echo"))]);
    for (text, mode, parts) in [
        (&*good, 0o620, &["is writable by other users", "chmod go-w"][..]),
        (&*good, 0o602, &["is writable by other users"]),
        ("{", 0o600, &["mcp.json:1:"]),
        (
            r#"{"mcpServers":{"a":{"command":"x","comand":"y"},"b":{"url":"ftp://x"}}}"#,
            0o600,
            &["server `b`"],
        ),
        (r#"{"mcpServers":{"a":{"command":"${UNSET_VARIABLE}"}}}"#, 0o600, &["server `a`", "UNSET_VARIABLE"]),
        (r#"{"mcpServers":{"this hub":{"command":"x"}}}"#, 0o600, &["server `this hub`"]),
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
fn a_hub_listed_in_its_own_config_does_not_start_itself_recursively() {
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
fn a_bridge_that_leads_back_to_the_hub_is_not_served() {
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
