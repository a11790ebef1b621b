use std::io;
use std::sync::Arc;
use std::time::Duration;

use trunkline_client::transport::Target;
use trunkline_client::{Client, ClientLimits};
use trunkline_protocol::Era;

use super::build::client_builder;
use super::command_words::target_words;
use super::connecting_notice::show_connecting;
use super::failure::connect_failure;
use super::input_handler::TerminalInputHandler;
use super::options::{AnswerArgs, ConnectArgs};
use super::resolve::resolve;
use super::runtime::{in_runtime, interrupted};
use crate::exit::{CliFailure, ExitReason};
use crate::login::LoginOptions;
use crate::signals::Signals;
use crate::terminal::{OutputLayout, StderrScreen, escape_line};

/// How long an orderly end may take; a client that keeps to its own limit is done sooner.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// The delay before the user is informed that the command waits for the server to exit.
const CLOSE_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// How long to wait for a session to request the roots, if there are any.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a server may process the roots: the protocol has no signal that it is done.
const ROOTS_GRACE: Duration = Duration::from_millis(250);

/// How long messages of a log are waited for that come over another stream than the answer, and so perhaps after it.
const LATE_LOG_WAIT: Duration = Duration::from_millis(500);

/// A connection to a server, and what a command prints on.
pub(crate) struct CommandSession {
    pub(crate) client: Client,
    pub(crate) screen: Arc<StderrScreen>,
    pub(crate) layout: OutputLayout,
    pub(crate) args: ConnectArgs,
}

/// Connects, does some work, and ends in order; Ctrl-C drops the work, which cancels it on the wire.
///
/// # Errors
/// The error of `work`, or of connecting.
pub(crate) fn with_session<W>(
    args: &ConnectArgs,
    ask: &AnswerArgs,
    target: Target,
    work: W,
) -> Result<(), CliFailure>
where
    W: AsyncFnOnce(&CommandSession) -> Result<(), CliFailure>,
{
    let words = target_words(&target);
    in_runtime(args.json, async |signals| run_session(args, ask, target, work, signals).await)
        .map_err(|failure| failure.with_target(&words))
}

async fn run_session<W>(
    args: &ConnectArgs,
    ask: &AnswerArgs,
    target: Target,
    work: W,
    signals: &mut Signals,
) -> Result<(), CliFailure>
where
    W: AsyncFnOnce(&CommandSession) -> Result<(), CliFailure>,
{
    let screen = Arc::new(StderrScreen::new(args.quiet, args.verbose));
    let input_handler = TerminalInputHandler::new(args, ask, Arc::clone(&screen))?;
    let client = tokio::select! {
        connected = connect(args, target, &input_handler, &screen) => connected?,
        _ = signals.next() => {
            screen.clear_interrupt();
            return Err(interrupted());
        }
    };
    if let Some(identity) = &client.server().identity {
        input_handler.set_server_name(identity.title.as_deref().unwrap_or(&identity.name));
    }
    let session = CommandSession {
        client: client.clone(),
        screen: Arc::clone(&screen),
        layout: OutputLayout::stdout(),
        args: args.clone(),
    };
    let done = tokio::select! {
        // An input request that could not be answered is reported instead of the server's reaction to it.
        biased;
        unanswered = input_handler.failed() => Err(unanswered),
        done = work(&session) => done,
        never = screen.redraw_loop() => match never {},
        _ = signals.next() => {
            screen.clear_interrupt();
            Err(interrupted())
        }
    };
    if done.is_ok() && args.log_level.is_some() && logs_may_be_late(&client) {
        tokio::select! {
            () = tokio::time::sleep(LATE_LOG_WAIT) => {}
            _ = signals.next() => {}
        }
    }
    screen.clear_bar();
    let done = close_client(client, &screen, signals).await.and(done);
    done.map_err(|failure| explain_failure(failure, &input_handler))
}

/// Reports whether a server may send messages over a standalone stream.
fn logs_may_be_late(client: &Client) -> bool {
    let server = client.server();
    server.is_stateful() && server.transport == "streamable-http"
}

/// Reports a failure that was caused by an input request as what it means here: the server speaks of capabilities.
fn explain_failure(failure: CliFailure, input_handler: &TerminalInputHandler) -> CliFailure {
    if input_handler.can_answer() || !failure.mentions("elicitation") {
        return failure;
    }
    failure.with_message("input is required, and there is no terminal to ask for it").hint(
        "answer in advance with `--answer NAME=VALUE` or `--answer accept`; see `trunkline help answers`",
    )
}

/// Closes a connection cleanly, unless interrupted; processes that we started exit with us.
///
/// # Errors
/// The close was interrupted.
pub(crate) async fn close_client(
    client: Client,
    screen: &StderrScreen,
    signals: &mut Signals,
) -> Result<(), CliFailure> {
    let telling = async {
        tokio::time::sleep(CLOSE_NOTICE_DELAY).await;
        screen.print("waiting for the server to exit; Ctrl-C skips the wait\n");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = tokio::time::timeout(CLOSE_TIMEOUT, client.close()) => Ok(()),
        () = telling => Ok(()),
        _ = signals.next() => {
            Err(CliFailure::new(ExitReason::Interrupted, "interrupted while waiting for the server to exit"))
        }
    }
}

/// Connects by the options of the command line.
async fn connect(
    args: &ConnectArgs,
    target: Target,
    input_handler: &TerminalInputHandler,
    screen: &Arc<StderrScreen>,
) -> Result<Client, CliFailure> {
    let resolved = resolve(&args.target_options, target)?;
    for announcement in &resolved.announcements {
        screen.print(&format!("{}\n", escape_line(announcement)));
    }
    let builder = client_builder(args, &resolved, input_handler, LoginOptions::Offer, screen)?;
    if args.verbose {
        screen.print(&format!("connecting to {}\n", escape_line(&resolved.label)));
    }
    let timeout = args.target_options.timeout.or(resolved.timeout());
    let timeout = timeout.unwrap_or(ClientLimits::default().handshake_timeout);
    let connected = tokio::select! {
        biased;
        connected = builder.connect(resolved.target) => connected,
        never = show_connecting(screen, &resolved.label, timeout) => match never {},
    };
    screen.clear_bar();
    let client = connected.map_err(|error| connect_failure(error, &resolved.label))?;
    if args.verbose {
        let server = client.server();
        for attempt in &server.attempts {
            screen.print(&format!("{}\n", escape_line(&attempt.to_string())));
        }
        screen.print(&format!(
            "connected over {1} with protocol version {0}\n",
            server.revision, server.transport
        ));
    }
    if client.server().revision.era() == Era::Legacy {
        // A session requests roots when it begins, and some servers allow no folder until they have received one.
        if input_handler.has_roots()
            && tokio::time::timeout(ROOTS_TIMEOUT, input_handler.roots_requested()).await.is_ok()
        {
            tokio::time::sleep(ROOTS_GRACE).await;
        }
    }
    Ok(client)
}

/// Prints data; a closed pipe is not a failure.
///
/// # Errors
/// Standard output cannot be written to.
pub(crate) fn print_stdout(text: &str) -> Result<(), CliFailure> {
    use std::io::Write as _;
    let mut stdout = io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliFailure::new(ExitReason::Failed, format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
