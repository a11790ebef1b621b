//! What a handler knows of its caller is the same over every transport.

use serde_json::{Value, json};

use crate::line::{Line, TRANSPORTS};
use crate::service::{Service, initialize, modern, note, tool};

const ROOTS: &str = "file:///w/one,file:///w/two";

fn roots() -> Value {
    json!({ "roots": [{ "uri": "file:///w/one" }, { "uri": "file:///w/two" }] })
}

/// Receives the answer to the call that was sent, and answers questions for roots on the way.
async fn answer(line: &mut Line) -> Value {
    loop {
        let message = line.receive().await;
        if message["method"] != "roots/list" {
            return message;
        }
        line.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": roots() })).await;
    }
}

#[tokio::test]
async fn a_legacy_handler_knows_the_same_of_its_caller_over_every_transport() {
    for transport in TRANSPORTS {
        let service = Service::start().await;
        let mut line = Line::open(transport, &service).await;
        let mut hello = initialize("2025-11-25");
        hello["params"]["capabilities"] = json!({ "roots": { "listChanged": true } });
        line.send(&hello).await;
        line.receive().await;
        line.send(&note("notifications/initialized", json!({}))).await;
        for (id, count) in [(1, "1"), (2, "2")] {
            line.send(&tool(id, "caller", json!({}))).await;
            let known = answer(&mut line).await;
            let expected = format!("true true {ROOTS}");
            assert_eq!(known["result"]["content"][0]["text"], expected, "{transport}: {known}");
            line.send(&tool(id + 10, "count", json!({}))).await;
            assert_eq!(answer(&mut line).await["result"]["content"][0]["text"], count, "{transport}");
        }
        assert_eq!(service.host.states().0, 1, "{transport}");
    }
}

#[tokio::test]
async fn a_modern_handler_knows_the_same_of_its_caller_over_every_transport() {
    for transport in TRANSPORTS {
        let service = Service::start().await;
        let mut line = Line::open(transport, &service).await;
        let mut call = modern(1, "tools/call", json!({ "name": "caller", "arguments": {} }));
        let about = &mut call["params"]["_meta"];
        about["io.modelcontextprotocol/clientCapabilities"] = json!({ "roots": {} });
        line.send(&call).await;
        let mut asked = line.receive().await;
        assert_eq!(asked["result"]["inputRequests"]["roots"]["method"], "roots/list", "{transport}: {asked}");
        call["params"]["inputResponses"] = json!({ "roots": roots() });
        call["params"]["requestState"] = asked["result"]["requestState"].take();
        call["id"] = json!(2);
        line.send(&call).await;
        let known = line.receive().await;
        let expected = format!("false true {ROOTS}");
        assert_eq!(known["result"]["content"][0]["text"], expected, "{transport}: {known}");
    }
}
