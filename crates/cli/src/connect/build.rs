use std::sync::Arc;

use trunkline_client::transport::process::{Line, Source};
use trunkline_client::{Builder, Client, Limits, LogMessage};

use super::options::ConnectArgs;
use super::person::Person;
use super::resolve::Resolved;
use super::way::Way;
use crate::exit::Failure;
use crate::render::one_line;
use crate::terminal::{Screen, visible_line};

/// How long a message of a server may be, unless somebody says otherwise: pictures and sounds are long, and there is one
/// server to hold them for.
const LONGEST_MESSAGE: usize = 64 << 20;

/// Prepares a connection by the options of the command line, and by what the configuration says beside.
///
/// # Errors
/// A secret is not where it should be.
pub(crate) fn builder(
    args: &ConnectArgs,
    resolved: &Resolved,
    person: &Person,
    screen: &Arc<Screen>,
) -> Result<Builder, Failure> {
    let mut builder = Way::new(&args.reach, resolved)?.prepare(Client::builder().input(person.clone()));
    let limits = Limits { message_bytes: args.max_message.unwrap_or(LONGEST_MESSAGE), ..Limits::default() };
    builder = builder.limits(match args.reach.timeout.or(resolved.timeout()) {
        Some(timeout) => limits.silent_for(timeout),
        None => limits,
    });
    if args.verbose {
        let screen = Arc::clone(screen);
        builder = builder.on_line(move |line| screen.say(&output_line(line)));
    }
    if let Some(level) = args.log_level {
        let screen = Arc::clone(screen);
        builder = builder.log_level(level).on_log(move |message| {
            if message.level >= level {
                screen.say(&log_line(message));
            }
        });
    }
    Ok(builder)
}

/// Writes a line of a program's output for a person.
pub(crate) fn output_line(line: &Line<'_>) -> String {
    let source = match line.source {
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    };
    format!("{source}: {}\n", visible_line(&line.text))
}

/// Writes a message of a server's log for a person.
fn log_line(message: &LogMessage) -> String {
    let logger =
        message.logger.as_deref().map(|logger| format!(" {}", visible_line(logger))).unwrap_or_default();
    let text = message
        .data
        .as_text()
        .map_or_else(|| one_line(&message.data), |text| visible_line(&text).into_owned());
    format!("{}{logger}: {text}\n", message.level.as_str())
}
