//! Every feature of a server, over every transport and in both eras: what comes back must be the same.

use serde_json::{Value, json};
use trunkline_server::protocol::LoggingLevel;
use trunkline_server::protocol::model::CreateMessageRequest;
use trunkline_server::{Context, Prompt, Resource, ResourceTemplate, Tool, ToolError, sample};

use crate::service::{Service, initialize, modern, note, request, tool};
use crate::transport_link::{TRANSPORTS, TransportLink};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NameArguments {
    name: String,
}

fn add_parts(service: &Service) {
    let complete = |typed: String, _| async move {
        ["ann", "anna", "bob"]
            .iter()
            .filter(|name| name.starts_with(&typed))
            .map(|name| (*name).to_owned())
            .collect()
    };
    let hello = Prompt::new("hello")
        .complete("name", complete)
        .get(async |NameArguments { name }| format!("Greet {name}."));
    let page = Resource::new("test://page", "page").text("a page");
    let note = ResourceTemplate::new("note://{name}", "note")
        .read(async |NameArguments { name }| format!("of {name}"));
    let talk = Tool::new("talk").run(async |cx: Context| {
        cx.log(LoggingLevel::Debug, "quietly");
        cx.log(LoggingLevel::Error, "loudly");
        "said"
    });
    let model = Tool::new("model").run(async |cx: Context| -> Result<String, ToolError> {
        Ok(cx.ask(sample(CreateMessageRequest::new([], 5)).key("sampled")).await?.model)
    });
    service.parts.add(hello).unwrap();
    service.parts.add(page).unwrap();
    service.parts.add(note).unwrap();
    service.parts.add(talk).unwrap();
    service.parts.add(model).unwrap();
}

/// Requests that every era has, and a text that each response must contain.
fn questions() -> Vec<(&'static str, Value, &'static str)> {
    let argument = json!({ "name": "name", "value": "an" });
    let reference = json!({ "type": "ref/prompt", "name": "hello" });
    vec![
        ("prompts/list", json!({}), "hello"),
        ("prompts/get", json!({ "name": "hello", "arguments": { "name": "ann" } }), "Greet ann."),
        ("resources/list", json!({}), "test://page"),
        ("resources/templates/list", json!({}), "note://{name}"),
        ("resources/read", json!({ "uri": "test://page" }), "a page"),
        ("resources/read", json!({ "uri": "note://bob" }), "of bob"),
        ("completion/complete", json!({ "ref": reference, "argument": argument }), r#"["ann","anna"]"#),
    ]
}

/// The response of a model, as a client forwards it.
fn sampled() -> Value {
    json!({ "role": "assistant", "model": "a model", "content": { "type": "text", "text": "hm" } })
}

async fn legacy_script(service: &Service, line: &mut TransportLink, transport: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({ "sampling": {} });
    line.send(&hello).await;
    heard.push(line.receive().await);
    line.send(&note("notifications/initialized", json!({}))).await;
    for (id, (method, params, said)) in (1..).zip(questions()) {
        line.send(&request(id, method, params)).await;
        let answer = line.receive().await;
        assert!(answer["result"].to_string().contains(said), "{transport} {method}: {answer}");
        heard.push(answer);
    }
    line.send(&request(20, "logging/setLevel", json!({ "level": "warning" }))).await;
    heard.push(line.receive().await);
    line.send(&tool(21, "talk", json!({}))).await;
    let log = line.receive().await;
    assert_eq!(log["params"]["data"], "loudly", "{transport}: {log}");
    heard.push(log);
    heard.push(line.receive().await);

    line.send(&tool(22, "model", json!({}))).await;
    let mut question = line.receive().await;
    assert_eq!(question["method"], "sampling/createMessage", "{transport}");
    line.send(&json!({ "jsonrpc": "2.0", "id": question["id"].take(), "result": sampled() })).await;
    heard.push(question);
    heard.push(line.receive().await);

    line.send(&request(23, "resources/subscribe", json!({ "uri": "test://page" }))).await;
    heard.push(line.receive().await);
    // What belongs to no call comes on a stream of its own there, which is tested with that.
    if transport != "streamable" {
        service.parts.notify_updated("test://page");
        let updated = line.receive().await;
        assert_eq!(updated["method"], "notifications/resources/updated", "{transport}: {updated}");
        assert_eq!(updated["params"]["uri"], "test://page");
    }
    line.send(&request(24, "resources/unsubscribe", json!({ "uri": "test://page" }))).await;
    heard.push(line.receive().await);
    heard
}

async fn modern_script(service: &Service, line: &mut TransportLink, transport: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    for (id, (method, params, said)) in (1..).zip(questions()) {
        line.send(&modern(id, method, params)).await;
        let answer = line.receive().await;
        assert!(answer["result"].to_string().contains(said), "{transport} {method}: {answer}");
        heard.push(answer);
    }
    let mut talk = modern(21, "tools/call", json!({ "name": "talk", "arguments": {} }));
    talk["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    line.send(&talk).await;
    let log = line.receive().await;
    assert_eq!(log["params"]["data"], "loudly", "{transport}: {log}");
    heard.push(log);
    heard.push(line.receive().await);

    let mut call = modern(22, "tools/call", json!({ "name": "model", "arguments": {} }));
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "sampling": {} });
    line.send(&call).await;
    let mut question = line.receive().await;
    call["params"]["requestState"] = question["result"]["requestState"].take();
    call["params"]["inputResponses"] = json!({ "sampled": sampled() });
    call["id"] = json!(23);
    heard.push(question);
    line.send(&call).await;
    heard.push(line.receive().await);

    let wanted = json!({ "notifications": { "resourceSubscriptions": ["test://page"] } });
    line.send(&modern(24, "subscriptions/listen", wanted)).await;
    heard.push(line.receive().await);
    service.parts.notify_updated("test://page");
    heard.push(line.receive().await);
    heard
}

#[tokio::test]
async fn every_feature_answers_the_same_over_every_transport() {
    for era in ["legacy", "modern"] {
        let mut expected: Option<Vec<Value>> = None;
        for transport in TRANSPORTS {
            let service = Service::start().await;
            add_parts(&service);
            let mut line = TransportLink::open(transport, &service).await;
            let heard = match era {
                "legacy" => legacy_script(&service, &mut line, transport).await,
                _ => modern_script(&service, &mut line, transport).await,
            };
            let answered = heard.iter().filter(|message| message["error"].is_null()).count();
            assert_eq!(answered, heard.len(), "{transport} {era}: {heard:?}");
            assert!(
                heard.iter().any(|message| message["result"]["content"][0]["text"] == "a model"),
                "{transport}"
            );
            assert_eq!(&heard, expected.get_or_insert(heard.clone()), "{transport} {era}");
            drop(line);
            service.is_left_alone().await;
        }
    }
}
