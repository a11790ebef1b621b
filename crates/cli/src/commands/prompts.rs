use std::ffi::OsString;

use clap::Args;

use crate::connect::{AskArgs, ConnectArgs, Session, Words, failed, help, print, run as attend};
use crate::exit::Failure;
use crate::render::array;
use crate::schema::prompt_signature;
use crate::terminal::{first_line, fit, visible_line, wrap};

use super::tools::left_out_line;

/// List the prompts of a server as signatures
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline prompts [OPTIONS] TARGET\n       trunkline prompts [OPTIONS] -- COMMAND [ARG]...",
    after_help = help("Examples:\n  trunkline prompts https://example.com/mcp\n  trunkline prompts --json -- npx -y some-server")
)]
pub(crate) struct PromptsArgs {
    #[arg(hide = true, value_name = "TARGET")]
    words: Vec<String>,
    #[arg(hide = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Lists prompts.
///
/// # Errors
/// The server cannot be reached, or has none.
pub(crate) fn run(args: &PromptsArgs) -> Result<(), Failure> {
    let words = Words::new(&args.words, &args.command)?;
    words.end()?;
    attend(&args.connect, &AskArgs::default(), words.target, async |session| list(session).await)
}

async fn list(session: &Session) -> Result<(), Failure> {
    let prompts = session.client.prompts().await.map_err(failed)?;
    for left_out in &prompts.left_out {
        session.screen.say(&left_out_line("prompt", left_out));
    }
    if session.args.json {
        return print(&format!("{}\n", array(prompts.iter().map(trunkline_client::Received::raw))));
    }
    if prompts.is_empty() {
        session.screen.say("the server lists no prompts\n");
    }
    let sheet = session.sheet;
    let columns = sheet.columns.saturating_sub(4);
    let mut text = String::new();
    for prompt in prompts.iter() {
        text.push_str(&format!("{}\n", sheet.style.bold(&wrap(&prompt_signature(prompt), sheet.columns, 8))));
        if let Some(line) = prompt.description.as_deref().map(first_line).filter(|line| !line.is_empty()) {
            text.push_str(&format!("    {}\n", fit(&line, columns)));
        }
        for argument in &prompt.arguments {
            if let Some(line) =
                argument.description.as_deref().map(first_line).filter(|line| !line.is_empty())
            {
                let line = format!("{}: {line}", visible_line(&argument.name));
                text.push_str(&format!("    {}\n", sheet.style.dim(&fit(&line, columns))));
            }
        }
    }
    print(&text)
}
