use std::sync::Arc;

use trunkline_client::transport::process::{Line, Source};
use trunkline_client::{Builder, Client, Limits, LogMessage};

use super::options::ConnectArgs;
use super::person::Person;
use super::resolve::Resolved;
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
    let mut builder = Client::builder().input(person.clone());
    if let Some(era) = args.era {
        builder = builder.era(era);
    }
    if let Some(revision) = args.revision {
        builder = builder.pin(revision);
    }
    for (name, value) in headers(args, resolved)? {
        builder = builder.header(name, value);
    }
    let limits = Limits { message_bytes: args.max_message.unwrap_or(LONGEST_MESSAGE), ..Limits::default() };
    builder = builder.limits(match args.timeout.or(resolved.timeout) {
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

/// Reports whether something is shown to the server that says who we are.
pub(crate) fn shows_credentials(args: &ConnectArgs, resolved: &Resolved) -> bool {
    let typed = args.header.iter().map(|header| header.name.as_str());
    let configured = resolved.headers.iter().map(|(name, _)| name.as_str());
    args.bearer.is_some() || typed.chain(configured).any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Puts the headers together: one of the command line replaces the configuration's of the same name.
fn headers(args: &ConnectArgs, resolved: &Resolved) -> Result<Vec<(String, String)>, Failure> {
    let mut typed = Vec::new();
    for header in &args.header {
        let value = header.value.fetch().map_err(|problem| secret_failure("--header", &problem))?;
        typed.push((header.name.clone(), value));
    }
    if let Some(source) = &args.bearer {
        let token = source.fetch().map_err(|problem| secret_failure("--bearer", &problem))?;
        typed.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    let is_typed = |name: &str| typed.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let kept = resolved.headers.iter().filter(|(name, _)| !is_typed(name));
    let mut headers: Vec<_> = kept.cloned().collect();
    headers.append(&mut typed);
    Ok(headers)
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

fn secret_failure(option: &str, problem: &str) -> Failure {
    Failure::configuration(format!("`{option}`: {problem}"))
        .hint("env:NAME is a variable and @FILE the first line of a file")
}
