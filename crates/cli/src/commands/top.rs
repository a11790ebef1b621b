use std::io::IsTerminal as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use trunkline_hub::events::HubEvent;

use super::manage::{FileArgs, HubArgs};
use crate::admin::{AdminClient, AdminError, HubReport, SessionReport};
use crate::connect::{in_runtime, print_stdout};
use crate::exit::{CliFailure, ExitReason};
use crate::signals::{HangupSignals, Signals};
use crate::terminal::TextStyle;
use crate::top::{KeyOutcome, Palette, TerminalSession, TopModel, TopView, draw, snapshot};
use crate::values::parse_duration;

/// How often the screen is drawn at most.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// How often the states of the servers and the sessions are read.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// The keys that wait to be handled.
const MAX_QUEUED_KEYS: usize = 64;

/// How long `--json` counts calls without `--for`.
const SNAPSHOT_TIME: Duration = Duration::from_secs(2);

/// Watch the running hub: servers, clients and calls
#[derive(Debug, Args)]
#[command(after_help = "Keys: q quits, ? lists the others. It changes nothing at the hub.\n\n\
Examples:\n  trunkline top\n  trunkline top --json --for 10s | jq '.servers[].p95_us'")]
pub(crate) struct TopArgs {
    /// With --json: count calls this long [default: 2s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "json")]
    time: Option<Duration>,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Shows the hub until the user quits, or prints one snapshot.
///
/// # Errors
/// No hub runs, it ends, or there is no terminal.
pub(crate) fn run(args: &TopArgs) -> Result<(), CliFailure> {
    let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if !args.file.json && (!has_terminal || is_dumb) {
        return Err(CliFailure::new(ExitReason::Usage, "`trunkline top` needs a terminal")
            .hint("`--json` prints a snapshot; `trunkline record` writes events"));
    }
    in_runtime(args.file.json, async |signals| top(args, signals).await)
}

async fn top(args: &TopArgs, signals: &mut Signals) -> Result<(), CliFailure> {
    let path = args.file.path_or_new();
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        let message = format!("no hub is running from {}", path.display());
        CliFailure::new(ExitReason::Unreachable, message).hint("start one with `trunkline serve`")
    })?;
    let mut hub = HubFeed::open(hub).await?;
    if args.file.json {
        return print_snapshot(&mut hub, args.time.unwrap_or(SNAPSHOT_TIME), signals).await;
    }
    watch(&mut hub, signals).await
}

/// The events of a hub and the reports of its servers, as they come.
struct HubFeed {
    client: AdminClient,
    #[cfg(unix)]
    lines: crate::admin::EventLines,
    #[cfg(not(unix))]
    lines: tokio::io::BufReader<tokio::io::Empty>,
    line: Vec<u8>,
    reports: mpsc::Receiver<Result<(HubReport, SessionReport), AdminError>>,
    report_requests: mpsc::Sender<Result<(HubReport, SessionReport), AdminError>>,
    is_requested: bool,
    model: TopModel,
}

impl HubFeed {
    async fn open(client: AdminClient) -> Result<Self, CliFailure> {
        // Before the states are read, so that no change between the two is missed.
        let lines = lines_of(&client).await?;
        let (report_requests, reports) = mpsc::channel(1);
        let mut model = TopModel::default();
        model.apply_report(client.report()?);
        model.apply_sessions(client.sessions()?, now());
        Ok(Self { client, lines, line: Vec::new(), reports, report_requests, is_requested: false, model })
    }

    /// Requests the states and sessions, unless a request is under way.
    fn request_report(&mut self) {
        if std::mem::replace(&mut self.is_requested, true) {
            return;
        }
        let (client, answers) = (self.client.clone(), self.report_requests.clone());
        tokio::task::spawn_blocking(move || {
            let report = client.report().and_then(|report| Ok((report, client.sessions()?)));
            // The command may be over.
            let _ = answers.blocking_send(report);
        });
    }

