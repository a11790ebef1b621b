//! Tools that change the server they belong to, so that there is something to be notified of.

use trunkline::ServerHandle;
use trunkline::prelude::*;

use crate::resources::WATCHED;

/// The name of the tool and of the prompt that come and go.
const PASSING: &str = "test_passing";

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_trigger_tool_change")
            .description("Adds a tool, or removes it again.")
            .run(change_tools),
        Tool::new("test_trigger_prompt_change")
            .description("Adds a prompt, or removes it again.")
            .run(change_prompts),
        Tool::new("test_trigger_resource_update")
            .description("Tells whoever watches the watched resource that it has changed.")
            .run(update_resource),
    ]
}

async fn change_tools(cx: Context) -> Result<&'static str, ToolError> {
    let server = server_of(&cx)?;
    if !server.remove_tool(PASSING) {
        server.add(Tool::new(PASSING).description("Comes and goes.").run(async || "still here"))?;
    }
    Ok("the list of tools has changed")
}

async fn change_prompts(cx: Context) -> Result<&'static str, ToolError> {
    let server = server_of(&cx)?;
    if !server.remove_prompt(PASSING) {
        server
            .add(Prompt::new(PASSING).description("Comes and goes.").get(async || "Are you still here?"))?;
    }
    Ok("the list of prompts has changed")
}

async fn update_resource(cx: Context) -> Result<&'static str, ToolError> {
    server_of(&cx)?.notify_updated(WATCHED);
    Ok("the watched resource has changed")
}

fn server_of(cx: &Context) -> Result<&ServerHandle, ToolError> {
    cx.server().ok_or_else(|| ToolError::new("this call has no server to change"))
}
