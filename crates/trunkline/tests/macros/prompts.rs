use std::collections::BTreeMap;

use serde_json::json;
use trunkline::prelude::*;

use crate::support::{only, request};

/// Writes a letter.
#[prompt(title = "Letter")]
async fn letter(
    context: Context,
    /// To whom.
    #[complete(names)]
    to: String,
    #[default(1)] pages: u8,
    about: Option<String>,
) -> Vec<PromptMessage> {
    let client = context.client().map(|client| client.name).unwrap_or_default();
    vec![PromptMessage::user(format!("{pages} {to} {about:?} {client}")), PromptMessage::assistant("Dear …")]
}

async fn names(typed: String, _: BTreeMap<String, String>) -> Vec<String> {
    let names = ["Ann", "Anton", "Bea"].into_iter();
    names.filter(|name| name.starts_with(&typed)).map(ToOwned::to_owned).collect()
}

#[prompt(name = "say hello", description = "Greets.")]
fn hello() -> Result<&'static str, ToolError> {
    Ok("Say hello.")
}

#[tokio::test]
async fn function_becomes_a_prompt_with_its_arguments_in_order() {
    let server = Server::new("test").with(letter);
    let expected = json!({
        "name": "letter",
        "title": "Letter",
        "description": "Writes a letter.",
        "arguments": [
            { "name": "to", "description": "To whom.", "required": true },
            { "name": "pages" },
            { "name": "about" },
        ],
    });
    assert_eq!(only(&server, "prompts/list", "prompts").await, expected);
}

#[tokio::test]
async fn arguments_are_read_from_text() {
    let server = Server::new("test").with((letter, hello));
    for (arguments, expected) in [
        (json!({ "to": "Ann" }), "1 Ann None test"),
        (json!({ "to": "Ann", "pages": "3", "about": "it" }), r#"3 Ann Some("it") test"#),
    ] {
        let got = request(&server, "prompts/get", json!({ "name": "letter", "arguments": arguments })).await;
        let messages = json!([
            { "role": "user", "content": { "type": "text", "text": expected } },
            { "role": "assistant", "content": { "type": "text", "text": "Dear …" } },
        ]);
        assert_eq!(got["messages"], messages, "{got}");
    }
    for arguments in [json!({}), json!({ "to": "Ann", "pages": "many" })] {
        let refused =
            request(&server, "prompts/get", json!({ "name": "letter", "arguments": arguments })).await;
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    let hello = request(&server, "prompts/get", json!({ "name": "say hello" })).await;
    assert_eq!(hello["messages"][0]["content"]["text"], "Say hello.");
}

#[tokio::test]
async fn values_are_suggested_by_a_function() {
    let server = Server::new("test").with(letter);
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "letter" }, "argument": { "name": "to", "value": "An" },
    });
    let completed = request(&server, "completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["Ann", "Anton"]));
}
