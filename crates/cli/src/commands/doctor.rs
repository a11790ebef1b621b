use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use trunkline_client::transport::Target;
use trunkline_client::{Attempt, Client, Error};

use super::info::{capability_words, era};
use crate::connect::{
    AskArgs, ConnectArgs, Person, Resolved, TargetArgs, builder, failed_to_connect, help, in_runtime,
    interrupted, leave, output_line, print, resolve, shows_credentials,
};
use crate::doctor::{Report, Strays, look_at_offers, look_at_speed, look_at_way};
use crate::exit::{Exit, Failure};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{Screen, Sheet, visible_line};

/// Look at each step of the way to a server, and at what it offers
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline doctor [OPTIONS] TARGET\n       trunkline doctor [OPTIONS] -- COMMAND [ARG]...",
    after_help = help("It exits with 1 if there are problems, 4 if the server cannot be reached, and 5\nif it wants other credentials.\n\nExamples:\n  trunkline doctor https://example.com/mcp\n  trunkline doctor --strict -- ./server")
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Exit with 1 if there are warnings, too
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Examines a server.
///
/// # Errors
/// It cannot be reached, or something is wrong with it.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let words = args.target.words()?;
    words.end()?;
    in_runtime(args.connect.json, async |signals| examine(args, words.target, signals).await)
}

async fn examine(args: &DoctorArgs, target: Target, signals: &mut Signals) -> Result<(), Failure> {
    let resolved = resolve(&args.connect.reach, target)?;
    let screen = Arc::new(Screen::new(args.connect.quiet, args.connect.verbose));
    if let Some(announcement) = &resolved.announcement {
        screen.say(&format!("{}\n", visible_line(announcement)));
    }
    let mut report = Report::default();
    let examined = tokio::select! {
        examined = look(args, &resolved, &screen, &mut report) => examined,
        _ = signals.next() => return Err(interrupted()),
    };
    let text = if args.connect.json {
        format!("{}\n", one_line(&report.to_json().into()))
    } else {
        report.to_text(Sheet::stdout())
    };
    print(&text)?;
    let client = examined?;
    leave(client, &screen, signals).await?;
    if report.has_problems() || (args.strict && report.has_warnings()) {
        return Err(Failure::new(Exit::Failed, report.summary()));
    }
    screen.say(&format!("{}\n", report.summary()));
    Ok(())
}

/// Goes the whole way; what is found on it is in the report, however far it leads.
async fn look(
    args: &DoctorArgs,
    resolved: &Resolved,
    screen: &Arc<Screen>,
    report: &mut Report,
) -> Result<Client, Failure> {
    look_at_way(resolved, args.connect.reach.timeout, report).await?;
    let person = Person::new(&args.connect, &AskArgs::default(), Arc::clone(screen))?;
    let strays = Strays::default();
    let builder = {
        let (strays, screen, verbose) = (strays.clone(), Arc::clone(screen), args.connect.verbose);
        builder(&args.connect, resolved, &person, &screen)?.on_line(move |line| {
            strays.note(line);
            if verbose {
                screen.say(&output_line(line));
            }
        })
    };
    let shown = shows_credentials(&args.connect.reach, resolved);
    let begun = Instant::now();
    let client = match builder.connect(resolved.target.clone()).await {
        Ok(client) => client,
        Err(error) => {
            tell_of_failure(&error, shown, report);
            strays.tell(report);
            return Err(failed_to_connect(error, &resolved.label).in_short());
        }
    };
    let took = begun.elapsed();
    let server = client.server();
    tell_of_attempts(&server.attempts, report);
    match &resolved.target {
        Target::Url(url) => report.timed(
            if url.scheme().is_websocket() { "websocket" } else { "http" },
            server.transport,
            took,
        ),
        _ => report.timed("pipes", server.transport, took),
    }
    match &resolved.target {
        Target::Url(_) if shown => report.good("authorization", "the credentials were accepted"),
        Target::Url(_) => report.good("authorization", "none was asked for"),
        _ => report.absent("authorization", "none between programs of one person"),
    }
    report.good("era", era(&server));
    report.good("revision", server.revision.as_str());
    match &server.identity {
        Some(identity) => report.good("server", &format!("{} {}", identity.name, identity.version)),
        None => report.absent("server", "it does not say what it is"),
    }
    report.good("capabilities", &capability_words(&server.capabilities));
    look_at_speed(&client, report).await;
    look_at_offers(&client, report).await;
    strays.tell(report);
    Ok(client)
}

fn tell_of_attempts(attempts: &[Attempt], report: &mut Report) {
    for attempt in attempts {
        report.absent("tried", &attempt.to_string());
    }
}

/// Says how far it came, and what was wrong there.
fn tell_of_failure(error: &Error, shown: bool, report: &mut Report) {
    match error {
        Error::Unreachable(unreachable) => {
            tell_of_attempts(&unreachable.attempts, report);
            let mut lines = unreachable.cause.lines();
            report.problem("protocol", lines.next().unwrap_or_default());
            lines.for_each(|line| report.absent("", line));
        }
        Error::Unauthorized { status, challenge } => {
            let what = if shown { "the credentials were refused" } else { "credentials are asked for" };
            let challenge = challenge.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            report.problem("authorization", &format!("{what} (HTTP {status}){challenge}"));
        }
        other => report.problem("protocol", &other.to_string()),
    }
}
