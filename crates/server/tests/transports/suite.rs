//! One script for each era, run over every transport: what comes back must be the same.

use serde_json::{Value, json};
use trunkline_server::Tool;

use crate::service::{Service, initialize, modern, note, request, tool};
use crate::transport_link::{TRANSPORTS, TransportLink};

/// Runs a legacy client's script and returns everything that it received.
async fn legacy_script(service: &Service, line: &mut TransportLink, revision: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    line.send(&initialize(revision)).await;
    heard.push(line.receive().await);
    line.send(&note("notifications/initialized", json!({}))).await;
    line.send(&request(1, "tools/list", json!({}))).await;
    heard.push(line.receive().await);
    line.send(&tool(2, "add", json!({ "a": 2, "b": 3 }))).await;
    heard.push(line.receive().await);

    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "t" } });
    line.send(&request(3, "tools/call", params)).await;
    for _ in 0..3 {
        heard.push(line.receive().await);
    }

    if revision >= "2025-06-18" {
        line.send(&tool(4, "confirm", json!({}))).await;
        let mut question = line.receive().await;
        let content = json!({ "action": "accept", "content": { "confirm": true } });
        line.send(&json!({ "jsonrpc": "2.0", "id": question["id"].take(), "result": content })).await;
        heard.push(question);
        heard.push(line.receive().await);
    }

    line.send(&tool(5, "wait", json!({}))).await;
    service.waiting.are(1).await;
    line.send(&note("notifications/cancelled", json!({ "requestId": 5 }))).await;
    service.waiting.are(0).await;
    line.send(&request(6, "ping", json!({}))).await;
    let mut pong = line.receive().await;
    if pong["id"] == 5 {
        // A response over HTTP has begun and cannot end without a word.
        pong = line.receive().await;
    }
    heard.push(pong);
    heard
}

/// Runs a modern client's script and returns everything that it received, without random values.
async fn modern_script(service: &Service, line: &mut TransportLink) -> Vec<Value> {
    let mut heard = Vec::new();
    line.send(&modern(1, "server/discover", json!({}))).await;
    heard.push(line.receive().await);
    let call =
        |id, name: &str, arguments| modern(id, "tools/call", json!({ "name": name, "arguments": arguments }));
    line.send(&call(2, "add", json!({ "a": 2, "b": 3 }))).await;
    heard.push(line.receive().await);

    line.send(&call(3, "confirm", json!({}))).await;
    let mut question = line.receive().await;
    let mut again = call(4, "confirm", json!({}));
    again["params"]["requestState"] = question["result"]["requestState"].take();
    again["params"]["inputResponses"] =
        json!({ "sure": { "action": "accept", "content": { "confirm": true } } });
    line.send(&again).await;
    heard.push(question);
    heard.push(line.receive().await);

    line.send(&modern(5, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })))
        .await;
    heard.push(line.receive().await);
    service.parts.add(Tool::new("late").run(async || "late")).unwrap();
    heard.push(line.receive().await);
    assert!(service.parts.remove_tool("late"));
    heard.push(line.receive().await);
    heard
}

#[tokio::test]
async fn legacy_client_gets_the_same_responses_over_every_transport() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut expected: Option<Vec<Value>> = None;
        for transport in TRANSPORTS {
            let service = Service::start().await;
            let mut line = TransportLink::open(transport, &service).await;
            let heard = legacy_script(&service, &mut line, revision).await;
            assert_eq!(heard[0]["result"]["protocolVersion"], revision, "{transport}");
            assert_eq!(heard.last().unwrap()["id"], 6, "{transport}");
            assert_eq!(&heard, expected.get_or_insert(heard.clone()), "{transport} {revision}");
            drop(line);
            service.is_left_alone().await;
        }
        let expected = expected.unwrap();
        assert_eq!(expected[2]["result"]["content"][0]["text"], "5");
        assert_eq!(expected[4]["params"]["progress"], 2);
        if revision >= "2025-06-18" {
            assert_eq!(expected[6]["method"], "elicitation/create");
            assert_eq!(expected[7]["result"]["content"][0]["text"], "true");
        }
    }
}

#[tokio::test]
async fn modern_client_gets_the_same_responses_over_every_transport() {
    let mut expected: Option<Vec<Value>> = None;
    for transport in TRANSPORTS {
        let service = Service::start().await;
        let mut line = TransportLink::open(transport, &service).await;
        let heard = modern_script(&service, &mut line).await;
        assert_eq!(&heard, expected.get_or_insert(heard.clone()), "{transport}");
        drop(line);
        service.is_left_alone().await;
    }
    let expected = expected.unwrap();
    assert_eq!(expected[1]["result"]["content"][0]["text"], "5");
    assert_eq!(expected[2]["result"]["resultType"], "input_required");
    assert_eq!(expected[3]["result"]["content"][0]["text"], "true");
    assert_eq!(expected[5]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn client_disconnecting_from_a_channel_cancels_its_calls() {
    for transport in ["memory", "unix", "sse", "websocket"] {
        for call in
            [tool(1, "wait", json!({})), modern(1, "tools/call", json!({ "name": "wait", "arguments": {} }))]
        {
            let service = Service::start().await;
            let mut line = TransportLink::open(transport, &service).await;
            line.send(&initialize("2025-11-25")).await;
            line.receive().await;
            line.send(&call).await;
            service.waiting.are(1).await;
            drop(line);
            service.waiting.are(0).await;
            service.is_left_alone().await;
        }
    }
}

#[tokio::test]
async fn two_hundred_concurrent_calls_each_get_one_response() {
    for transport in TRANSPORTS {
        let service = Service::start().await;
        let mut line = TransportLink::open(transport, &service).await;
        line.send(&initialize("2025-11-25")).await;
        line.receive().await;
        for id in 1..=200 {
            line.send(&tool(id, "add", json!({ "a": id, "b": 0 }))).await;
            if *transport == "streamable" || id % 16 == 0 {
                tokio::task::yield_now().await;
            }
            if *transport == "streamable" {
                // Its answers wait in a queue of the test's own.
                assert_eq!(line.receive().await["result"]["content"][0]["text"], id.to_string());
            }
        }
        if *transport != "streamable" {
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 200 {
                let answer = line.receive().await;
                let id = answer["id"].as_u64().unwrap();
                assert_eq!(answer["result"]["content"][0]["text"], id.to_string(), "{transport}");
                assert!(seen.insert(id), "{transport}: {id} was answered twice");
            }
        }
    }
}
