use serde_json::{Value, json};
use trunkline::StateKeys;
use trunkline::prelude::*;

use crate::support::{Client, call, only};

#[derive(Form)]
enum Size {
    Small,
    Large,
}

/// Books a table.
#[tool(destructive)]
async fn book(
    day: String,
    #[ask("Book a table on {day}?", key = "confirm")] ok: Confirm,
    context: Context,
    #[ask("How large?")] size: Size,
) -> Result<String, ToolError> {
    let size = if matches!(size, Size::Small) { "small" } else { "large" };
    Ok(format!("{day} {} {size} {}", ok.0, context.revision()))
}

#[prompt]
fn ask_first(#[ask("Sure?")] sure: Confirm) -> String {
    sure.0.to_string()
}

#[resource("test://{name}")]
fn ask_to_read(name: String, #[ask("May {name} be read?")] may: Confirm) -> Option<String> {
    may.0.then_some(name)
}

/// Answers the questions that a request is answered with, and returns what they were and the result.
async fn answer(clients: &mut [Client], method: &str, params: Value, answers: Value) -> (Value, Value) {
    let asked = clients.first_mut().expect("a client").request(method, params.clone()).await;
    let questions = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {asked}"));
    let messages =
        questions.iter().map(|(key, question)| (key.clone(), question["params"]["message"].clone()));
    let messages = Value::Object(messages.collect());
    let mut retry = params;
    retry["inputResponses"] = answers;
    retry["requestState"] = asked["requestState"].clone();
    (messages, clients.last_mut().expect("a client").request(method, retry).await)
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn form_parameters_are_elicited_in_one_round() {
    let server = Server::new("test").with(book);
    let described = only(&server, "tools/list", "tools").await;
    let day = json!({ "day": { "type": "string" } });
    assert_eq!(described["inputSchema"]["properties"], day, "questions are no arguments");

    let params = json!({ "name": "book", "arguments": { "day": "Monday" } });
    let answers = json!({ "confirm": accept(&json!({ "confirm": true })), "size": accept(&json!({ "choice": "Large" })) });
    let keys = StateKeys::random().unwrap();
    let mut replicas = [Client::of_replica(&server, &keys), Client::of_replica(&server, &keys)];
    let (messages, result) = answer(&mut replicas, "tools/call", params.clone(), answers).await;
    assert_eq!(messages, json!({ "confirm": "Book a table on Monday?", "size": "How large?" }));
    assert_eq!(result["content"][0]["text"], "Monday true large 2026-07-28", "{result}");

    let declined =
        json!({ "confirm": { "action": "decline" }, "size": accept(&json!({ "choice": "Large" })) });
    let (_, result) = answer(&mut replicas, "tools/call", params, declined).await;
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("the user declined"))
    );
}

#[tokio::test]
async fn missing_elicitation_capability_is_named() {
    let server = Server::new("test").with(book);
    let refused = server.call("book", json!({ "day": "Monday" })).await.unwrap_err();
    assert!(refused.to_string().contains("elicitation"), "{refused}");
    let wrong = call(&server, "book", json!({})).await;
    assert!(wrong.as_str().unwrap().contains("day"), "the arguments come first: {wrong}");
}

#[tokio::test]
async fn prompts_and_resources_may_ask_too() {
    let server = Server::new("test").with((ask_first, ask_to_read));
    let mut client = [Client::of(&server)];
    let yes = accept(&json!({ "confirm": true }));
    let params = json!({ "name": "ask_first" });
    let (_, got) = answer(&mut client, "prompts/get", params, json!({ "sure": yes })).await;
    assert_eq!(got["messages"][0]["content"]["text"], "true", "{got}");
    let params = json!({ "uri": "test://a" });
    let (messages, read) = answer(&mut client, "resources/read", params, json!({ "may": yes })).await;
    assert_eq!(messages, json!({ "may": "May a be read?" }));
    assert_eq!(read["contents"][0]["text"], "a", "{read}");
}
