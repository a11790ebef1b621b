use std::io;
use std::sync::Arc;
use std::time::Duration;

use trunkline_client::Client;
use trunkline_client::transport::Target;
use trunkline_protocol::Era;

use super::build::builder;
use super::failure::failed_to_connect;
use super::options::{AskArgs, ConnectArgs};
use super::person::Person;
use super::resolve::resolve;
use super::runtime::{in_runtime, interrupted};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::{Screen, Sheet, visible_line};

/// How long an orderly end may take; a client that keeps to its own limit is done sooner.
const LEAVE_WITHIN: Duration = Duration::from_secs(6);

/// How long an end may take before somebody who waits is told what for.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// How long a session is waited for to ask for roots, where there are some to tell.
const ROOTS_WITHIN: Duration = Duration::from_secs(1);

/// How long a server has to look at the roots that it was told of: nothing says when it is done.
const ROOTS_SETTLE: Duration = Duration::from_millis(250);

/// How long messages of a log are waited for that come over another stream than the answer, and so perhaps after it.
const LATE_LOGS: Duration = Duration::from_millis(500);

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
pub(crate) fn run<W>(args: &ConnectArgs, ask: &AskArgs, target: Target, work: W) -> Result<(), Failure>
where
    W: AsyncFnOnce(&Session) -> Result<(), Failure>,
{
    in_runtime(args.json, async |signals| attend(args, ask, target, work, signals).await)
}

async fn attend<W>(
    args: &ConnectArgs,
    ask: &AskArgs,
    target: Target,
    work: W,
    signals: &mut Signals,
) -> Result<(), Failure>
where
    W: AsyncFnOnce(&Session) -> Result<(), Failure>,
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
        // What nobody could answer is told in place of what the server made of it.
        biased;
        unanswered = person.failed() => Err(unanswered),
        done = work(&session) => done,
        never = screen.keep_drawn() => match never {},
        _ = signals.next() => Err(interrupted()),
    };
    if done.is_ok() && args.log_level.is_some() && logs_may_be_late(&client) {
        tokio::select! {
            () = tokio::time::sleep(LATE_LOGS) => {}
            _ = signals.next() => {}
        }
    }
    screen.clear();
    let done = leave(client, &screen, signals).await.and(done);
    done.map_err(|failure| explain(failure, &person))
}

/// Reports whether a server may say something beside its answers over a stream of its own.
fn logs_may_be_late(client: &Client) -> bool {
    let server = client.server();
    server.keeps_sessions() && server.transport == "streamable-http"
}

/// Says what the person could have done about a failure that comes from a question.
fn explain(failure: Failure, person: &Person) -> Failure {
    if person.can_be_asked() || !failure.speaks_of("elicitation") {
        return failure;
    }
    failure
        .or_hint("the server wants to ask something: `trunkline help answers` says how to answer in advance")
}

/// Ends a connection in order, unless somebody is in a hurry; what we started ends with us.
///
/// # Errors
/// Somebody was.
pub(crate) async fn leave(client: Client, screen: &Screen, signals: &mut Signals) -> Result<(), Failure> {
    let telling = async {
        tokio::time::sleep(TELL_AFTER).await;
        screen.say("waiting for the server to end; Ctrl-C leaves it\n");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = tokio::time::timeout(LEAVE_WITHIN, client.close()) => Ok(()),
        () = telling => Ok(()),
        _ = signals.next() => {
            Err(Failure::new(Exit::Interrupted, "interrupted before the server had ended; it ends with us"))
        }
    }
}

/// Connects by the options of the command line.
async fn connect(
    args: &ConnectArgs,
    target: Target,
    person: &Person,
    screen: &Arc<Screen>,
) -> Result<Client, Failure> {
    let resolved = resolve(&args.reach, target)?;
    if let Some(announcement) = &resolved.announcement {
        screen.say(&format!("{}\n", visible_line(announcement)));
    }
    let builder = builder(args, &resolved, person, screen)?;
    if args.verbose {
        screen.say(&format!("connecting to {}\n", visible_line(&resolved.label)));
    }
    let connected = builder.connect(resolved.target).await;
    let client = connected.map_err(|error| failed_to_connect(error, &resolved.label))?;
    if args.verbose {
        let server = client.server();
        for attempt in &server.attempts {
            screen.say(&format!("{}\n", visible_line(&attempt.to_string())));
        }
        screen.say(&format!("connected at {} over {}\n", server.revision, server.transport));
    }
    if client.server().revision.era() == Era::Legacy {
        // A session asks for roots when it begins, and some servers know no folder until they have heard of one.
        if person.has_roots() && tokio::time::timeout(ROOTS_WITHIN, person.asked_for_roots()).await.is_ok() {
            tokio::time::sleep(ROOTS_SETTLE).await;
        }
    }
    Ok(client)
}

/// Prints data; a reader who has had enough is no failure.
///
/// # Errors
/// Standard output cannot be written to.
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
