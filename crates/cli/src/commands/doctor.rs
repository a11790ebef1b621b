use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use trunkline_client::transport::Target;
use trunkline_client::{Client, ConnectAttempt, Error, ServerInfo};

use super::info::{capability_summary, era_name};
use crate::connect::{
    AnswerArgs, ConnectArgs, ResolvedTarget, TargetArgs, TerminalInputHandler, client_builder, close_client,
    connect_failure, has_credentials, in_runtime, interrupted, output_line, print_stdout, resolve,
    target_or_hub_help,
};
use crate::doctor::{
    DoctorReport, StrayOutput, check_lists, check_login_steps, check_reachability, describe_stored_login,
    measure_latency,
};
use crate::exit::{CliFailure, ExitReason};
use crate::login::{LoginOptions, LoginTarget};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{OutputLayout, StderrScreen, escape_line};

/// Diagnose the connection to a server, and check what it offers
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline doctor [OPTIONS] [TARGET]\n       trunkline doctor [OPTIONS] -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Exits with 1 if there are problems, 3 if the server is not configured properly,\n4 if it cannot be reached, and 5 if authentication fails.\n\nExamples:\n  trunkline doctor https://example.com/mcp\n  trunkline doctor --strict -- ./server")
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Also exit with 1 if there are warnings
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Examines a server.
///
/// # Errors
/// It cannot be reached, or something is wrong with it.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    words.expect_end()?;
    in_runtime(args.connect.json, async |signals| examine(args, words.target, signals).await)
}

async fn examine(args: &DoctorArgs, target: Target, signals: &mut Signals) -> Result<(), CliFailure> {
    let mut report = DoctorReport::default();
    let resolved = match resolve(&args.connect.target_options, target) {
        Ok(resolved) => resolved,
        Err(failure) => {
            report.problem("configuration", &failure.to_string());
            print_report(args, &report)?;
            return Err(failure);
        }
    };
    let screen = Arc::new(StderrScreen::new(args.connect.quiet, args.connect.verbose));
    for announcement in &resolved.announcements {
        screen.print(&format!("{}\n", escape_line(announcement)));
    }
    let examined = tokio::select! {
        examined = run_checks(args, &resolved, &screen, &mut report) => examined,
        _ = signals.next() => return Err(interrupted()),
    };
    print_report(args, &report)?;
    let client = examined?;
    close_client(client, &screen, signals).await?;
    if report.has_problems() || (args.strict && report.has_warnings()) {
        return Err(CliFailure::new(ExitReason::Failed, report.summary()));
    }
    screen.print(&format!("{}\n", report.summary()));
    Ok(())
}

fn print_report(args: &DoctorArgs, report: &DoctorReport) -> Result<(), CliFailure> {
    let text = if args.connect.json {
        format!("{}\n", one_line(&report.to_json().into()))
    } else {
        report.to_text(OutputLayout::stdout())
    };
    print_stdout(&text)
}

