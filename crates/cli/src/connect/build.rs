use std::sync::Arc;

use trunkline_client::{Builder, Client, Limits, LogMessage};

use super::options::ConnectArgs;
use super::person::Person;
use super::resolve::Resolved;
use super::way::Way;
use crate::exit::Failure;
use crate::render::one_line;
use crate::terminal::{Screen, visible_line};

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
    if let Some(timeout) = args.reach.timeout.or(resolved.timeout()) {
        builder = builder.limits(Limits::default().silent_for(timeout));
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
