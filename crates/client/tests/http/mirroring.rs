//! Headers that repeat the body of a modern request, so that proxies need not read the body.

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

fn tools() -> Value {
    let marked = |kind: &str, header: &str| json!({ "type": kind, "x-mcp-header": header });
    json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
        { "name": "weather", "inputSchema": { "type": "object", "properties": {
            "place": marked("string", "Place"),
            "days": marked("integer", "Days"),
            "short": marked("boolean", "Short"),
            "more": { "type": "object", "properties": { "unit": marked("string", "Unit") } },
            "free": { "type": "string" },
        } } },
        { "name": "invalid", "inputSchema": { "type": "object", "properties": { "n": marked("number", "N") } } },
    ] })
}

/// Refuses a call that lacks a header, as for a client that has not listed the tools of the server.
fn strict(seen: &SeenRequest) -> ScriptedResponse {
    match seen.request_name().as_str() {
        "tools/list" => seen.result(tools()),
        "tools/call" if seen.header("mcp-param-place").is_none() => seen.error(400, -32020, Value::Null),
        _ => seen.result(json!({ "resultType": "complete", "content": [] })),
    }
}

#[tokio::test]
async fn arguments_are_mirrored_in_headers_after_the_tools_are_listed() {
    let server = ScriptedHttpServer::start(|seen| seen.discover().unwrap_or_else(|| strict(seen))).await;
    let client = within(direct().pin(Revision::NEWEST).connect(server.url.as_str())).await.unwrap();
    let arguments =
        json!({ "place": "Zürich", "days": 3, "short": null, "more": { "unit": " C" }, "free": "x" });
    within(client.call("weather", arguments)).await.unwrap();
    assert_eq!(server.request_names(), ["server/discover", "tools/call", "tools/list", "tools/call"]);
    let seen = server.seen();
    for request in &seen {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), request.body["method"].as_str());
        let is_call = request.request_name() == "tools/call";
        assert_eq!(request.header("mcp-name"), is_call.then_some("weather"));
    }
    let repeated = |request: &SeenRequest| -> Vec<(String, String)> {
        let params = request.headers.iter().filter(|(name, _)| name.starts_with("mcp-param-"));
        let mut params: Vec<_> = params.map(|(name, value)| (name.clone(), value.clone())).collect();
        params.sort();
        params
    };
    assert_eq!(repeated(&seen[1]), []);
    let expected = [
        ("mcp-param-days", "3"),
        ("mcp-param-place", "=?base64?WsO8cmljaA==?="),
        ("mcp-param-unit", "=?base64?IEM=?="),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(repeated(&seen[3]), expected);

    let listed = within(client.tools()).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["weather"]);
    assert_eq!((listed.skipped.len(), listed.skipped[0].name.as_str()), (1, "invalid"));
    within(client.call("weather", json!({ "place": "Bern" }))).await.unwrap();
    let last = server.seen().pop().unwrap();
    assert_eq!(repeated(&last), [("mcp-param-place".to_owned(), "Bern".to_owned())]);
}