    /// Waits for the next event or report and takes it over. Cancel safe: a part of a line is kept for the next call.
    ///
    /// # Errors
    /// The hub has ended.
    async fn next(&mut self) -> Result<(), CliFailure> {
        tokio::select! {
            read = next_line(&mut self.lines, &mut self.line) => {
                if !read {
                    return Err(CliFailure::new(ExitReason::Unreachable, "the hub has closed the connection"));
                }
                if let Ok(event) = HubEvent::parse(&String::from_utf8_lossy(&self.line)) {
                    self.model.apply(&event);
                }
                self.line.clear();
            }
            Some(report) = self.reports.recv() => {
                self.is_requested = false;
                let (report, sessions) = report?;
                self.model.apply_report(report);
                self.model.apply_sessions(sessions, now());
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
async fn lines_of(client: &AdminClient) -> Result<crate::admin::EventLines, CliFailure> {
    Ok(client.call_events().await?)
}

#[cfg(not(unix))]
async fn lines_of(_: &AdminClient) -> Result<tokio::io::BufReader<tokio::io::Empty>, CliFailure> {
    Err(CliFailure::new(ExitReason::Unreachable, "a running hub can be watched only on Unix"))
}

/// Reads the rest of a line; `false` at the end of the events.
async fn next_line(lines: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> bool {
    matches!(lines.read_until(b'\n', line).await, Ok(1..)) && line.last() == Some(&b'\n')
}

/// Returns the time in microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

async fn print_snapshot(hub: &mut HubFeed, time: Duration, signals: &mut Signals) -> Result<(), CliFailure> {
    let begun = Instant::now();
    let end = tokio::time::sleep(time);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            _ = signals.next() => break,
            next = hub.next() => next?,
        }
    }
    // The states of now, and not those of the start.
    hub.model.apply_report(hub.client.report()?);
    let shown = snapshot(&hub.model, begun.elapsed().as_secs_f64(), now());
    print_stdout(&format!("{shown}\n"))
}

async fn watch(hub: &mut HubFeed, signals: &mut Signals) -> Result<(), CliFailure> {
    let failed = |error: std::io::Error| {
        CliFailure::new(ExitReason::Failed, format!("cannot use the terminal: {error}"))
    };
    let mut hangups = HangupSignals::install().map_err(failed)?;
    let palette = Palette::new(TextStyle::for_stream(&std::io::stdout()).is_colored());
    let mut session = TerminalSession::enter().map_err(failed)?;
    let mut keys = read_keys();
    let mut view = TopView::default();
    let (mut redraws, mut reports) = (interval(REDRAW_INTERVAL), interval(REPORT_INTERVAL));
    redraws.set_missed_tick_behavior(MissedTickBehavior::Delay);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let draws = tokio::select! {
            _ = signals.next() => return Ok(()),
            () = hangups.next() => return Ok(()),
            pressed = keys.recv() => match pressed {
                Some(TerminalInput::Key(key)) => match view.press(key, &hub.model, now()) {
                    KeyOutcome::Quit => return Ok(()),
                    KeyOutcome::Continue => true,
                },
                Some(TerminalInput::Resized) => true,
                // The terminal is gone.
                None => return Ok(()),
            },
            _ = redraws.tick() => true,
            _ = reports.tick() => {
                hub.request_report();
                false
            }
            next = hub.next() => {
                next?;
                false
            }
        };
        if draws {
            let (model, now) = (&hub.model, now());
            session.terminal.draw(|frame| draw(frame, model, &view, palette, now)).map_err(failed)?;
        }
    }
}

/// What comes from the terminal.
enum TerminalInput {
    Key(KeyEvent),
    Resized,
}

/// Reads keys in a thread of their own, which ends with the process.
fn read_keys() -> mpsc::Receiver<TerminalInput> {
    let (sender, keys) = mpsc::channel(MAX_QUEUED_KEYS);
    std::thread::spawn(move || {
        while let Ok(read) = event::read() {
            let input = match read {
                Event::Key(key) if key.kind != KeyEventKind::Release => TerminalInput::Key(key),
                Event::Resize(..) => TerminalInput::Resized,
                _ => continue,
            };
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
    });
    keys
}
