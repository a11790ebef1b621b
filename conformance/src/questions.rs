//! Tools that need something from their caller before they can answer: from its user, its model or its host.

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline::prelude::*;
use trunkline::protocol::model::{CreateMessageResult, Root};
use trunkline::server::{TypedInputRequest, roots};

pub(crate) fn tools() -> Vec<Tool> {
    let ask_tool = |asks: &str| Tool::new(format!("test_input_required_result_{asks}"));
    vec![
        Tool::new("test_sampling").description("Asks the model what it is told to ask.").run(ask_model),
        Tool::new("test_missing_capability").description("Fails without a model to ask.").run(ask_capital),
        Tool::new("test_streaming_elicitation")
            .description("Asks after it has begun to report progress.")
            .run(ask_late),
        ask_tool("elicitation").description("Asks the user for a name.").run(ask_name),
        ask_tool("sampling").description("Asks the model for a capital.").run(ask_capital),
        ask_tool("list_roots").description("Asks the host for its roots.").run(ask_roots),
        ask_tool("request_state")
            .description("Asks the user to confirm; its state travels along.")
            .run(ask_consent),
        ask_tool("tampered_state")
            .description("Asks the user to confirm; its state cannot be forged.")
            .run(ask_consent),
        ask_tool("multiple_inputs").description("Asks user, model and host in one round.").run(ask_everyone),
        ask_tool("multi_round").description("Asks the user twice, one after the other.").run(ask_twice),
        ask_tool("capabilities")
            .description("Asks only what its caller can be asked.")
            .run(ask_whoever_is_there),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Consent {
    ok: bool,
}

fn name() -> TypedInputRequest<SchemaForm<Name>> {
    ask("What is your name?").key("user_name")
}

fn capital() -> TypedInputRequest<CreateMessageResult> {
    sample_text("What is the capital of France?").key("capital_question")
}

fn sample_text(prompt: &str) -> TypedInputRequest<CreateMessageResult> {
    sample(CreateMessageRequest::new([PromptMessage::user(prompt)], 100))
}

#[derive(Deserialize, JsonSchema)]
struct Prompted {
    /// The prompt for the model.
    prompt: String,
}

async fn ask_model(cx: Context, Prompted { prompt }: Prompted) -> Result<String, ToolError> {
    let answer = cx.ask(sample_text(&prompt)).await?;
    Ok(format!("the model said: {}", words(&answer)))
}

async fn ask_late(cx: Context) -> Result<String, ToolError> {
    cx.progress(1, 2);
    ask_name(cx).await
}

async fn ask_name(cx: Context) -> Result<String, ToolError> {
    let SchemaForm(Name { name }) = cx.ask(name()).await?;
    Ok(format!("Hello, {name}!"))
}

async fn ask_capital(cx: Context) -> Result<String, ToolError> {
    Ok(words(&cx.ask(capital()).await?))
}

async fn ask_roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.ask(roots().key("client_roots")).await?;
    Ok(format!("the host works in {}", uris(&roots)))
}

async fn ask_consent(cx: Context) -> Result<&'static str, ToolError> {
    let SchemaForm(Consent { ok }) = cx.ask(ask("Please confirm.").key("confirm")).await?;
    // A state that is not ours never gets here.
    Ok(if ok { "state-ok: confirmed" } else { "state-ok: not confirmed" })
}

async fn ask_everyone(cx: Context) -> Result<String, ToolError> {
    let greeting = sample_text("Make up a greeting.").key("greeting");
    let (SchemaForm(Name { name }), greeting, roots) =
        cx.ask_all((name(), greeting, roots().key("client_roots"))).await?;
    Ok(format!("{} {name}, who works in {}", words(&greeting), uris(&roots)))
}

async fn ask_twice(cx: Context) -> Result<String, ToolError> {
    let SchemaForm(Name { name }) = cx.ask(ask("What is your name?").key("step1")).await?;
    let SchemaForm(Colour { color }) = cx.ask(ask("What is your favourite colour?").key("step2")).await?;
    Ok(format!("{name} likes {color}"))
}

async fn ask_whoever_is_there(cx: Context) -> Result<String, ToolError> {
    let client = cx.capabilities();
    let mut learnt = Vec::new();
    if client.form() {
        learnt.push(cx.ask(name()).await?.0.name);
    }
    if client.sampling() {
        learnt.push(words(&cx.ask(capital()).await?));
    }
    if client.roots() {
        learnt.push(uris(&cx.ask(roots().key("client_roots")).await?));
    }
    Ok(format!("learnt: {}", learnt.join("; ")))
}

fn words(answer: &CreateMessageResult) -> String {
    answer.content.iter().filter_map(Content::as_text).collect()
}

fn uris(roots: &[Root]) -> String {
    roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", ")
}
