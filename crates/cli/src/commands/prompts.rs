use clap::Args;

use super::optional_list::OptionalList;
use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, print_stdout, target_or_hub_help, with_session,
};
use crate::exit::CliFailure;
use crate::render::array;
use crate::schema::prompt_signature;
use crate::terminal::{escape_line, first_line, truncate_to_width, wrap};

/// List a server's prompts as signatures
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline prompts [OPTIONS] [TARGET]\n       trunkline prompts [OPTIONS] -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Examples:\n  trunkline prompts https://example.com/mcp\n  trunkline prompts --json -- npx -y some-server")
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
pub(crate) fn run(args: &PromptsArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    words.expect_end()?;
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| list(session).await)
}

async fn list(session: &CommandSession) -> Result<(), CliFailure> {
    let declared = session.client.server().capabilities.prompts.is_some();
    let prompts = OptionalList::new(session.client.prompts().await, declared)?;
    prompts.print_left_out("prompt", session);
    let prompts = prompts.items();
    if session.args.json {
        return print_stdout(&format!("{}\n", array(prompts.iter().map(trunkline_client::WithRaw::raw))));
    }
    if prompts.is_empty() {
        session.screen.print("the server has no prompts\n");
    }
    let layout = session.layout;
    let columns = layout.columns.saturating_sub(4);
    let mut text = String::new();
    for prompt in prompts {
        text.push_str(&format!(
            "{}\n",
            layout.style.bold(&wrap(&prompt_signature(prompt), layout.columns, 8))
        ));
        if let Some(line) = prompt.description.as_deref().map(first_line).filter(|line| !line.is_empty()) {
            text.push_str(&format!("    {}\n", truncate_to_width(&line, columns)));
        }
        for argument in &prompt.arguments {
            if let Some(line) =
                argument.description.as_deref().map(first_line).filter(|line| !line.is_empty())
            {
                let line = format!("{}: {line}", escape_line(&argument.name));
                text.push_str(&format!("    {}\n", layout.style.dim(&truncate_to_width(&line, columns))));
            }
        }
    }
    print_stdout(&text)
}
