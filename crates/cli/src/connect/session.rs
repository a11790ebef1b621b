use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use trunkline_client::transport::Target;
use trunkline_client::{Client, Limits, LogMessage};

use super::failure::failed;
use super::options::{AskArgs, ConnectArgs};
use super::person::Person;
use super::resolve::resolve;
use crate::exit::{Exit, Failure};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{Screen, Sheet, visible_line};

/// How long an orderly end may take after the work is done, or after somebody has had enough.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// A connection to a server, and what a command prints on.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) screen: Arc<Screen>,
    pub(crate) sheet: Sheet,
    pub(crate) args: ConnectArgs,
}

/// Connects, does some work, and ends in order; Ctrl-C drops the work, which cancels it on the wire.
///
/// # Errors
/// What the work says, or what stood in its way.
pub(crate) fn run<W, F>(args: &ConnectArgs, ask: &AskArgs, target: Target, work: W) -> Result<(), Failure>
where
    W: FnOnce(Arc<Session>) -> F,
    F: Future<Output = Result<(), Failure>>,
{
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("the runtime cannot start: {error}")))?;
    let done = runtime.block_on(async {
        let mut signals = Signals::install().map_err(|error| Failure::new(Exit::Failed, error))?;
        attend(args, ask, target, work, &mut signals).await
    });
    // A thread may sit in a read of the terminal that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    done.map_err(|failure| failure.in_form(args.json))
}

async fn attend<W, F>(
    args: &ConnectArgs,
    ask: &AskArgs,
    target: Target,
    work: W,
    signals: &mut Signals,
) -> Result<(), Failure>
where
    W: FnOnce(Arc<Session>) -> F,
    F: Future<Output = Result<(), Failure>>,
{
    let screen = Arc::new(Screen::new(args.quiet, args.verbose));
    let person = Person::new(args, ask, Arc::clone(&screen))?;
    let client = tokio::select! {
        connected = connect(args, target, &person, &screen) => connected?,
        _ = signals.next() => return Err(interrupted()),
    };
    if let Some(identity) = &client.server().identity {
        person.name_server(identity.title.as_deref().unwrap_or(&identity.name));
    }
    let session = Session {
        client: client.clone(),
        screen: Arc::clone(&screen),
        sheet: Sheet::stdout(),
        args: args.clone(),
    };
    let done = tokio::select! {
        done = work(Arc::new(session)) => done,
        _ = signals.next() => Err(interrupted()),
    };
    screen.clear();
    tokio::select! {
        _ = tokio::time::timeout(LEAVE_WITHIN, client.close()) => {}
        // Somebody is in a hurry; what we started ends with us.
        _ = signals.next() => return Err(interrupted()),
    }
    match person.take_failure() {
        Some(failure) if done.is_err() => Err(failure),
        _ => done,
    }
}

/// Connects by the options of the command line.
async fn connect(
    args: &ConnectArgs,
    target: Target,
    person: &Person,
    screen: &Arc<Screen>,
) -> Result<Client, Failure> {
    let mut builder = Client::builder().input(person.clone());
    if let Some(revision) = args.pin() {
        builder = builder.pin(revision);
    }
    for header in &args.header {
        let value = header.value.fetch().map_err(|problem| secret_failure("--header", &problem))?;
        builder = builder.header(header.name.clone(), value);
    }
    if let Some(source) = &args.bearer {
        let token = source.fetch().map_err(|problem| secret_failure("--bearer", &problem))?;
        builder = builder.bearer(token);
    }
    if let Some(timeout) = args.timeout {
        builder = builder.limits(limits(timeout));
    }
    if let Some(level) = args.log_level {
        let screen = Arc::clone(screen);
        builder = builder.log_level(level).on_log(move |message| {
            if message.level >= level {
                screen.say(&log_line(message));
            }
        });
    }
    let target = resolve(args, target)?;
    if args.verbose {
        screen.say(&format!("connecting to {}\n", visible_line(&target.to_string())));
    }
    let client = builder.connect(target).await.map_err(failed)?;
    if args.verbose {
        let server = client.server();
        for attempt in &server.attempts {
            screen.say(&format!("{}: {}\n", visible_line(&attempt.what), visible_line(&attempt.outcome)));
        }
        screen.say(&format!("connected at {} over {}\n", server.revision, server.transport));
    }
    Ok(client)
}

/// Lets a server be silent for as long as it was said; nothing may then end sooner because of another limit.
fn limits(silent_for: Duration) -> Limits {
    let usual = Limits::default();
    Limits {
        silent_for,
        call_at_most: usual.call_at_most.max(silent_for),
        connect_within: silent_for,
        probe_within: usual.probe_within.min(silent_for),
        ..usual
    }
}

/// Writes a message of a server's log for a person.
pub(crate) fn log_line(message: &LogMessage) -> String {
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

fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
}

/// Prints data; a reader who has had enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut stdout = io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
