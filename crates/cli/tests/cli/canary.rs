//! Canaries: a secret in every place where one can enter, and a look at every place where none may come out.

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_client::{Connection, Reply, get, mirror_headers, post, request, send};
use crate::messages::{call, initialize, initialized, legacy, lines, modern};
use crate::process::{Running, file, folder, run};

/// A secret that says where it entered.
fn canary(place: &str) -> String {
    format!("canary-{place}-5e3f0d9a41c7")
}

/// What every canary has and nothing else does.
const MARK: &str = "-5e3f0d9a41c7";

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    let leak = text.lines().find(|line| line.contains(MARK));
    assert!(leak.is_none(), "{what} tells a secret: {leak:?}");
}

/// The replies to requests that carry secrets; what a caller said itself may come back to it and to nobody else.
struct Caller {
    address: SocketAddr,
    token: String,
}

impl Caller {
    /// Posts a message whose answer must be clean.
    #[track_caller]
    fn post(&self, message: &Value, headers: &[(&str, &str)]) -> Reply {
        let reply = self.post_own(message, headers);
        assert_clean("an answer", &reply.head);
        assert_clean("an answer", &reply.body);
        reply
    }

    /// Posts a message whose answer may repeat what it said.
    #[track_caller]
    fn post_own(&self, message: &Value, headers: &[(&str, &str)]) -> Reply {
        let mut all = vec![("Authorization", self.token.as_str())];
        all.extend_from_slice(headers);
        post(self.address, message, &all)
    }

    #[track_caller]
    fn send(&self, start: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut all = vec![("Authorization", self.token.as_str())];
        all.extend_from_slice(headers);
        let reply = send(self.address, start, &all, body);
        assert_clean("an answer", &reply.head);
        assert_clean("an answer", &reply.body);
        reply
    }
}

/// Calls in both eras, with a secret wherever a caller can put one, and returns the id of the session that it had.
fn exercise(caller: &Caller) -> String {
    let [argument, state, answer, query, cookie, other] =
        ["argument", "state", "answer", "query", "cookie", "other"].map(canary);
    // In headers, the query and the credential.
    let wrong = format!("Bearer {}", canary("wrong-token"));
    let echo = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    assert_eq!(caller.post(&echo, &[("Cookie", &format!("session={cookie}"))]).status, 200);
    let refused = post(caller.address, &echo, &[("Authorization", &wrong)]);
    assert_eq!(refused.status, 401);
    assert_clean("a refusal", &refused.body);
    let body = echo.to_string();
    assert_eq!(caller.send(&format!("POST /mcp?token={query}"), &mirror_headers(&echo), &body).status, 200);
    caller.send(&format!("POST /{query}"), &[], &body);
    caller.send(&format!("GET /healthz?token={query}"), &[], "");
    for header in
        ["X-Api-Key", "Mcp-Session-Id", "Last-Event-ID", "Origin", "MCP-Protocol-Version", "Mcp-Method"]
    {
        caller.send("POST /mcp", &[(header, &other)], &body);
        caller.send("GET /mcp", &[(header, &other)], "");
    }
    // In arguments, which a caller may be reminded of, but nobody else told.
    for (tool, arguments) in [
        ("echo", json!({ "message": argument })),
        ("echo", json!({ "message": { "secret": argument } })),
        ("echo", json!({ "secret": argument })),
        ("convert", json!({ "time": argument, "from": argument, "to": argument })),
        (&*argument, json!({})),
    ] {
        caller.post_own(&modern(2, "tools/call", call(tool, arguments)), &[]);
    }
    caller.post_own(&modern(3, "resources/read", json!({ "uri": format!("time://{argument}") })), &[]);
    // In what a caller sends back, and in what is no message at all.
    let resumed = json!({
        "name": "echo",
        "arguments": { "message": "hello" },
        "requestState": state,
        "inputResponses": { "q1": { "action": "accept", "content": { "secret": answer } } },
    });
    assert!(caller.post(&modern(4, "tools/call", resumed), &[]).body.contains("requestState"));
    caller.send("POST /mcp", &[], &format!("{{\"secret\": \"{other}\""));
    caller.send("POST /mcp", &[], &format!("{{\"secret\": \"{other}\"}}"));
    caller.send("POST /mcp", &[("Content-Type", "text/plain")], &other);
    // In a session.
    let opened = caller.post(&initialize(), &[]);
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let session = [("Mcp-Session-Id", id.as_str())];
    caller.post(&initialized(), &session);
    caller.post_own(&legacy(5, "tools/call", call("echo", json!({ "message": argument }))), &session);
    caller.post(&json!({ "jsonrpc": "2.0", "id": "x", "result": { "secret": answer } }), &session);
    assert_eq!(caller.send("DELETE /mcp", &session, "").status, 204);
    assert_eq!(caller.post(&legacy(6, "ping", json!({})), &session).status, 404);
    id
}

