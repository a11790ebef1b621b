//! Requests with a secret wherever a caller can put one.

use serde_json::json;

use super::{CanaryCaller, assert_clean, canary};
use crate::bare_client::{mirror_headers, post};
use crate::messages::{call, initialize, initialized, legacy, modern};

/// Headers in which a caller may put anything, those of proxies and of traces among them.
const HEADERS: &[&str] = &[
    "X-Api-Key",
    "X-Env-OTHER_KEY",
    "Mcp-Session-Id",
    "Last-Event-ID",
    "Origin",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Param-Message",
    "Proxy-Authorization",
    "User-Agent",
    "Referer",
    "Forwarded",
    "X-Forwarded-For",
    "Traceparent",
    "Tracestate",
    "Baggage",
    "Access-Control-Request-Headers",
];

/// Calls in both eras, with a secret wherever a caller can put one, and returns the id of the session that it had.
pub(super) fn exercise(caller: &CanaryCaller) -> String {
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
    for header in HEADERS {
        caller.send("POST /mcp", &[(header, &other)], &body);
        caller.send("GET /mcp", &[(header, &other)], "");
        caller.send("OPTIONS /mcp", &[("Origin", "http://localhost:3000"), (header, &other)], "");
    }
    exercise_variable(caller);
    // In invalid arguments: the error does not repeat them.
    for arguments in
        [json!({ "message": { "secret": argument } }), json!({ "secret": argument }), json!([argument])]
    {
        caller.post(&modern(2, "tools/call", call("echo", arguments)), &[]);
    }
    // In arguments that a tool repeats: only the caller may get them back.
    for (tool, arguments) in [
        ("echo", json!({ "message": argument })),
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

/// Sends a variable that callers may set to a tool that repeats it: it is redacted even for its caller.
fn exercise_variable(caller: &CanaryCaller) {
    let variable = canary("variable");
    let headers = [("X-Env-API_KEY", variable.as_str())];
    let said = json!({ "message": format!("key {variable}") });
    let echo = modern(7, "tools/call", call("echo", said.clone()));
    assert!(caller.post(&echo, &headers).body.contains("key [secret]"), "the tool did not repeat it");
    let wrong =
        modern(8, "tools/call", call("convert", json!({ "time": variable, "from": variable, "to": "UTC" })));
    caller.post(&wrong, &headers);
    // In a legacy session it is that of the beginning, in whatever request the tool is called.
    let opened = caller.post(&initialize(), &headers);
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let session = [("Mcp-Session-Id", id.as_str())];
    caller.post(&initialized(), &session);
    let echo = legacy(9, "tools/call", call("echo", said));
    assert!(caller.post(&echo, &session).body.contains("key [secret]"), "the tool did not repeat it");
    // Twice, and malformed: what is refused is not repeated either.
    for wrong in [format!("{variable}\u{7f}"), "x".repeat(70_000) + &variable] {
        caller.send("POST /mcp", &[("X-Env-API_KEY", &wrong)], &initialize().to_string());
    }
    let twice = [headers[0], ("x-env-api-key", variable.as_str())];
    caller.send("POST /mcp", &twice, &initialize().to_string());
}
