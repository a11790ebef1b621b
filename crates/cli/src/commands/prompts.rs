use clap::Args;

use super::listed::Listed;
use crate::connect::{AskArgs, ConnectArgs, Session, TargetArgs, help, print, run as attend};
use crate::exit::Failure;
use crate::render::array;
use crate::schema::prompt_signature;
use crate::terminal::{first_line, fit, visible_line, wrap};

/// List the prompts of a server as signatures
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline prompts [OPTIONS] TARGET\n       trunkline prompts [OPTIONS] -- COMMAND [ARG]...",
    after_help = help("Examples:\n  trunkline prompts https://example.com/mcp\n  trunkline prompts --json -- npx -y some-server")
)]
pub(crate) struct PromptsArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Lists prompts.
///
/// # Errors
/// The server cannot be reached, or has none.
pub(crate) fn run(args: &PromptsArgs) -> Result<(), Failure> {
    let words = args.target.words()?;
    words.end()?;
    attend(&args.connect, &AskArgs::default(), words.target, async |session| list(session).await)
}

async fn list(session: &Session) -> Result<(), Failure> {
    let declared = session.client.server().capabilities.prompts.is_some();
    let prompts = Listed::new(session.client.prompts().await, declared)?;
    prompts.tell_of_left_out("prompt", session);
    let prompts = prompts.items();
    if session.args.json {
        return print(&format!("{}\n", array(prompts.iter().map(trunkline_client::Received::raw))));
    }
    if prompts.is_empty() {
        session.screen.say("the server lists no prompts\n");
    }
    let sheet = session.sheet;
    let columns = sheet.columns.saturating_sub(4);
    let mut text = String::new();
    for prompt in prompts {
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
