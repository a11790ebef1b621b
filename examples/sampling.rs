//! A tool that uses the caller's own model, and so needs no API key.
//!
//! `cargo run --example sampling` serves it over standard input and output. A client without sampling gets an error.

use trunkline::HostOptions;
use trunkline::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    /// What to summarize.
    text: String,
}

async fn summarize(cx: Context, Text { text }: Text) -> Result<String, ToolError> {
    let message = PromptMessage::user(format!("Summarize in one sentence:\n\n{text}"));
    let question = CreateMessageRequest::new([message], 200).system("You write short and plain sentences.");
    let answer = cx.sample(question).await?;
    let said: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
    Ok(format!("{} (by {})", said.join("\n"), answer.model))
}

/// Makes the server.
pub(crate) fn server() -> Server {
    let description = "Summarizes a text with the model of whoever asks.";
    Server::new("summaries").with(Tool::new("summarize").description(description).run(summarize))
}

/// Needs no options.
pub(crate) fn options() -> HostOptions {
    HostOptions::default()
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(stdio().serve(server().host(options())?).await?)
}