/// Calls over HTTP+SSE, where the id of the session is in the address, and returns that id.
fn exercise_sse(caller: &Caller) -> String {
    let other = canary("other");
    caller.send(&format!("POST /messages?sessionId={other}"), &[], &initialize().to_string());
    caller.send(&format!("GET /ws?token={other}"), &[("Sec-WebSocket-Protocol", &other)], "");
    let mut stream = Connection::open(caller.address);
    let headers = [("Authorization", caller.token.as_str()), ("Accept", "text/event-stream")];
    stream.write(&request(caller.address, &format!("GET /sse?token={other}"), &headers, ""));
    let told = stream.read_until("\n\n");
    let path = told.split("data: ").nth(1).and_then(|rest| rest.lines().next()).expect("an address").trim();
    let id = path.split("sessionId=").nth(1).expect("an id").to_owned();
    let secret = legacy(2, "tools/call", call("echo", json!({ "message": canary("argument") })));
    for message in [initialize(), initialized(), secret] {
        assert_eq!(caller.send(&format!("POST {path}"), &[], &message.to_string()).status, 202);
    }
    stream.read_until(&canary("argument"));
    id
}

#[test]
fn no_secret_leaves_by_a_log_a_metric_an_error_or_the_command_line() {
    for format in ["json", "text"] {
        let folder = folder(&format!("canary-{format}"));
        let token = canary("token");
        let tokens = file(&folder, "tokens", &format!("ann {token}\n"), 0o600);
        let key = file(&folder, "key", &canary("state-key-of-more-than-32-bytes"), 0o600);
        let auth = format!("bearer:{tokens}");
        let options = ["--log-level", "trace", "--log-format", format, "--auth", &auth, "--state-key", &key];
        let variables = [("TRUNKLINE_SECRET", &*canary("environment")), ("API_KEY", &*canary("api-key"))];
        let (running, address) = Running::serve_with(&format!("canary-serve-{format}"), &options, &variables);
        let caller = Caller { address, token: format!("Bearer {token}") };
        let sessions = [exercise(&caller), exercise_sse(&caller)];
        assert_clean("the command line", &running.command_line());
        let metrics = get(address, "/metrics", &[]).body;
        running.signal(Signal::TERM);
        let finished = running.wait();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        // Without this, a log that says nothing would pass.
        for said in ["tools/call", "echo", "2025-11-25", "outcome"] {
            assert!(finished.stderr.contains(said), "the log says nothing of {said}: {}", finished.stderr);
        }
        for (what, text) in
            [("the log", &finished.stderr), ("the metrics", &metrics), ("the output", &finished.stdout)]
        {
            assert_clean(what, text);
            let told = sessions.iter().find(|id| text.contains(id.as_str()));
            assert_eq!(told, None, "{what} has a session's whole id");
        }
    }
}

#[test]
fn no_secret_of_a_pipe_is_logged() {
    let secret = canary("pipe");
    let messages = [
        initialize(),
        initialized(),
        legacy(2, "tools/call", call("echo", json!({ "message": secret }))),
        legacy(3, "tools/call", call("convert", json!({ "time": secret, "from": secret, "to": secret }))),
        modern(4, "tools/call", call("echo", json!({ "message": secret }))),
    ];
    for format in ["json", "text"] {
        let input = lines(&messages) + &format!("{{\"broken\": \"{secret}\"\n");
        let finished = run(&["serve", "--stdio", "--log-level", "trace", "--log-format", format], &input);
        assert_eq!(finished.stdout.lines().count(), 5, "{}", finished.stdout);
        assert!(finished.stderr.contains("tools/call"), "{}", finished.stderr);
        assert_clean("the log", &finished.stderr);
    }
}

#[test]
fn a_secret_in_a_file_that_cannot_be_used_is_not_repeated() {
    let folder = folder("canary-files");
    let unnamed = file(&folder, "unnamed", &canary("token-without-a-name"), 0o600);
    let open = file(&folder, "open", &format!("ann {}\n", canary("token-for-everybody")), 0o644);
    let short = file(&folder, "short", MARK, 0o600);
    for args in [
        ["--auth", &format!("bearer:{unnamed}")],
        ["--auth", &format!("bearer:{open}")],
        ["--state-key", &short],
    ] {
        let finished =
            run(&[&["serve", "--http", "127.0.0.1:0", "--log-level", "trace"][..], &args].concat(), "");
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert_clean("the error", &finished.stderr);
    }
}
