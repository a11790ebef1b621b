use serde::Serialize;
use serde_json::{Value, json};
use trunkline::prelude::*;

use crate::support::{call, only, request};

#[derive(Serialize, schemars::JsonSchema)]
struct Place {
    name: String,
}

fn ulm() -> Place {
    Place { name: "Ulm".to_owned() }
}

#[derive(Debug, thiserror::Error)]
#[error("the map is wet")]
struct Wet;

/// An alias that no attribute can look into.
type Found<T> = Result<T, Wet>;

#[tool]
fn bare() -> Place {
    ulm()
}

#[tool]
fn wrapped() -> Json<Place> {
    Json(ulm())
}

#[tool]
fn fallible(fail: bool) -> Result<Place, ToolError> {
    if fail { Err(ToolError::new("lost")) } else { Ok(ulm()) }
}

#[tool]
fn aliased(fail: bool) -> Found<Place> {
    if fail { Err(Wet) } else { Ok(ulm()) }
}

#[tool]
fn text(fail: bool) -> Found<String> {
    if fail { Err(Wet) } else { Ok("Ulm".to_owned()) }
}

#[tool]
fn list() -> Vec<Place> {
    vec![ulm()]
}

#[tool]
fn perhaps(found: bool) -> Option<Place> {
    found.then(ulm)
}

#[tool]
fn content() -> Vec<Content> {
    vec![Content::text("Ulm")]
}

#[tool]
fn whole() -> CallToolResult {
    CallToolResult::error("no")
}

#[tool]
fn value() -> Value {
    json!({ "any": 1 })
}

#[tokio::test]
async fn values_that_can_be_json_are_structured_content_with_a_schema() {
    let place = json!({ "name": "Ulm" });
    let schema = json!({
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
    });
    let well = json!({ "fail": false });
    for (tool, arguments, structured, is_described) in [
        (bare(), json!({}), &place, true),
        (wrapped(), json!({}), &place, true),
        (fallible(), well.clone(), &place, true),
        (aliased(), well, &place, true),
        (value(), json!({}), &json!({ "any": 1 }), false),
    ] {
        let server = Server::new("test").with(tool);
        let described = only(&server, "tools/list", "tools").await;
        assert_eq!(described.get("outputSchema"), is_described.then_some(&schema), "{described}");
        let name = described["name"].as_str().unwrap();
        assert_eq!(call(&server, name, arguments).await, *structured, "{name}");
    }
    let server = Server::new("test").with((list, perhaps));
    assert_eq!(call(&server, "list", json!({})).await, json!([place]));
    assert_eq!(call(&server, "perhaps", json!({ "found": true })).await, place);
    assert_eq!(call(&server, "perhaps", json!({ "found": false })).await, Value::Null);
}

#[tokio::test]
async fn text_content_and_whole_results_pass_unchanged() {
    let server = Server::new("test").with((text, content, whole));
    for (tool, arguments, expected) in [
        ("text", json!({ "fail": false }), "Ulm"),
        ("content", json!({}), "Ulm"),
        ("whole", json!({}), "!no"),
    ] {
        assert_eq!(call(&server, tool, arguments).await, json!(expected), "{tool}");
    }
}

#[tokio::test]
async fn handler_errors_become_tool_errors() {
    let server = Server::new("test").with((fallible, aliased, text));
    for (tool, expected) in
        [("fallible", "!lost"), ("aliased", "!the map is wet"), ("text", "!the map is wet")]
    {
        assert_eq!(call(&server, tool, json!({ "fail": true })).await, json!(expected), "{tool}");
    }
}

#[resource("test://bare")]
fn read_bare() -> Place {
    ulm()
}

#[resource("test://result")]
fn read_result() -> Found<Place> {
    Ok(ulm())
}

#[resource("test://option")]
fn read_option() -> Option<Place> {
    Some(ulm())
}

#[resource("test://both")]
fn read_both() -> Found<Option<Place>> {
    Ok(Some(ulm()))
}

#[resource("test://wrapped")]
fn read_wrapped() -> Found<Option<Json<Place>>> {
    Ok(Some(Json(ulm())))
}

#[resource("test://none")]
fn read_none() -> Found<Option<Place>> {
    Ok(None)
}

#[resource("test://wet")]
fn read_wet() -> Found<Place> {
    Err(Wet)
}

#[resource("test://bytes")]
fn read_bytes() -> Vec<u8> {
    vec![1, 2]
}

#[tokio::test]
async fn resources_become_json_unless_they_are_text_or_bytes() {
    let parts =
        (read_bare, read_result, read_option, read_both, read_wrapped, read_none, read_wet, read_bytes);
    let server = Server::new("test").with(parts);
    for uri in ["test://bare", "test://result", "test://option", "test://both", "test://wrapped"] {
        let read = request(&server, "resources/read", json!({ "uri": uri })).await;
        let expected = json!([{ "uri": uri, "mimeType": "application/json", "text": r#"{"name":"Ulm"}"# }]);
        assert_eq!(read["contents"], expected);
    }
    let bytes = request(&server, "resources/read", json!({ "uri": "test://bytes" })).await;
    assert_eq!(bytes["contents"], json!([{ "uri": "test://bytes", "blob": "AQI=" }]));
    let none = request(&server, "resources/read", json!({ "uri": "test://none" })).await;
    assert_eq!(none["code"], -32602, "{none}");
    let wet = request(&server, "resources/read", json!({ "uri": "test://wet" })).await;
    assert_eq!(wet["message"], "the map is wet", "{wet}");
}
