use std::sync::Arc;

use clap::Args;
use trunkline_client::{ProgressUpdate, argument_error};

use crate::connect::{
    AnswerArgs, CommandSession, CommandWords, ConnectArgs, TargetArgs, call_failure, print_stdout,
    read_input, target_help, wait_for_starting_servers, with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::{ContentPiece, SaveSelection, SaveTarget, one_line, pieces_of_call, save};
use crate::schema::{ValueShape, read_arguments, tool_signature};
use crate::terminal::{CallProgress, StderrScreen};

use super::tools::{has_tool, unknown_tool};

/// Call a tool
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline call [OPTIONS] TARGET TOOL [ARGUMENT]...\n       trunkline call [OPTIONS] TOOL [ARGUMENT]... -- COMMAND [ARG]...",
    after_help = target_help(
        "Arguments are name=value, name:=json, name=@file or @file, converted to the\n\
types in the tool's schema. See `trunkline help arguments`.\n\n\
Examples:\n  \
trunkline call http://127.0.0.1:7411/mcp now timezone=Europe/Berlin\n  \
trunkline call add a=2 b=3 -- ./server\n  \
trunkline call shop order cake=apple --answer name=Ann --answer how=away\n  \
trunkline call camera snap --out pictures/"
    )
)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// All arguments as one JSON object, @FILE or @-
    #[arg(long, value_name = "JSON")]
    json_args: Option<String>,
    /// Send arguments that do not fit the tool's schema
    #[arg(long)]
    no_check: bool,
    /// Save media (or else the text) unchanged to a file, to
    /// a folder (ends in /), or with - to stdout
    #[arg(verbatim_doc_comment, long, value_name = "PLACE", value_parser = SaveTarget::parse)]
    out: Option<SaveTarget>,
    #[command(flatten)]
    ask: AnswerArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Calls a tool.
///
/// # Errors
/// The server cannot be reached, the arguments do not fit, or the tool failed.
pub(crate) fn run(args: &CallArgs) -> Result<(), CliFailure> {
    let mut words = args.target.parse_for(&args.connect)?;
    let name = words.next_word("TOOL")?;
    let target = words.target.clone();
    with_session(&args.connect, &args.ask, target, async |session| call(args, &name, &words, session).await)
}

async fn call(
    args: &CallArgs,
    name: &str,
    words: &CommandWords,
    session: &CommandSession,
) -> Result<(), CliFailure> {
    let mut tools = session.client.tools().await.map_err(call_failure)?;
    if !has_tool(&tools, name) && wait_for_starting_servers(words.hub.as_ref(), session).await {
        tools = session.client.tools().await.map_err(call_failure)?;
    }
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let left_out = tools.skipped.iter().find(|left_out| left_out.name == name);
        return Err(left_out.map_or_else(
            || unknown_tool(name, &tools, words.hub.as_ref()),
            |left_out| {
                CliFailure::new(
                    ExitReason::Failed,
                    format!("tool `{name}` cannot be called: {}", left_out.reason),
                )
            },
        ));
    };
    let shape = ValueShape::from_schema(&tool.input_schema);
    let arguments = read_arguments(&words.rest, args.json_args.as_deref(), &shape, &mut read_input)
        .map_err(|failure| failure.or_hint(tool_signature(tool)))?;
    if let Some(problem) = argument_error(&tool.input_schema, &arguments).filter(|_| !args.no_check) {
        return Err(CliFailure::new(ExitReason::Usage, format!("invalid arguments of `{name}`: {problem}"))
            .hint("`--no-check` sends them all the same"));
    }
    let screen = Arc::clone(&session.screen);
    let result =
        session.client.call(name, arguments).progress(move |progress| show_progress(&screen, progress)).await;
    session.screen.clear_bar();
    let result = result.map_err(call_failure)?;
    if session.args.json {
        print_stdout(&format!("{}\n", one_line(result.raw())))?;
        return if result.is_error {
            Err(CliFailure::new(ExitReason::Failed, format!("tool `{name}` failed")))
        } else {
            Ok(())
        };
    }
    let pieces = pieces_of_call(&result);
    if result.is_error {
        let said: String = pieces
            .iter()
            .map(|piece| piece.show(session.layout.columns, crate::terminal::TextStyle::PLAIN))
            .collect();
        return Err(CliFailure::new(
            ExitReason::Failed,
            format!("tool `{name}` failed: {}", said.trim_end()),
        ));
    }
    show_pieces(pieces, args.out.as_ref(), SaveSelection::MediaFirst, name, session)
}

/// Shows how far a call is.
pub(crate) fn show_progress(screen: &StderrScreen, progress: &ProgressUpdate) {
    let ProgressUpdate { progress, total, message, .. } = progress;
    screen.show_progress(&CallProgress { progress: *progress, total: *total, message: message.clone() });
}

/// Saves what is to be saved, and prints the rest.
pub(crate) fn show_pieces(
    mut pieces: Vec<ContentPiece>,
    out: Option<&SaveTarget>,
    which: SaveSelection,
    stem: &str,
    session: &CommandSession,
) -> Result<(), CliFailure> {
    if let Some(out) = out {
        let (rest, messages) = save(pieces, out, which, stem)?;
        for line in messages {
            session.screen.print(&format!("{line}\n"));
        }
        pieces = rest;
    }
    let layout = session.layout;
    print_stdout(&pieces.iter().map(|piece| piece.show(layout.columns, layout.style)).collect::<String>())
}
