//! Messages that are well formed and ask for what cannot be had.

use serde_json::{Value, json};

use super::{BAD_PARAMS, ExpectedReply, MessageCase, NOT_A_MESSAGE};
use crate::raw_http::{self, MODERN};

const NO_METHOD: ExpectedReply = ExpectedReply::Refused(-32601, 404);
const NO_METHOD_LEGACY: ExpectedReply = ExpectedReply::Refused(-32601, 200);
const NO_META: ExpectedReply = ExpectedReply::Refused(-32602, 400);
const MISMATCH: ExpectedReply = ExpectedReply::Refused(-32020, 400);
const NO_VERSION: ExpectedReply = ExpectedReply::Refused(-32022, 400);

pub(super) fn rows() -> Vec<MessageCase> {
    [methods(), metas(), modern_params(), legacy_params(), notifications(), long_texts()].concat()
}

fn modern_request(method: &str, params: &Value) -> String {
    let mut params = params.clone();
    if params.get("_meta").is_none() {
        params["_meta"] = raw_http::meta();
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// A modern request with matching headers, which is the same over HTTP and on a channel.
fn modern_row(method: &str, params: &Value, expect: ExpectedReply) -> MessageCase {
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).unwrap_or("-");
    let text = modern_request(method, params);
    let row = MessageCase::new(format!("modern {method} {params:.60}"), text).id("1");
    row.header("Mcp-Method", method).header("Mcp-Name", name).modern(expect).channel(expect)
}

fn legacy_row(method: &str, params: &Value, expect: ExpectedReply) -> MessageCase {
    let text = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    MessageCase::new(format!("legacy {method} {params:.60}"), text).id("1").legacy(expect).channel(expect)
}

fn methods() -> Vec<MessageCase> {
    let removed = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    let unknown = [
        "",
        " ",
        "Tools/list",
        "TOOLS/LIST",
        "tools/List",
        "tools/list/",
        "/tools/list",
        "tools",
        "tools/list2",
        "rpc.discover",
        "tasks/result",
        "tasks/list",
        "notifications/initialized",
        "sampling/createMessage",
        "roots/list",
        "elicitation/create",
    ];
    let mut rows: Vec<MessageCase> = removed.map(|method| modern_row(method, &json!({}), NO_METHOD)).into();
    // A header value cannot begin or end with a space, nor be empty, so these two have no modern form.
    let named = unknown.into_iter().filter(|method| !method.trim().is_empty());
    rows.extend(named.map(|method| modern_row(method, &json!({}), NO_METHOD)));
    rows.extend(unknown.map(|method| legacy_row(method, &json!({}), NO_METHOD_LEGACY)));
    for method in ["server/discover", "subscriptions/listen"] {
        rows.push(legacy_row(method, &json!({}), NO_METHOD_LEGACY));
    }
    rows.push(modern_row("tools/li\u{17f}t", &json!({}), NO_METHOD).on_channel_only());
    rows.push(modern_row("prompts/list", &json!({}), NO_METHOD));
    rows.push(modern_row("completion/complete", &json!({}), NO_METHOD));
    rows.push(legacy_row("prompts/list", &json!({}), NO_METHOD_LEGACY));
    rows
}

impl MessageCase {
    fn on_channel_only(self) -> Self {
        Self { modern: None, legacy: None, ..self }
    }
}

fn metas() -> Vec<MessageCase> {
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let row = |meta: Value, expect| modern_row("tools/list", &json!({ "_meta": meta }), expect);
    let mut rows = vec![
        row(json!({ version: MODERN }), NO_META),
        row(json!({ capabilities: {} }), NO_META),
        row(
            json!({ version: MODERN, capabilities: {}, "io.modelcontextprotocol/logLevel": "loud" }),
            BAD_PARAMS,
        ),
        row(json!({ version: MODERN, capabilities: {}, "io.modelcontextprotocol/logLevel": 3 }), BAD_PARAMS),
    ];
    for wrong in [json!(null), json!(20260728), json!([MODERN]), json!({}), json!(true)] {
        rows.push(row(json!({ version: wrong, capabilities: {} }), NO_META));
    }
    for wrong in [json!(null), json!(1), json!([]), json!("x"), json!(true)] {
        rows.push(row(json!({ version: MODERN, capabilities: wrong }), NO_META));
    }
    for unknown in ["v999", "2026-07-29", "2025-11-25", "2024-11-05", "20260728", "latest", ""] {
        let text = row(json!({ version: unknown, capabilities: {} }), NO_VERSION);
        rows.push(text.header("MCP-Protocol-Version", unknown));
    }
    // Without `_meta` only the header marks the request as modern.
    let bare = |members: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{members}}}"#);
        MessageCase::new(format!("a modern request without a claim: {members}"), text).id("1").modern(NO_META)
    };
    rows.extend(
        ["", r#","params":{}"#, r#","params":{"_meta":{}}"#, r#","params":{"_meta":{"progressToken":1}}"#]
            .map(bare),
    );
    rows
}

