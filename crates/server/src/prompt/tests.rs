use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline_protocol::model::{GetPromptResult, PromptArgument, PromptMessage};
use trunkline_protocol::{Method, Refusal};

use crate::call::Context;
use crate::error::ToolError;
use crate::prompt::Prompt;
use crate::server::Server;
use crate::testing::{answer, assert_refused};

#[derive(Deserialize, JsonSchema)]
struct ReviewArguments {
    /// What to review.
    code: String,
    lines: Option<u32>,
}

fn server() -> Server {
    Server::new("test")
        .with(Prompt::new("plain").run_text())
        .with(
            Prompt::new("review")
                .description("Reviews code.")
                .get(|review: ReviewArguments| async move { format!("{} {:?}", review.code, review.lines) }),
        )
        .with(Prompt::new("map").required("a", "The letter.").optional("b", "").get(
            |_: Context, given: BTreeMap<String, String>| async move {
                vec![PromptMessage::user(format!("{given:?}")), PromptMessage::assistant("Well.")]
            },
        ))
        .with(Prompt::new("failing").get(|context: Context| async move {
            if context.is_cancelled() {
                Ok(GetPromptResult::default())
            } else {
                Err(ToolError::new("no luck"))
            }
        }))
}

impl Prompt {
    fn run_text(self) -> Self {
        self.get(|| async { "hello" })
    }
}

fn get(params: &Value) -> Result<Value, Refusal> {
    answer(&server(), Method::PromptsGet, params)
}

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": { "type": "text", "text": text } })
}

#[test]
fn prompts_are_rendered_from_text_arguments() {
    for (params, messages) in [
        (json!({ "name": "plain" }), vec![message("user", "hello")]),
        (json!({ "name": "plain", "arguments": null }), vec![message("user", "hello")]),
        (
            json!({ "name": "review", "arguments": { "code": "x", "lines": "7" } }),
            vec![message("user", "x Some(7)")],
        ),
        (json!({ "name": "review", "arguments": { "code": "5" } }), vec![message("user", "5 None")]),
        (
            json!({ "name": "map", "arguments": { "a": "1", "other": "2" } }),
            vec![message("user", r#"{"a": "1", "other": "2"}"#), message("assistant", "Well.")],
        ),
    ] {
        assert_eq!(get(&params), Ok(json!({ "messages": messages })), "{params}");
    }
}

#[test]
fn invalid_prompt_requests_are_refused_by_argument_name() {
    for (params, message) in [
        (json!({ "name": "none" }), "Unknown prompt: none"),
        (json!({}), "`name` is missing"),
        (json!({ "name": "review" }), "the argument `code` is missing"),
        (json!({ "name": "map", "arguments": { "b": "" } }), "the argument `a` is missing"),
        (json!({ "name": "review", "arguments": { "code": 5 } }), "the argument `code` must be a string"),
        (
            json!({ "name": "review", "arguments": { "code": "x", "lines": "many" } }),
            "`lines`: must be an integer",
        ),
        (json!({ "name": "review", "arguments": ["x"] }), "`arguments` must be an object"),
    ] {
        assert_refused(get(&params), &Refusal::INVALID_PARAMS, message);
    }
}

#[test]
fn prompt_handler_error_is_an_internal_error() {
    assert_refused(get(&json!({ "name": "failing" })), &Refusal::INTERNAL, "no luck");
}

#[test]
fn prompt_arguments_are_described_by_type_or_explicitly() {
    let list = answer(&server(), Method::PromptsList, &json!({})).unwrap();
    let expected = json!([
        { "name": "failing" },
        {
            "name": "map",
            "arguments": [
                { "name": "a", "description": "The letter.", "required": true },
                { "name": "b", "description": "" },
            ],
        },
        { "name": "plain" },
        {
            "name": "review",
            "description": "Reviews code.",
            "arguments": [
                { "name": "code", "description": "What to review.", "required": true },
                { "name": "lines" },
            ],
        },
    ]);
    assert_eq!(list["prompts"], expected);
}

#[test]
fn explicit_argument_description_replaces_the_derived_one() {
    let by_hand = PromptArgument { title: Some("Code".to_owned()), ..PromptArgument::new("code") };
    let prompt = Prompt::new("p").argument(by_hand).get(|_: ReviewArguments| async { "" });
    let list = answer(&Server::new("test").with(prompt), Method::PromptsList, &json!({})).unwrap();
    assert_eq!(
        list["prompts"][0]["arguments"],
        json!([{ "name": "code", "title": "Code" }, { "name": "lines" }])
    );
}

#[test]
fn prompt_problems_are_reported_when_the_server_is_built() {
    let nothing = |_: String, _: BTreeMap<String, String>| async { Vec::new() };
    for (prompt, problem) in [
        (Prompt::new("p"), "prompt `p`: has no handler"),
        (Prompt::new("").run_text(), "its name is empty"),
        (Prompt::new("p").run_text().run_text(), "has two handlers"),
        (Prompt::new("p").optional("a", "").optional("a", "").run_text(), "describes `a` twice"),
        (Prompt::new("p").complete("a", nothing).run_text(), "completes `a`, which it does not have"),
        (
            Prompt::new("p").optional("a", "").complete("a", nothing).complete("a", nothing).run_text(),
            "completes `a` twice",
        ),
    ] {
        let error = Server::new("test").with(prompt).handle().unwrap_err();
        assert_eq!(error.problems().len(), 1, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
