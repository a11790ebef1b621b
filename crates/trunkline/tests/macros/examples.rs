use serde_json::json;

use crate::support::{call, only, request};

#[expect(dead_code, reason = "the test serves it in its own way")]
#[path = "../../../../examples/add.rs"]
mod add;
#[expect(dead_code, reason = "the test serves it in its own way")]
#[path = "../../../../examples/greeting.rs"]
mod greeting;

#[tokio::test]
async fn greeting_example_greets() {
    let server = greeting::server();
    let described = only(&server, "prompts/list", "prompts").await;
    let arguments = json!([{ "name": "name", "description": "The name to greet.", "required": true }]);
    assert_eq!(described["arguments"], arguments);
    let params = json!({ "name": "greeting", "arguments": { "name": "Ann" } });
    let greeted = request(&server, "prompts/get", params).await;
    assert_eq!(greeted["description"], "Personalized greeting");
    let message = json!({ "role": "assistant", "content": { "type": "text", "text": "Hello Ann" } });
    assert_eq!(greeted["messages"], json!([message]));
}

#[tokio::test]
async fn typed_tool_example_adds() {
    let server = add::server();
    let described = only(&server, "tools/list", "tools").await;
    let first = json!({ "type": "integer", "description": "The first number." });
    assert_eq!(described["inputSchema"]["properties"]["a"], first);
    assert_eq!(described["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(call(&server, "add", json!({ "a": 2, "b": 3 })).await, json!({ "sum": 5 }));
    let wrong = call(&server, "add", json!({ "a": 2, "b": "three" })).await;
    assert!(wrong.as_str().unwrap().starts_with("!Invalid arguments: `b`"), "{wrong}");
}
