use std::sync::Arc;

use clap::Args;
use trunkline_protocol::model::Prompt;

use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, call_failure, print_stdout, read_input, target_help,
    with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::{SaveSelection, one_line, pieces_of_messages};
use crate::schema::{JsonType, Property, ValueShape, did_you_mean, prompt_signature, read_arguments};

use super::call::{show_pieces, show_progress};

/// Get a prompt with its arguments filled in
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline prompt [OPTIONS] TARGET PROMPT [NAME=VALUE]...\n       trunkline prompt [OPTIONS] PROMPT [NAME=VALUE]... -- COMMAND [ARG]...",
    after_help = target_help("Examples:\n  trunkline prompt https://example.com/mcp review code=@main.rs\n  trunkline prompt greeting name=Ann -- ./server")
)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    ask: AnswerArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Fills in a prompt.
///
/// # Errors
/// The server cannot be reached, or does not have the prompt.
pub(crate) fn run(args: &PromptArgs) -> Result<(), CliFailure> {
    let mut words = args.target.parse_for(&args.connect)?;
    let name = words.next_word("PROMPT")?;
    with_session(&args.connect, &args.ask, words.target, async |session| {
        get(&name, &words.rest, session).await
    })
}

async fn get(name: &str, words: &[String], session: &CommandSession) -> Result<(), CliFailure> {
    let prompts = session.client.prompts().await.map_err(call_failure)?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names = prompts.iter().map(|prompt| prompt.name.as_str());
        let failure = CliFailure::new(ExitReason::Usage, format!("unknown prompt `{name}`"));
        return Err(match did_you_mean(name, names) {
            Some(suggestion) => failure.hint(suggestion),
            None => failure.hint_command("prompts", "lists them"),
        });
    };
    let arguments = read_arguments(words, None, &shape(prompt), &mut read_input)
        .map_err(|failure| failure.or_hint(prompt_signature(prompt)))?;
    let screen = Arc::clone(&session.screen);
    let result = session
        .client
        .get_prompt(name, arguments)
        .progress(move |progress| show_progress(&screen, progress))
        .await;
    session.screen.clear_bar();
    let result = result.map_err(call_failure)?;
    if session.args.json {
        return print_stdout(&format!("{}\n", one_line(result.raw())));
    }
    show_pieces(pieces_of_messages(&result.messages), None, SaveSelection::All, name, session)
}

/// Describes the arguments of a prompt, which are always text.
fn shape(prompt: &Prompt) -> ValueShape {
    let property = |name: &String, required| Property {
        name: name.clone(),
        shape: ValueShape { types: vec![JsonType::String], ..ValueShape::default() },
        required,
    };
    let properties =
        prompt.arguments.iter().map(|argument| property(&argument.name, argument.required == Some(true)));
    ValueShape { types: vec![JsonType::Object], properties: properties.collect(), ..ValueShape::default() }
}
