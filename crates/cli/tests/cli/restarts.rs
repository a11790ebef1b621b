//! What goes on after a hub with a session store was killed and started again, and what ends with an error that says so.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::bare_client::{HttpReply, RawConnection, post, request, send};
use crate::messages::{call, initialize, initialized, legacy, modern};
use crate::process::{RunningCommand, file, folder};
use crate::session_store::{StoreFolder, StoredSession, event_id, kill};

const TRUNKLINE: &str = env!("CARGO_BIN_EXE_trunkline");

/// A modern call of a client that can fill in forms, with what was added to it.
fn asking_call(id: u64, tool: &str, added: &Value) -> Value {
    let mut message = modern(id, "tools/call", call(tool, json!({})));
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": { "form": {} } });
    for (name, value) in added.as_object().unwrap() {
        message["params"][name] = value.clone();
    }
    message
}

/// Returns the answers to the questions of a result, with the state that belongs to them.
#[track_caller]
fn answered(asked: &Value) -> Value {
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let responses: serde_json::Map<_, _> = keys.map(|key| (key.clone(), yes.clone())).collect();
    json!({ "inputResponses": responses, "requestState": result["requestState"] })
}

#[test]
fn portable_call_waiting_for_input_goes_on_after_a_restart_and_a_live_one_ends_with_an_error() {
    let asks = "[commands.push]\nargv = [\"echo\", \"pushed\"]\nconfirm = \"Push?\"\n";
    let far = folder("restarted_upstream");
    file(&far, "trunkline.toml", asks, 0o600);
    let port_file = far.join("address");
    let fixed = ["serve", "--trust", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
    let mut upstream = RunningCommand::start_in(&fixed, &far);
    upstream.wait_for("listening on http://127.0.0.1:");
    let upstream_address = std::fs::read_to_string(&port_file).unwrap();

    let place = StoreFolder::new("restarted_hub");
    let servers = format!("[servers.far]\nurl = \"http://{}/mcp\"\n", upstream_address.trim_end());
    file(&place.folder, "trunkline.toml", &format!("{asks}{servers}"), 0o600);
    let (running, address) = place.serve(&[]);
    let [portable, live] = ["far__push", "push"].map(|tool| {
        let asked = post(address, &asking_call(1, tool, &json!({})), &[]).json();
        (tool, answered(&asked))
    });
    kill(running);

    let (_running, address) = place.serve(&[]);
    let retry = |(tool, answers): &(&str, Value)| post(address, &asking_call(2, tool, answers), &[]).json();
    let answer = retry(&portable);
    assert_eq!(answer["result"]["content"][0]["text"], "pushed\n", "{answer}");
    let refused = retry(&live);
    let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(message.contains("start") && message.contains("again"), "{message}");
}

#[test]
fn principals_never_reach_each_others_sessions_cached_or_stored() {
    let place = StoreFolder::new("restarted_principals");
    let lines = "ann ann-token-0123456789\nbob bob-token-0123456789\n";
    let tokens = format!("bearer:{}", file(&place.folder, "tokens", lines, 0o600));
    let args = ["--no-config", "--auth", &tokens];
    let names = ["ann", "bob"];
    let authorization = |name: &str| format!("Bearer {name}-token-0123456789");
    let request_as = |address: SocketAddr, name: &str, start: &str, session: &str, more: &[(&str, &str)]| {
        let authorization = authorization(name);
        let own = [
            ("Authorization", &*authorization),
            ("Mcp-Session-Id", session),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        let ping = legacy(9, "ping", json!({})).to_string();
        let body = if start.starts_with("POST") { &*ping } else { "" };
        send(address, start, &[&own, more].concat(), body)
    };
    let (running, address) = place.serve(&args);
    let sessions = names.map(|name| {
        let authorization = authorization(name);
        let opened = post(address, &initialize(), &[("Authorization", &authorization)]);
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let headers =
            [("Authorization", &*authorization), ("Mcp-Session-Id", &*id), ("Accept", "text/event-stream")];
        let mut stream = RawConnection::open(address);
        stream.write(&request(address, "GET /mcp", &headers, ""));
        let event = event_id(&mut stream);
        (id, event)
    });
    let streams = names.map(|name| {
        let authorization = authorization(name);
        let headers = [("Authorization", &*authorization), ("Accept", "text/event-stream")];
        let mut stream = RawConnection::open(address);
        stream.write(&request(address, "GET /sse", &headers, ""));
        let seen = stream.read_until("\n\n");
        (seen.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned(), stream)
    });
    // At first the sessions are in the memory of the process, and after a restart in the file alone.
    let check = |address: SocketAddr| {
        for ((other, (id, event)), (messages, _)) in names.iter().rev().zip(&sessions).zip(&streams) {
            let resumed = [("Last-Event-ID", event.as_str()), ("Accept", "text/event-stream")];
            let stream = [("Accept", "text/event-stream")];
            for (start, more) in [
                ("POST /mcp", &[][..]),
                ("GET /mcp", &stream),
                ("GET /mcp", &resumed),
                ("DELETE /mcp", &[]),
                (&*format!("POST {messages}"), &[]),
            ] {
                let reply: HttpReply = request_as(address, other, start, id, more);
                assert_eq!(reply.status, 404, "{start} by {other}: {reply:?}");
            }
        }
    };
    check(address);
    for (name, (messages, _)) in names.iter().zip(&streams) {
        // The own stream takes the message without a session id in the header.
        let authorization = authorization(name);
        let own = [("Authorization", &*authorization)];
        let ping = legacy(9, "ping", json!({})).to_string();
        assert_eq!(send(address, &format!("POST {messages}"), &own, &ping).status, 202, "{name}");
    }
    kill(running);
    let (_running, address) = place.serve(&args);
    check(address);
    for (name, (id, _)) in names.iter().zip(&sessions) {
        assert_eq!(request_as(address, name, "POST /mcp", id, &[]).status, 200, "{name}");
    }
    check(address);
}

#[test]
fn session_with_a_bridge_continues_after_kill_and_restart() {
    let place = StoreFolder::new("restarted_bridge");
    let bridge = || {
        let port_file = place.folder.join("address");
        let _ = std::fs::remove_file(&port_file);
        let fixed = ["bridge", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
        let stored = ["--store", &place.store, "--state-key", &place.key];
        let server = ["--", TRUNKLINE, "serve", "--stdio", "--no-config"];
        let mut running = RunningCommand::start_in(&[&fixed[..], &stored, &server].concat(), &place.folder);
        running.wait_for("listening on");
        let address: SocketAddr = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
        (running, address)
    };
    let (running, address) = bridge();
    let session = StoredSession::open(address);
    let answer = session.call(address, "echo", json!({ "message": "before" }));
    assert_eq!(answer["result"]["content"][0]["text"], "before", "{answer}");
    kill(running);
    let (_running, address) = bridge();
    let answer = session.call(address, "echo", json!({ "message": "after" }));
    assert_eq!(answer["result"]["content"][0]["text"], "after", "{answer}");
}

#[test]
fn session_of_a_stream_is_listed_and_ended_with_it_and_leaves_nothing_in_the_store() {
    let place = StoreFolder::new("restarted_stream");
    let socket = place.folder.join("admin.sock");
    let socket = ["--admin-socket", socket.to_str().unwrap()];
    file(&place.folder, "trunkline.toml", "[commands.hello]\nargv = [\"echo\", \"hello\"]\n", 0o600);
    let (running, address) = place.serve(&socket);
    let open = || {
        let mut stream = RawConnection::open(address);
        stream.write(&request(address, "GET /sse", &[("Accept", "text/event-stream")], ""));
        let seen = stream.read_until("\n\n");
        let path = seen.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
        for message in [initialize(), initialized()] {
            assert_eq!(send(address, &format!("POST {path}"), &[], &message.to_string()).status, 202);
        }
        stream.read_until("\"serverInfo\"");
        stream
    };
    let sessions = |args: &[&str]| {
        crate::process::run_in(&[&["sessions", "--json"], args, &socket[..]].concat(), &place.folder)
    };
    let listed = || -> Vec<Value> {
        let report: Value = serde_json::from_str(&sessions(&[]).stdout).unwrap();
        report["sessions"].as_array().unwrap().clone()
    };
    let (mut first, second) = (open(), open());
    let found = listed();
    assert!(found.len() == 2 && found.iter().all(|one| one["transport"] == "sse"), "{found:?}");
    assert_eq!(found[0]["client"], "test 1", "{found:?}");
    assert_eq!(sessions(&[found[0]["id"].as_str().unwrap(), "--end"]).code, Some(0));
    assert!(first.read_to_end().ends_with("0\r\n\r\n"), "{}", first.seen());
    assert_eq!(listed().len(), 1);
    kill(running);
    drop(second);
    let (_running, _) = place.serve(&socket);
    assert_eq!(listed(), [Value::Null; 0], "it ended with its connection");
}
