use std::sync::Arc;

use clap::Args;
use trunkline_protocol::model::Prompt;

use crate::connect::{
    AskArgs, ConnectArgs, Session, TargetArgs, failed, help, print, read_input, run as attend,
};
use crate::exit::{Exit, Failure};
use crate::render::{Saved, one_line, pieces_of_messages};
use crate::schema::{Kind, Property, Shape, did_you_mean, prompt_signature, read_arguments};

use super::call::{show, show_pieces};

/// Fill in a prompt
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline prompt [OPTIONS] TARGET PROMPT [NAME=VALUE]...\n       trunkline prompt [OPTIONS] PROMPT [NAME=VALUE]... -- COMMAND [ARG]...",
    after_help = help("Examples:\n  trunkline prompt https://example.com/mcp review code=@main.rs\n  trunkline prompt greeting name=Ann -- ./server")
)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Fills in a prompt.
///
/// # Errors
/// The server cannot be reached, or does not have the prompt.
pub(crate) fn run(args: &PromptArgs) -> Result<(), Failure> {
    let mut words = args.target.words()?;
    let name = words.take("prompt")?;
    attend(&args.connect, &args.ask, words.target, async |session| get(&name, &words.rest, session).await)
}

async fn get(name: &str, words: &[String], session: &Session) -> Result<(), Failure> {
    let prompts = session.client.prompts().await.map_err(failed)?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names = prompts.iter().map(|prompt| prompt.name.as_str());
        let failure = Failure::new(Exit::Usage, format!("there is no prompt `{name}`"));
        let hint = did_you_mean(name, names).unwrap_or_else(|| "`trunkline prompts` lists them".to_owned());
        return Err(failure.hint(hint));
    };
    let arguments = read_arguments(words, None, &shape(prompt), &mut read_input)
        .map_err(|failure| failure.or_hint(prompt_signature(prompt)))?;
    let screen = Arc::clone(&session.screen);
    let result =
        session.client.get_prompt(name, arguments).progress(move |progress| show(&screen, progress)).await;
    session.screen.clear();
    let result = result.map_err(failed)?;
    if session.args.json {
        return print(&format!("{}\n", one_line(result.raw())));
    }
    show_pieces(pieces_of_messages(&result.messages), None, Saved::All, name, session)
}

/// Describes the arguments of a prompt, which are always text.
fn shape(prompt: &Prompt) -> Shape {
    let property = |name: &String, required| Property {
        name: name.clone(),
        shape: Shape { kinds: vec![Kind::String], ..Shape::default() },
        required,
    };
    let properties =
        prompt.arguments.iter().map(|argument| property(&argument.name, argument.required == Some(true)));
    Shape { kinds: vec![Kind::Object], properties: properties.collect(), ..Shape::default() }
}
