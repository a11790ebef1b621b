use std::sync::Arc;

use trunkline_client::transport::process::{OutputLine, OutputStream};
use trunkline_client::{Client, ClientBuilder, ClientLimits, LogMessage};

use super::connect_settings::ConnectSettings;
use super::input_handler::TerminalInputHandler;
use super::options::ConnectArgs;
use super::resolve::ResolvedTarget;
use crate::exit::CliFailure;
use crate::login::{self, LoginOptions, LoginTarget};
use crate::render::one_line;
use crate::terminal::{StderrScreen, escape_line};

/// The default maximum size of a message: images and audio are large, and there is only one
/// server to buffer them for.
const DEFAULT_MAX_MESSAGE: usize = 64 << 20;

/// Prepares a connection from the command line and the configuration.
///
/// # Errors
/// A secret is not where it should be.
pub(crate) fn client_builder(
    args: &ConnectArgs,
    resolved: &ResolvedTarget,
    input_handler: &TerminalInputHandler,
    logins: LoginOptions,
    screen: &Arc<StderrScreen>,
) -> Result<ClientBuilder, CliFailure> {
    let mut builder = ConnectSettings::new(&args.target_options, resolved)?
        .prepare(Client::builder().input(input_handler.clone()));
    if let Some(login) = LoginTarget::new(resolved, args.target_options.config.as_deref()) {
        builder = builder.authorization(login::authorization(&login, logins, screen));
    }
    let limits = ClientLimits {
        message_bytes: args.max_message.unwrap_or(DEFAULT_MAX_MESSAGE),
        ..ClientLimits::default()
    };
    builder = builder.limits(match args.target_options.timeout.or(resolved.timeout()) {
        Some(timeout) => limits.with_request_timeout(timeout),
        None => limits,
    });
    if args.verbose {
        let screen = Arc::clone(screen);
        builder = builder.on_line(move |line| screen.print(&output_line(line)));
    }
    if let Some(level) = args.log_level {
        let screen = Arc::clone(screen);
        builder = builder.log_level(level).on_log(move |message| {
            if message.level >= level {
                screen.print(&log_line(message));
            }
        });
    }
    Ok(builder)
}

/// Formats a line of a program's output.
pub(crate) fn output_line(line: &OutputLine<'_>) -> String {
    let source = match line.stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    format!("{source}: {}\n", escape_line(&line.text))
}

/// Formats a log message of a server.
fn log_line(message: &LogMessage) -> String {
    let logger =
        message.logger.as_deref().map(|logger| format!(" {}", escape_line(logger))).unwrap_or_default();
    let text = message
        .data
        .as_text()
        .map_or_else(|| one_line(&message.data), |text| escape_line(&text).into_owned());
    format!("{}{logger}: {text}\n", message.level.as_str())
}
