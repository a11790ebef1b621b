use serde_json::{Value, json};

use crate::support::{command, depot, folder, post, serve, store};

#[test]
fn manual_http_session_runs_its_eight_steps() {
    // 1. The program starts, and prints its address.
    let folder = folder("sequence");
    std::fs::create_dir_all(folder.join("examples")).unwrap();
    std::fs::write(folder.join("examples/golem.yaml"), "components: []\n").unwrap();
    let (_store, service) = store();
    let (mut server, address) = serve(&folder, &["--service", &service, "--serve-golem-errors"]);

    // 2. initialize
    let client = json!({ "name": "demo", "version": "1.0" });
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
    let hello =
        post(address, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    let session = hello.header("mcp-session-id").expect("a session").to_owned();
    let result = &hello.event()["result"];
    assert_eq!(result["protocolVersion"], "2024-11-05");
    assert_eq!(result["serverInfo"]["name"], "depot");
    let capabilities: Vec<&String> = result["capabilities"].as_object().unwrap().keys().collect();
    assert_eq!(capabilities, ["logging", "resources", "tools"]);
    assert!(session.len() == 32 && session.chars().all(|c| c.is_ascii_hexdigit()), "{session}");
    let ask = |id: u32, method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = post(address, &[("mcp-session-id", session.as_str())], &message);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("mcp-session-id"), None, "the id is told once");
        let event = answer.event();
        assert_eq!(event["id"], id);
        event
    };
    let call = |id: u32, tool: &str, arguments: Value| {
        ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    };

    // 3. initialized
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let noted = post(address, &[("Mcp-Session-Id", &session)], &note);
    assert_eq!((noted.status, noted.body.as_str()), (202, ""));

    // 4. tools/list
    let tools = ask(2, "tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
    assert!(tools.len() >= 70, "{}", tools.len());
    for tool in &tools {
        assert!(tool["description"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
    }

    // 5. --version, with the exact shape of the answer
    let version = format!("depot {}\n", env!("CARGO_PKG_VERSION"));
    let result = json!({ "content": [{ "type": "text", "text": version }], "isError": false });
    let mut answer = call(3, "--version", json!({}));
    answer.as_object_mut().unwrap().remove("_meta");
    assert_eq!(answer, result);

    // 6. component list, from a store over HTTP, by the old name and with an empty argument
    let empty = call(4, "component list", json!({ "component_name": "" }));
    assert_eq!(empty["content"][0]["text"], "NAME\tFIELDS\n(none)\n");
    call(5, "component_add", json!({ "component_name": "cart", "field": ["version=7"] }));
    let listed = call(6, "component list", json!({ "component_name": "" }));
    assert_eq!(listed["content"][0]["text"], "NAME\tFIELDS\ncart\tversion=\"7\"\n");

    // 7. resources
    let resources = ask(7, "resources/list", json!({}))["result"]["resources"].clone();
    let uri = format!("file://{}/examples/golem.yaml", folder.display());
    assert_eq!(resources[0]["uri"], uri);
    assert_eq!(resources[0]["name"], "examples/golem.yaml");
    assert_eq!(resources[0]["mimeType"], "application/yaml");
    let read = ask(8, "resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "components: []\n");

    // 8. a command that is hidden
    let blocked = call(9, "cloud token", json!({}));
    let not_found =
        |name: &str| json!([{ "type": "text", "text": format!("Error: Tool '{name}' not found") }]);
    assert_eq!((&blocked["isError"], &blocked["content"]), (&json!(true), &not_found("cloud token")));
    let log = server.wait_for("refused");
    assert!(log.contains("deny cloud token * (preset golem)"), "{log}");

    // The error names the missing session header, or the unknown session.
    let list = json!({ "jsonrpc": "2.0", "id": 10, "method": "tools/list" });
    assert_eq!(post(address, &[], &list).status, 400);
    assert_eq!(post(address, &[("mcp-session-id", "00112233445566778899aabbccddeeff")], &list).status, 404);
}

#[test]
fn responses_are_events_unless_the_client_accepts_only_json() {
    let (_server, address) = serve(&folder("accept"), &[]);
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    for (accept, expected) in [
        ("*/*", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
    ] {
        let answer = post(address, &[("Accept", accept)], &message);
        assert_eq!(answer.header("content-type"), Some(expected), "{accept}");
    }
}

#[test]
fn serve_flag_with_a_command_is_a_clap_error_and_help_lists_the_flags() {
    for (arguments, code, said) in [
        (&["--serve=0", "component", "list"][..], 2, "must be used without a command"),
        (&["--serve=high"], 2, "invalid value 'high'"),
        (&["--serve=0", "--serve-policy", "/none"], 1, "policy /none cannot be read"),
        (&["--serve=0", "--profile"], 2, "a value is required"),
        (&[], 2, "--serve"),
    ] {
        let output = command(depot()).args(arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}
