use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueHint};
use trunkline_client::transport::Target;
use trunkline_commands::Described;
use trunkline_protocol::Raw;
use trunkline_server::Server;

use super::call::show;
use crate::connect::{AskArgs, ConnectArgs, Session, failed, print, read_input, run as attend};
use crate::described::FromFile;
use crate::exit::{Exit, Failure};
use crate::render::{one_line, pieces_of_call};
use crate::schema::{Shape, read_arguments};
use crate::terminal::{Style, visible};

/// Run a command that is described in trunkline.toml
#[derive(Debug, Args)]
#[command(after_help = "\
An argument is name=value, name:=json, name=@file or @file, by what the file\n\
says of it; `trunkline help arguments` and `trunkline explain NAME` say more.\n\n\
Examples:\n  \
trunkline run log count=5\n  \
trunkline run push branch=main --answer confirm=true")]
pub(crate) struct RunArgs {
    /// The command, the name of a table [commands.NAME]
    name: String,
    /// Its arguments, as name=value
    #[arg(value_name = "ARGUMENT")]
    words: Vec<String>,
    /// The file that describes it, else that of this folder
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print the result as JSON, on one line
    #[arg(long)]
    json: bool,
    /// Print nothing but the result and what went wrong
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    ask: AskArgs,
}

/// Runs a described command as a client would, and prints what comes of it.
///
/// # Errors
/// There is no such command, its arguments do not fit, or it failed.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let file = FromFile::read(args.config.as_deref())?;
    let command = file.command(&args.name)?.clone();
    let shape = Shape::read(&Raw::from(&command.schema()));
    let arguments = read_arguments(&args.words, None, &shape, &mut read_input).map_err(|failure| {
        failure.or_hint(format!("`trunkline explain {}` shows what it takes", args.name))
    })?;
    let connect = ConnectArgs { json: args.json, quiet: args.quiet, ..ConnectArgs::default() };
    let target = target(command);
    attend(&connect, &args.ask, target, async |session| call(args, arguments, session).await)
}

/// Makes a server of the one command, within this process.
fn target(command: Described) -> Target {
    Server::new("trunkline").with(command.tool()).into()
}

async fn call(args: &RunArgs, arguments: Raw, session: &Session) -> Result<(), Failure> {
    let screen = Arc::clone(&session.screen);
    let calling =
        session.client.call(&args.name, arguments).progress(move |progress| show(&screen, progress));
    let result = calling.await;
    session.screen.clear();
    let result = result.map_err(failed)?;
    if args.json {
        print(&format!("{}\n", one_line(result.raw())))?;
    }
    let said = || {
        pieces_of_call(&result)
            .iter()
            .map(|piece| piece.show(session.sheet.columns, Style::PLAIN))
            .collect::<String>()
    };
    if !result.is_error
        && let Some(stderr) = result.meta.as_ref().and_then(|meta| meta.get("trunkline/stderr"))
    {
        // What a command says beside its result is for the person at the terminal, not for whoever reads on.
        session.screen.say(&visible(&stderr.decode::<String>().unwrap_or_default()));
    }
    match (result.is_error, args.json) {
        (true, _) => {
            Err(Failure::new(Exit::Failed, format!("`{}` failed: {}", args.name, said().trim_end())))
        }
        (false, true) => Ok(()),
        // What a command prints is data, and goes on as it is.
        (false, false) => print(&result.text()),
    }
}
