//! What the console shows of servers, sessions and costs, and what it can change: in which sessions, and with which effect.

use super::console::{ConsoleHub, PageSession};
use super::*;
use crate::bare_client::send;
use crate::messages::legacy;
use crate::process::file;
use crate::session_store::StoredSession;

/// The routes beyond a user's own calls, each with a body.
fn routes() -> [(&'static str, Value); 6] {
    [
        ("GET /console/api/figures", Value::Null),
        ("GET /console/api/server?name=say", Value::Null),
        ("GET /console/api/costs", Value::Null),
        ("GET /console/api/sessions", Value::Null),
        ("POST /console/api/server", json!({ "server": "say", "action": "disable" })),
        ("DELETE /console/api/sessions", json!({ "session": "0" })),
    ]
}

fn server(session: &PageSession, name: &str) -> Value {
    let reply = session.get(&format!("/console/api/server?name={name}"), &[]);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["server"].clone()
}

fn change(session: &PageSession, name: &str, action: &str) -> u16 {
    session.send("POST /console/api/server", &json!({ "server": name, "action": action })).status
}

#[test]
fn read_only_and_user_sessions_get_of_each_route_what_they_may() {
    let tokens_folder = folder("console_control_tokens");
    let tokens = file(&tokens_folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let hub = ConsoleHub::start("console_control_roles", &["--auth", &format!("bearer:{tokens}")]);
    let user = PageSession::begin(hub.address, &json!({ "bearer": "0123456789abcdef" }));
    let viewer = hub.begin_read_only();
    let before = server(&viewer, "say")["state"].clone();
    for (start, body) in routes() {
        let changes = !start.starts_with("GET");
        let path = start.split(' ').nth(1).unwrap();
        assert_eq!(send(hub.address, start, &[], &body.to_string()).status, 401, "no session: {start}");
        assert_eq!(user.send(start, &body).status, 403, "a user: {start}");
        assert_eq!(viewer.send(start, &body).status, if changes { 403 } else { 200 }, "read-only: {start}");
        assert_eq!(viewer.send(&format!("PUT {path}"), &body).status, 405, "{path}");
    }
    assert_eq!(server(&viewer, "say")["state"], before, "nothing was changed");
    assert_ne!(before, "disabled");
}

#[test]
fn operator_switches_and_restarts_a_server() {
    let hub = ConsoleHub::start("console_control_server", &[]);
    let session = hub.begin(&hub.token);
    hub.echo("once", &[]);
    let before = server(&session, "say");
    assert_eq!(before["state"], "ready");
    assert_eq!(before["offered_tools"][0]["name"], "say__echo", "{before}");
    assert!(before["reach"].is_string() && before["identity"].is_string(), "{before}");
    assert_eq!(change(&session, "say", "disable"), 200);
    assert_eq!(server(&session, "say")["state"], "disabled");
    assert_eq!(server(&session, "say")["offered_tools"], json!([]));
    assert_eq!(tools(hub.address), Vec::<String>::new());
    assert_eq!(change(&session, "say", "enable"), 200);
    assert_eq!(tools(hub.address), ["say__echo"]);
    let starts = before["starts"].as_u64().unwrap();
    assert_eq!(change(&session, "say", "reconnect"), 200);
    assert_eq!(server(&session, "say")["starts"], starts + 1);
    for name in ["none", "this hub", ""] {
        assert_eq!(change(&session, name, "disable"), 404, "{name}");
        let encoded = name.replace(' ', "%20");
        assert_eq!(session.get(&format!("/console/api/server?name={encoded}"), &[]).status, 404, "{name}");
    }
    assert_eq!(change(&session, "say", "delete"), 400);
    assert_eq!(session.get("/console/api/server", &[]).status, 404);
    assert_eq!(session.get("/console/api/figures?after=x", &[]).status, 400);
    let long = json!({ "server": "x".repeat(100_000), "action": "disable" });
    assert_eq!(session.send("POST /console/api/server", &long).status, 400);
}

#[test]
fn server_that_the_hub_leaves_out_is_shown_with_its_reason_and_cannot_be_changed() {
    let broken = json!({ "command": "echo", "env": { "KEY": "${TRUNKLINE_TEST_IS_NOT_SET}" } });
    let servers = [("say", builtin("echo")), ("broken", broken)];
    let hub = ConsoleHub::with_servers("console_control_excluded", &[], &servers);
    let session = hub.begin(&hub.token);
    let shown = server(&session, "broken");
    assert_eq!(shown["is_excluded"], true, "{shown}");
    assert!(shown["reason"].as_str().unwrap().contains("TRUNKLINE_TEST_IS_NOT_SET"), "{shown}");
    for action in ["disable", "enable", "reconnect"] {
        assert_eq!(change(&session, "broken", action), 409, "{action}");
    }
}

#[test]
fn costs_count_definitions_and_results_by_server() {
    let hub = ConsoleHub::start("console_control_costs", &[]);
    let session = hub.begin(&hub.token);
    assert_eq!(tools(hub.address), ["say__echo"]);
    let costs = session.get("/console/api/costs", &[]).json();
    let say = &costs["servers"][0];
    assert_eq!((&say["name"], &say["tools"]), (&json!("say"), &json!(1)), "{costs}");
    let bytes = say["definition_bytes"].as_u64().unwrap();
    assert!(bytes > "say__echo".len() as u64 && bytes < 2_000, "{costs}");
    assert_eq!(say["largest"][0]["bytes"], bytes);
}

#[test]
fn sessions_of_clients_are_listed_and_ended() {
    let hub = ConsoleHub::start("console_control_sessions", &[]);
    let (kept, ended) = (StoredSession::open(hub.address), StoredSession::open(hub.address));
    let session = hub.begin(&hub.token);
    let listed = session.get("/console/api/sessions", &[]);
    let report = listed.json();
    assert_eq!(report["sessions"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!((&report["store"], &report["logins"]), (&json!("memory"), &json!([])));
    assert!(!listed.body.contains(&kept.id) && !listed.body.contains(&ended.id), "no id is shown whole");
    let [kept_id, ended_id] = [kept.id.split_at(8).0, ended.id.split_at(8).0];
    let end = |id: &str| session.send("DELETE /console/api/sessions", &json!({ "session": id })).status;
    assert_eq!(end(ended_id), 200);
    assert_eq!(end(ended_id), 404, "a session ends once");
    assert_eq!(end(""), 404, "an empty id is that of no session");
    assert_eq!(ended.post(hub.address, &legacy(4, "ping", json!({}))).status, 404);
    assert_eq!(kept.post(hub.address, &legacy(4, "ping", json!({}))).status, 200);
    let left = session.get("/console/api/sessions", &[]).json();
    assert_eq!(left["sessions"][0]["id"], kept_id);
}
