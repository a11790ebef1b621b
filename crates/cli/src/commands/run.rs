use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueHint};
use trunkline_client::transport::Target;
use trunkline_commands::DescribedCommand;
use trunkline_protocol::RawJson;
use trunkline_server::Server;

use super::call::show_progress;
use crate::configured_commands::ConfiguredCommands;
use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, call_failure, print_stdout, read_input, with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::{one_line, pieces_of_call};
use crate::schema::{ValueShape, check_schema, read_arguments};
use crate::terminal::{TextStyle, escape_text};

/// Run a command from trunkline.toml
#[derive(Debug, Args)]
#[command(after_help = "\
`trunkline explain` lists the commands.\n\n\
Arguments are name=value, name:=json, name=@file or @file. See also\n\
`trunkline help arguments` and `trunkline explain NAME`.\n\n\
Examples:\n  \
trunkline run log count=5\n  \
trunkline run push branch=main --answer confirm=true")]
pub(crate) struct RunArgs {
    /// Name of the command, as in [commands.NAME]
    name: Option<String>,
    /// Arguments, as name=value
    #[arg(value_name = "ARGUMENT")]
    words: Vec<String>,
    /// Config file [default: the one in this folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print the result as JSON on one line
    #[arg(long)]
    json: bool,
    /// Print only results and errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    ask: AnswerArgs,
}

/// Runs a described command as a client would, and prints what comes of it.
///
/// # Errors
/// The command is unknown, its arguments are invalid, or it failed.
pub(crate) fn run(args: &RunArgs) -> Result<(), CliFailure> {
    let file = ConfiguredCommands::read(args.config.as_deref())?;
    let name = args.name.as_deref().ok_or_else(|| {
        CliFailure::new(ExitReason::Usage, "missing argument: NAME")
            .hint("`trunkline explain` lists the commands")
    })?;
    let command = file.command(name)?.clone();
    let arguments = command_arguments(&command, &args.words)
        .map_err(|failure| failure.or_hint(format!("`trunkline explain {name}` lists its arguments")))?;
    let connect = ConnectArgs { json: args.json, quiet: args.quiet, ..ConnectArgs::default() };
    let target = target(command);
    with_session(&connect, &args.ask, target, async |session| call(args, name, arguments, session).await)
}

/// Makes a server of the one command, within this process.
fn target(command: DescribedCommand) -> Target {
    Server::new("trunkline").version(env!("CARGO_PKG_VERSION")).with(command.into_tool()).into()
}

/// Reads the arguments of a command, and checks them as the command does before it runs.
///
/// # Errors
/// The first mistake, by the name of its argument.
pub(super) fn command_arguments(command: &DescribedCommand, words: &[String]) -> Result<RawJson, CliFailure> {
    let schema = command.schema();
    let shape = ValueShape::from_schema(&RawJson::from(&schema));
    let arguments = read_arguments(words, None, &shape, &mut read_input)?;
    check_schema(&schema, &arguments)?;
    Ok(arguments)
}

async fn call(
    args: &RunArgs,
    name: &str,
    arguments: RawJson,
    session: &CommandSession,
) -> Result<(), CliFailure> {
    let screen = Arc::clone(&session.screen);
    let calling =
        session.client.call(name, arguments).progress(move |progress| show_progress(&screen, progress));
    let result = calling.await;
    session.screen.clear_bar();
    let result = result.map_err(call_failure)?;
    if args.json {
        print_stdout(&format!("{}\n", one_line(result.raw())))?;
    }
    let said = || {
        pieces_of_call(&result)
            .iter()
            .map(|piece| piece.show(session.layout.columns, TextStyle::PLAIN))
            .collect::<String>()
    };
    if !result.is_error
        && let Some(stderr) = result.meta.as_ref().and_then(|meta| meta.get("trunkline/stderr"))
    {
        // The command's standard error is for the user, not for the program that reads standard output.
        session.screen.print(&escape_text(&stderr.decode::<String>().unwrap_or_default()));
    }
    match (result.is_error, args.json) {
        (true, _) => {
            Err(CliFailure::new(ExitReason::Failed, format!("`{name}` failed: {}", said().trim_end())))
        }
        (false, true) => Ok(()),
        // The output of a command is data, and is printed unchanged.
        (false, false) => print_stdout(&result.text()),
    }
}