fn modern_params() -> Vec<MessageCase> {
    let call = |params: Value, expect| modern_row("tools/call", &params, expect);
    let listen = |params: Value, expect| modern_row("subscriptions/listen", &params, expect);
    vec![
        call(json!({ "name": "nobody" }), BAD_PARAMS),
        call(json!({ "name": "Echo" }), BAD_PARAMS),
        call(json!({ "name": "echo", "requestState": 1 }), BAD_PARAMS),
        call(json!({ "name": "echo", "requestState": "forged" }), BAD_PARAMS),
        call(json!({ "name": "echo", "inputResponses": [] }), BAD_PARAMS),
        call(json!({ "name": "echo", "arguments": {} }), ExpectedReply::Answered),
        call(json!({ "name": "echo", "arguments": [] }), BAD_PARAMS),
        modern_row("resources/read", &json!({ "uri": "test://nowhere" }), BAD_PARAMS),
        modern_row("tools/list", &json!({ "cursor": "forged" }), BAD_PARAMS),
        modern_row("tools/list", &json!({ "cursor": 7 }), BAD_PARAMS),
        listen(json!({}), BAD_PARAMS),
        listen(json!({ "notifications": [] }), BAD_PARAMS),
        listen(json!({ "notifications": { "resourceSubscriptions": [1] } }), BAD_PARAMS),
        listen(json!({ "notifications": { "resourceSubscriptions": "test://page" } }), BAD_PARAMS),
        listen(
            json!({ "notifications": { "resourceSubscriptions": vec!["test://page"; 2000].iter().enumerate().map(|(n, uri)| format!("{uri}{n}")).collect::<Vec<_>>() } }),
            BAD_PARAMS,
        ),
    ]
}

fn legacy_params() -> Vec<MessageCase> {
    let call = |params: Value, expect| legacy_row("tools/call", &params, expect);
    vec![
        call(json!({}), BAD_PARAMS),
        call(json!({ "name": 1 }), BAD_PARAMS),
        call(json!({ "name": "nobody" }), BAD_PARAMS),
        call(json!({ "name": "echo", "arguments": 1 }), BAD_PARAMS),
        legacy_row(
            "resources/read",
            &json!({ "uri": "test://nowhere" }),
            ExpectedReply::Refused(-32002, 200),
        ),
        legacy_row("resources/read", &json!({}), BAD_PARAMS),
        legacy_row("resources/subscribe", &json!({}), BAD_PARAMS),
        legacy_row("logging/setLevel", &json!({ "level": "loud" }), BAD_PARAMS),
        legacy_row("logging/setLevel", &json!({}), BAD_PARAMS),
        legacy_row("tools/list", &json!({ "cursor": "forged" }), BAD_PARAMS),
        // A handshake without its parameters opens no session.
        MessageCase {
            legacy: Some(BAD_PARAMS),
            ..legacy_row("initialize", &json!({ "capabilities": {} }), BAD_PARAMS)
        },
        legacy_row("initialize", &json!({ "protocolVersion": 1 }), BAD_PARAMS),
        legacy_row("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": [] }), BAD_PARAMS),
    ]
}

fn notifications() -> Vec<MessageCase> {
    let texts = [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"a":[1,2,3]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","method":""}"#,
    ];
    texts
        .map(|text| {
            MessageCase::new(format!("a notification: {text:.80}"), text).everywhere(ExpectedReply::Accepted)
        })
        .into()
}

