use clap::Args;
use serde_json::json;

use super::hub::hub_not_found;
use super::{FileArgs, HubArgs};
use crate::admin::{AdminClient, SessionReport, SessionState};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::terminal::{OutputLayout, escape_line, table};

/// List, show or end legacy sessions of the running hub
#[derive(Debug, Args)]
#[command(
    after_help = "Lists sessions of clients up to revision 2025-11-25. Those over Streamable HTTP\nare in the store; the others end with their connection. Exits with 4 if no hub\nis running."
)]
pub(crate) struct SessionsArgs {
    /// Beginning of a session's id, as the list shows it
    id: Option<String>,
    /// End the session
    #[arg(long, requires = "id")]
    end: bool,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Lists sessions, shows one or ends one.
///
/// # Errors
/// No hub runs, or it has no such session.
pub(crate) fn run(args: &SessionsArgs) -> Result<(), CliFailure> {
    run_command(args).map_err(|failure| failure.with_json(args.file.json))
}

fn run_command(args: &SessionsArgs) -> Result<(), CliFailure> {
    let path = args.file.path()?;
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        let (what, hint) = hub_not_found(&path);
        CliFailure::new(ExitReason::Unreachable, what).hint(hint)
    })?;
    match &args.id {
        Some(id) if args.end => end(&hub, id, args.file.json),
        Some(id) => show(&hub, id, args.file.json),
        None => list(&hub.sessions()?, args.file.json),
    }
}

fn list(report: &SessionReport, as_json: bool) -> Result<(), CliFailure> {
    if as_json {
        return print_stdout(&format!("{}\n", json!(report)));
    }
    print_stderr(&format!(
        "{} sessions; those over http are in the {} store\n",
        report.sessions.len(),
        escape_line(&report.store)
    ));
    if report.is_truncated {
        print_stderr("there are more, which are not listed\n");
    }
    if report.sessions.is_empty() {
        return Ok(());
    }
    let head = ["ID", "PRINCIPAL", "CLIENT", "REVISION", "TRANSPORT", "AGE", "IDLE"].map(str::to_owned);
    let rows: Vec<_> = report.sessions.iter().map(row).collect();
    print_stdout(&table(&head, &rows, OutputLayout::stdout().columns))
}

fn row(session: &SessionState) -> Vec<String> {
    let client = session.client.as_deref().unwrap_or("-");
    let cells = [&*session.id, &session.principal, client, &session.revision, &session.transport];
    let mut cells: Vec<String> = cells.into_iter().map(|cell| escape_line(cell).into_owned()).collect();
    cells.push(seconds(session.age_s));
    cells.push(idle(session));
    cells
}

fn idle(session: &SessionState) -> String {
    match session.idle_s {
        _ if session.busy => "busy".to_owned(),
        Some(idle) => seconds(idle),
        // Of these nothing records the last use.
        None if matches!(&*session.transport, "stdio" | "channel") => "-".to_owned(),
        None => "since start".to_owned(),
    }
}

fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3_600),
    }
}

fn show(hub: &AdminClient, id: &str, as_json: bool) -> Result<(), CliFailure> {
    let report = hub.sessions()?;
    let mut meant = report.sessions.iter().filter(|session| session.id.starts_with(id));
    let (Some(session), None) = (meant.next(), meant.next()) else {
        return Err(CliFailure::configuration(format!("no session, or more than one, begins with `{id}`"))
            .hint("`trunkline sessions` lists them"));
    };
    if as_json {
        return print_stdout(&format!("{}\n", json!(session)));
    }
    let mut lines = vec![
        ("id", session.id.clone()),
        ("principal", session.principal.clone()),
        ("client", session.client.clone().unwrap_or_else(|| "-".to_owned())),
        ("revision", session.revision.clone()),
        ("transport", session.transport.clone()),
        ("log level", session.log_level.clone().unwrap_or_else(|| "-".to_owned())),
        ("age", seconds(session.age_s)),
        ("idle", idle(session)),
    ];
    lines.extend(session.subscriptions.iter().map(|uri| ("subscribed", uri.clone())));
    let line = |(name, value): &(&str, String)| format!("{name:<11} {}\n", escape_line(value));
    print_stdout(&lines.iter().map(line).collect::<String>())
}

fn end(hub: &AdminClient, id: &str, as_json: bool) -> Result<(), CliFailure> {
    hub.end_session(id)?;
    if as_json {
        return print_stdout(&format!("{}\n", json!({ "session": id, "done": "ended" })));
    }
    print_stderr(&format!("ended session `{}`\n", escape_line(id)));
    Ok(())
}
