//! Whether work should be sent here, and why not.

use super::*;

#[test]
fn missing_required_server_makes_the_hub_unready() {
    let folder = folder("hub_required_folder");
    let missing = folder.join("program");
    let text = |command: &str| {
        format!(
            "[servers.a]\ncommand = {command:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\nrequired = true\n\
             [servers.b]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"time\"]\n"
        )
    };
    let place = HubFolder::new("hub_required", "trunkline.toml", &text(missing.to_str().unwrap()));
    let (mut running, address) = place.serve(&[]);
    let told = running.wait_for("not ready: a required server is unavailable");
    assert!(told.contains("was not found") && told.contains('a'), "{told}");
    let (status, ready) = readiness(address);
    assert_eq!((status, &ready["ready"]), (503, &json!(false)));
    let reason = ready["reason"].as_str().unwrap();
    assert!(reason.starts_with("required server `a`: ") && reason.contains("was not found"), "{reason}");
    // It is tried again and again.
    let state = ready["servers"]["a"]["state"].as_str().unwrap();
    assert!(["failed", "connecting"].contains(&state), "{ready}");
    assert_eq!(get(address, "/healthz", &[]).status, 200, "it is alive all the same");
    assert!(tools(address).contains(&"b__now".to_owned()), "and others are served");
    place.write(&text(OWN_BINARY));
    wait_until("it is ready", || (readiness(address).0 == 200).then_some(()));
}

#[test]
fn non_loopback_readyz_shows_servers_only_on_the_admin_address() {
    let place =
        HubFolder::new("hub_audience", "mcp.json", &mcp_json(&[("a", json!({ "command": "/nowhere" }))]));
    let port_file = place.folder.join("address");
    let (mut running, _) = {
        let args = [
            "serve",
            "--trust",
            "--http",
            "0.0.0.0:0",
            "--insecure-no-auth",
            "--allow-host",
            "127.0.0.1",
            "--admin",
            ":0",
        ];
        let fixed = ["--port-file", port_file.to_str().unwrap()];
        (RunningCommand::start_in(&[&args[..], &fixed].concat(), &place.folder), ())
    };
    let told = running.wait_for("metrics on http://");
    let admin: SocketAddr = told.split("http://").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    running.wait_for("listening on");
    let port = std::fs::read_to_string(&port_file).unwrap();
    let port: u16 = port.trim().rsplit(':').next().unwrap().parse().unwrap();
    let (_, public) = readiness(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(public, json!({ "ready": true }));
    let (_, told) = readiness(admin);
    assert_eq!(told["servers"]["a"]["state"], "pending", "{told}");
}
