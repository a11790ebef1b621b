//! Prompts: plain, with arguments, with other kinds of content, and one that requests input first.

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline::prelude::*;

use crate::assets::{PIXEL, PNG};

pub(crate) fn prompts() -> Vec<Prompt> {
    vec![
        Prompt::new("test_simple_prompt")
            .description("Says one thing.")
            .get(async || "This is a simple prompt for testing."),
        Prompt::new("test_prompt_with_arguments")
            .description("Repeats its arguments.")
            .complete("arg1", async |typed, _| starting_with(&typed))
            .get(async |Pair { arg1, arg2 }| format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")),
        Prompt::new("test_prompt_with_embedded_resource").description("Shows a resource.").get(show_resource),
        Prompt::new("test_prompt_with_image").description("Shows a picture.").get(show_picture),
        Prompt::new("test_input_required_result_prompt")
            .description("Asks the user what to talk about.")
            .get(ask_context),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Pair {
    /// First test argument.
    arg1: String,
    /// Second test argument.
    arg2: String,
}

fn starting_with(typed: &str) -> Vec<String> {
    ["paris", "park", "party"]
        .into_iter()
        .filter(|value| value.starts_with(typed))
        .map(str::to_owned)
        .collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// The URI of the resource to show.
    resource_uri: String,
}

async fn show_resource(Embedded { resource_uri }: Embedded) -> Vec<PromptMessage> {
    let resource = ResourceContents::text(resource_uri, "Embedded resource content for testing.");
    vec![
        PromptMessage::user(Content::embedded(resource.mime("text/plain"))),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn show_picture() -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(Content::image(PIXEL, PNG)),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Subject {
    context: String,
}

async fn ask_context(cx: Context) -> Result<String, ToolError> {
    let SchemaForm(Subject { context }) =
        cx.ask(ask("What context should the prompt use?").key("user_context")).await?;
    Ok(format!("Talk about {context}."))
}