/// Long texts of a peer are shortened in the response.
fn long_texts() -> Vec<MessageCase> {
    let long = "z".repeat(200_000);
    let twice = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"{long}":1,"{long}":2}}}}"#);
    let in_meta = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":"{long}"}}}}"#);
    let claim = json!({ "io.modelcontextprotocol/protocolVersion": long, "io.modelcontextprotocol/clientCapabilities": {} });
    let version = modern_request("tools/list", &json!({ "_meta": claim }));
    vec![
        MessageCase::new("a long member twice", twice).id("1").everywhere(NOT_A_MESSAGE),
        MessageCase::new("a long text as _meta", in_meta).id("1").everywhere(NOT_A_MESSAGE),
        MessageCase::new("a long version", version).id("1").channel(NO_VERSION),
        legacy_row(&long, &json!({}), NO_METHOD_LEGACY),
        legacy_row("tools/call", &json!({ "name": long }), BAD_PARAMS),
        legacy_row(
            "tools/call",
            &json!({ "name": "echo", "arguments": { long.clone(): 1 } }),
            ExpectedReply::Answered,
        ),
        legacy_row(
            "resources/read",
            &json!({ "uri": format!("test://{long}") }),
            ExpectedReply::Refused(-32002, 200),
        ),
        legacy_row("logging/setLevel", &json!({ "level": long }), BAD_PARAMS),
        legacy_row("tools/list", &json!({ "cursor": long }), BAD_PARAMS),
    ]
}

/// Requests that are right but for their headers.
pub(super) fn header_rows() -> Vec<MessageCase> {
    let row = |name: &str, headers: &[(&'static str, &str)], expect| {
        let row = MessageCase::new(format!("headers: {name}"), raw_http::echo(1, "x")).id("1").modern(expect);
        headers.iter().fold(row, |row, (name, value)| row.header(name, *value))
    };
    vec![
        row("another version", &[("MCP-Protocol-Version", "2025-11-25")], MISMATCH),
        row("no such version", &[("MCP-Protocol-Version", "v999")], MISMATCH),
        row("version in capitals", &[("MCP-Protocol-Version", "2026-07-28T")], MISMATCH),
        row("no version", &[("MCP-Protocol-Version", ABSENT)], MISMATCH),
        row(
            "two versions",
            &[("MCP-Protocol-Version", "2026-07-28"), ("mcp-protocol-version", "2026-07-28")],
            MISMATCH,
        ),
        row("another method", &[("Mcp-Method", "tools/list")], MISMATCH),
        row("the method in capitals", &[("Mcp-Method", "TOOLS/CALL")], MISMATCH),
        row("no method", &[("Mcp-Method", ABSENT)], MISMATCH),
        row("an empty method", &[("Mcp-Method", "")], MISMATCH),
        row("two methods", &[("Mcp-Method", "tools/call"), ("mcp-method", "tools/list")], MISMATCH),
        row("another name", &[("Mcp-Name", "wait")], MISMATCH),
        row("the name in capitals", &[("Mcp-Name", "ECHO")], MISMATCH),
        row("no name", &[("Mcp-Name", ABSENT)], MISMATCH),
        row("an empty name", &[("Mcp-Name", "")], MISMATCH),
        row("two equal names", &[("Mcp-Name", "echo"), ("mcp-name", "echo")], MISMATCH),
        row("another name in base64", &[("Mcp-Name", "=?base64?d2FpdA==?=")], MISMATCH),
        row("base64 without padding", &[("Mcp-Name", "=?base64?ZWNobw?=")], MISMATCH),
        row("base64 that is none", &[("Mcp-Name", "=?base64?****?=")], MISMATCH),
        row("base64 in capitals", &[("Mcp-Name", "=?BASE64?ZWNobw==?=")], MISMATCH),
        row("the name in base64", &[("Mcp-Name", "=?base64?ZWNobw==?=")], ExpectedReply::Answered),
        row("a session that is not looked at", &[("Mcp-Session-Id", "nonsense")], ExpectedReply::Answered),
    ]
}

/// Marks a header that is left out.
pub(crate) const ABSENT: &str = "\0";
