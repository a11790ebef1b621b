//! A tool that lets the caller's own model look things up until it knows the answer.
//!
//! `cargo run --example sampling_tools` serves it over standard input and output. A client with a model that cannot call
//! tools gets an error.

use serde_json::{Value, json};
use trunkline::HostOptions;
use trunkline::prelude::*;
use trunkline::protocol::model::{self, CreateMessageRequest, ToolUseContent};

/// A model that only ever looks things up would cost its owner without end.
const MOST_ROUNDS: usize = 5;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Basket {
    /// What to buy, in words.
    wishes: String,
}

async fn estimate(cx: Context, Basket { wishes }: Basket) -> Result<String, ToolError> {
    let ask = PromptMessage::user(format!("What do these cost together? {wishes}"));
    let mut talk = CreateMessageRequest::new([ask], 500).tools([price_tool()]);
    for _ in 0..MOST_ROUNDS {
        let said = cx.sample(talk.clone()).await?;
        // All tool calls of a message are answered in one message.
        let results: Vec<Content> =
            said.tool_uses().map(|wish| Content::tool_result(&wish.id, price(wish))).collect();
        if results.is_empty() {
            return Ok(said.text());
        }
        talk = talk.assistant(said.content).user(results);
    }
    Err(ToolError::new("the model did not come to an end"))
}

fn price_tool() -> model::Tool {
    let schema =
        json!({ "type": "object", "properties": { "item": { "type": "string" } }, "required": ["item"] });
    model::Tool {
        description: Some("Says what an item costs.".to_owned()),
        ..model::Tool::new("price", schema.into())
    }
}

fn price(wish: &ToolUseContent) -> CallToolResult {
    let input: Value = wish.input.decode().unwrap_or_default();
    match input.get("item").and_then(Value::as_str) {
        Some("apple") => CallToolResult::text("3"),
        Some("pear") => CallToolResult::text("4"),
        _ => CallToolResult::error("there is no such item"),
    }
}

/// Makes the server.
pub(crate) fn server() -> Server {
    let description = "Estimates a basket with the model of whoever asks.";
    Server::new("prices").with(Tool::new("estimate").description(description).run(estimate))
}

/// Needs no options.
pub(crate) fn options() -> HostOptions {
    HostOptions::default()
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(stdio().serve(server().host(options())?).await?)
}