/// Runs all checks; the report has every finding.
async fn run_checks(
    args: &DoctorArgs,
    resolved: &ResolvedTarget,
    screen: &Arc<StderrScreen>,
    report: &mut DoctorReport,
) -> Result<Client, CliFailure> {
    check_reachability(resolved, args.connect.target_options.timeout, report).await?;
    let input_handler = TerminalInputHandler::new(&args.connect, &AnswerArgs::default(), Arc::clone(screen))?;
    let strays = StrayOutput::default();
    let builder = {
        let (strays, screen, verbose) = (strays.clone(), Arc::clone(screen), args.connect.verbose);
        client_builder(&args.connect, resolved, &input_handler, LoginOptions::StoredOnly, &screen)?.on_line(
            move |line| {
                strays.record(line);
                if verbose {
                    screen.print(&output_line(line));
                }
            },
        )
    };
    let shown = has_credentials(&args.connect.target_options, resolved);
    let login = LoginTarget::new(resolved, args.connect.target_options.config.as_deref());
    let begun = Instant::now();
    let client = match builder.connect(resolved.target.clone()).await {
        Ok(client) => client,
        Err(error) => {
            if let (Error::Authorization(_), Some(login)) = (&error, &login) {
                check_login_steps(login, screen, report).await;
            }
            report_failure(&error, shown, resolved, report);
            strays.add_to_report(report);
            return Err(connect_failure(error, &resolved.label).first_line_only());
        }
    };
    let took = begun.elapsed();
    let authorization = match &login {
        Some(_) if shown => Some("credentials accepted".to_owned()),
        Some(login) => {
            let stored = describe_stored_login(login, screen).await;
            Some(stored.unwrap_or_else(|| "not required".to_owned()))
        }
        None => None,
    };
    report_connection(&client.server(), resolved, took, authorization.as_deref(), report);
    measure_latency(&client, report).await;
    check_lists(&client, report).await;
    strays.add_to_report(report);
    Ok(client)
}

/// Reports how the connection was made, how it is authorized (`None` for a program), and what the server describes itself as.
fn report_connection(
    server: &ServerInfo,
    resolved: &ResolvedTarget,
    took: Duration,
    authorization: Option<&str>,
    report: &mut DoctorReport,
) {
    report_program(resolved, report);
    report_attempts(&server.attempts, report);
    match &resolved.target {
        Target::Url(url) => report.passed_in(
            if url.scheme().is_websocket() { "websocket" } else { "http" },
            server.transport,
            took,
        ),
        _ => report.passed_in("pipes", server.transport, took),
    }
    match authorization {
        Some(words) => report.passed("authorization", words),
        None => report.not_applicable("authorization", "not applicable (local process)"),
    }
    report.passed("era", era_name(server));
    if server.attempts.iter().any(ConnectAttempt::is_unanswered_probe) {
        report.warning(
            "probe",
            "never answers `server/discover`, so each connection takes a second longer; `era = \"legacy\"` avoids that",
        );
    }
    report.passed("revision", server.revision.as_str());
    match &server.identity {
        Some(identity) => report.passed("server", &format!("{} {}", identity.name, identity.version)),
        None => report.not_applicable("server", "the server does not identify itself"),
    }
    report.passed("capabilities", &capability_summary(&server.capabilities));
}

/// Reports a program that was started.
fn report_program(resolved: &ResolvedTarget, report: &mut DoctorReport) {
    if !matches!(resolved.target, Target::Url(_)) {
        report.passed("program", &resolved.label);
    }
}

fn report_attempts(attempts: &[ConnectAttempt], report: &mut DoctorReport) {
    for attempt in attempts {
        report.not_applicable("tried", &attempt.to_string());
    }
}

/// Reports how far the connection got, and what failed.
fn report_failure(error: &Error, shown: bool, resolved: &ResolvedTarget, report: &mut DoctorReport) {
    match error {
        Error::Unreachable(unreachable)
            if unreachable.attempts.iter().any(ConnectAttempt::is_failed_start) =>
        {
            report.problem("program", &unreachable.cause);
        }
        Error::Unreachable(unreachable) => {
            report_program(resolved, report);
            report_attempts(&unreachable.attempts, report);
            let mut lines = unreachable.cause.lines();
            report.problem("protocol", lines.next().unwrap_or_default());
            lines.for_each(|line| report.not_applicable("", line));
        }
        Error::Unauthorized { status, challenge } => {
            let what = if shown { "credentials rejected" } else { "credentials required" };
            let challenge = challenge.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            report.problem("authorization", &format!("{what} (HTTP {status}){challenge}"));
        }
        Error::Authorization(error) if error.needs_login() => {
            report.problem("authorization", "credentials required (HTTP 401)");
        }
        Error::Authorization(error) => report.problem("authorization", &error.to_string()),
        other => report.problem("protocol", &other.to_string()),
    }
}
