//! MCP requests of the page, and who may make them.

use super::*;

/// A session of the console makes a request; returns the status and the messages that came.
fn make(session: &PageSession, method: &str, params: &Value) -> (u16, Vec<Value>) {
    let body = json!({ "method": method, "params": params }).to_string();
    let reply = send(session.address, "POST /console/api/requests", &session.headers(), &body);
    // The lines between them are the sizes of chunks.
    let messages = reply.body.lines().filter_map(|line| serde_json::from_str(line.trim()).ok());
    (reply.status, messages.filter(Value::is_object).collect())
}

fn echo(session: &PageSession, message: &str) -> Value {
    let params = json!({ "name": "say__echo", "arguments": { "message": message } });
    let (status, messages) = make(session, "tools/call", &params);
    assert_eq!(status, 200, "{messages:?}");
    messages.into_iter().next_back().unwrap()
}

#[test]
fn operator_calls_a_tool_and_the_call_is_in_the_events() {
    let hub = ConsoleHub::start("console_requests", &[]);
    let session = hub.begin(&hub.token);
    let mut events = session.events("");
    let answer = echo(&session, "hello");
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hello"), "{answer}");
    events.read_until(RESPONSE);
    let seen = events_of(&events);
    let started = seen.iter().find(|event| event["kind"] == "call_started").unwrap();
    assert_eq!(started["client_name"], "trunkline console");
    assert_eq!((&started["server"], &started["name"]), (&json!("say"), &json!("say__echo")));
    for (method, params, code) in [
        ("tools/call", json!({ "name": "none" }), -32602),
        ("initialize", json!({ "protocolVersion": "2025-06-18" }), -32601),
    ] {
        let (_, messages) = make(&session, method, &params);
        assert_eq!(messages[0]["error"]["code"], code, "{method}: {messages:?}");
    }
    for body in ["", "{}", "[1]", "{\"method\":\"tools/list\",\"params\":[]}"] {
        let reply = send(session.address, "POST /console/api/requests", &session.headers(), body);
        assert_eq!(reply.status, 400, "{body}");
    }
}

#[test]
fn read_only_session_makes_no_requests() {
    let tokens_folder = folder("console_requests_tokens");
    let tokens = file(&tokens_folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let hub = ConsoleHub::start("console_requests_roles", &["--auth", &format!("bearer:{tokens}")]);
    let operator = hub.begin(&hub.token);
    let made =
        send(hub.address, "POST /console/api/links", &operator.headers(), "{\"role\":\"viewer\"}").json();
    let viewer = hub.begin(&token_of(made["url"].as_str().unwrap()));
    let ann = PageSession::begin(hub.address, &json!({ "bearer": "0123456789abcdef" }));
    let call = json!({ "method": "tools/list" }).to_string();
    let answer = json!({ "number": 1, "response": {} }).to_string();
    for (session, allowed) in [(&viewer, false), (&ann, false), (&operator, true)] {
        for (start, body, status) in [
            ("POST /console/api/requests", &call, 200),
            ("GET /console/api/questions", &String::new(), 200),
            ("POST /console/api/answers", &answer, 409),
        ] {
            let reply = send(hub.address, start, &session.headers(), body);
            assert_eq!(reply.status, if allowed { status } else { 403 }, "{start}: {}", reply.body);
        }
    }
    // The operator needs no token, and is not a user.
    assert!(echo(&operator, "hello")["result"].is_object());
}

#[test]
fn requests_of_the_console_obey_access_rules() {
    let tokens_folder = folder("console_requests_rules_tokens");
    let tokens = file(&tokens_folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    for (principal, is_allowed) in [("ann", false), ("process", true)] {
        let text = format!(
            "[servers.say]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n\n\
             [[access]]\naction = \"allow\"\nprincipal = [{principal:?}]\n"
        );
        let place = HubFolder::new(&format!("console_requests_{principal}"), "trunkline.toml", &text);
        let socket = place.socket();
        let auth = format!("bearer:{tokens}");
        let (mut running, address) =
            place.serve(&["--admin-socket", socket.to_str().unwrap(), "--auth", &auth]);
        let token = operator_token(&mut running, &place, true);
        let session = PageSession::begin(address, &json!({ "token": token }));
        let answer = echo(&session, "hello");
        assert_eq!(answer["result"].is_object(), is_allowed, "{principal}: {answer}");
    }
}

#[test]
fn open_request_of_a_page_does_not_delay_the_shutdown() {
    let hub = ConsoleHub::start("console_requests_end", &["--grace", "1h"]);
    let session = hub.begin(&hub.token);
    let body = json!({ "method": "subscriptions/listen", "params": { "notifications": { "toolsListChanged": true } } });
    let mut listening = RawConnection::open(hub.address);
    let start = "POST /console/api/requests";
    listening.write(&request(hub.address, start, &session.headers(), &body.to_string()));
    listening.read_until("notifications/subscriptions/acknowledged");
    hub.running.signal(Signal::TERM);
    listening.read_to_end();
    assert_eq!(hub.running.wait().code, Some(0));
}
