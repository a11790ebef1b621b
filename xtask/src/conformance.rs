//! `cargo xtask conformance`: runs the official suite and judges every check that it made.

pub(crate) mod bridge;
mod bridged_client;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::suite_results::{SuiteCheck, SuiteResults};
use crate::table::TextTable;
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, run};

/// The revisions with required scenarios that the suite has frozen.
const SCORED_REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// The revisions that the suite supports.
const SUPPORTED_REVISIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Statuses that have a column of their own; any other is counted in the column of the bad ones.
const COLUMNS: &[&str] = &["SUCCESS", "SKIPPED", "INFO", "WARNING", "FAILURE"];

const RUN_TIMEOUT: Duration = Duration::from_secs(900);

/// What is tested: a server by its URL, or a client by its command line.
#[derive(Debug)]
enum TestSubject {
    Server(String),
    Client(String),
}

/// One run of the suite.
#[derive(Debug, PartialEq, Eq)]
struct SuiteRun {
    name: String,
    arguments: Vec<String>,
}

/// The selected runs.
#[derive(Debug, Default)]
struct RunChoice {
    spec_version: Option<String>,
    quick: bool,
}

pub(crate) fn command(mut args: Args) -> TaskResult {
    let half = args.choice(&["server", "client"]);
    let choice = RunChoice { spec_version: args.value("--spec-version")?, quick: args.flag("--quick") };
    let verbose = args.flag("--verbose");
    let through_bridge = args.flag("--through-bridge");
    let url = args.value("--url")?;
    let client_command = args.value("--command")?;
    args.finish()?;
    let runs = plan(&choice)?;
    let tools = tools::install()?;
    if through_bridge {
        let servers = if half.as_deref() == Some("client") { 0 } else { bridge::judge(&tools, verbose)? };
        let clients =
            if half.as_deref() == Some("server") { 0 } else { bridged_client::judge(&tools, verbose)? };
        return conclude(servers + clients);
    }
    // Who names something to be tested wants that tested and nothing else.
    let wanted = |name: &str, given: bool| match &half {
        Some(half) => half == name,
        None => given || (url.is_none() && client_command.is_none()),
    };
    let (server, client) = (wanted("server", url.is_some()), wanted("client", client_command.is_some()));
    let mut bad = 0;
    if server {
        bad += match url {
            Some(url) => judge(&tools, &TestSubject::Server(url), &runs, verbose)?,
            None => {
                // One process for all runs: a server must not mind what earlier clients spoke.
                let server = FixtureServer::start(&fixture::build("everything-server")?)?;
                judge(&tools, &TestSubject::Server(server.url("http", "/mcp")), &runs, verbose)?
            }
        };
    }
    if client {
        let command = match client_command {
            Some(command) => command,
            None => fixture::build("everything-client")?.display().to_string(),
        };
        bad += judge(&tools, &TestSubject::Client(command), &runs, verbose)?;
    }
    if server && client && choice.spec_version.is_none() {
        bad += bridge::judge(&tools, verbose)? + bridged_client::judge(&tools, verbose)?;
    }
    conclude(bad)
}

/// Runs the scored sets against a server, and counts the checks that fail them, but for some.
pub(crate) fn judge_server(tools: &InstalledTools, url: String, exempt: &[&str]) -> TaskResult<usize> {
    let subject = TestSubject::Server(url);
    let results = fixture::results_folder("conformance-replicas")?;
    let mut bad = 0;
    for run in plan(&RunChoice { spec_version: None, quick: true })? {
        let verdict = run_suite(tools, &subject, &run, &results)?;
        let counted = verdict.bad().filter(|check| !exempt.contains(&check.id.as_str()));
        bad +=
            counted.inspect(|check| println!("  {} {}: {}", check.status, check.id, check.message)).count();
        println!("{}: {}", run.name, row(&run.name, &verdict).split_off(1).join(" "));
    }
    Ok(bad)
}

fn conclude(bad: usize) -> TaskResult {
    if bad > 0 {
        return Err(format!("the conformance suite has {bad} complaints").into());
    }
    Ok(())
}

/// Lists the runs: the scored sets, then everything the suite has at each revision, then the extensions.
fn plan(choice: &RunChoice) -> TaskResult<Vec<SuiteRun>> {
    let wanted = |version: &&&str| choice.spec_version.as_deref().is_none_or(|only| only == **version);
    let run = |name: String, arguments: &[&str]| SuiteRun {
        name,
        arguments: arguments.iter().map(ToString::to_string).collect(),
    };
    let mut runs = Vec::new();
    for version in SCORED_REVISIONS.iter().filter(wanted) {
        runs.push(run(format!("required-{version}"), &["--requirements", version]));
    }
    if !choice.quick {
        for version in SUPPORTED_REVISIONS.iter().filter(wanted) {
            runs.push(run(format!("all-{version}"), &["--suite", "all", "--spec-version", version]));
        }
        if choice.spec_version.is_none() {
            runs.push(run("all".to_owned(), &["--suite", "all"]));
        }
    }
    if runs.is_empty() {
        let version = choice.spec_version.as_deref().unwrap_or_default();
        return Err(format!(
            "there is nothing to run at `{version}`; the suite speaks {}",
            SUPPORTED_REVISIONS.join(", ")
        )
        .into());
    }
    Ok(runs)
}

/// Runs the suite against a subject, and counts what fails it.
fn judge(
    tools: &InstalledTools,
    subject: &TestSubject,
    runs: &[SuiteRun],
    verbose: bool,
) -> TaskResult<usize> {
    let results = fixture::results_folder(subject.results())?;
    let mut table =
        TextTable::new(&["run", "scenarios", "success", "skipped", "info", "warning", "failure", "exempt"]);
    let mut bad = 0;
    for run in runs {
        let verdict = run_suite(tools, subject, run, &results)?;
        bad += show(&run.name, subject, &verdict, verbose);
        table.row(row(&run.name, &verdict));
    }
    print!("\n{}", table.render());
    println!("Everything the suite wrote is in {}.", results.display());
    Ok(bad)
}

fn run_suite(
    tools: &InstalledTools,
    subject: &TestSubject,
    run: &SuiteRun,
    results: &Path,
) -> TaskResult<SuiteResults> {
    println!("conformance {} {}", subject.half(), run.arguments.join(" "));
    let folder = results.join(&run.name);
    let log = results.join(format!("{}.log", run.name));
    std::fs::create_dir_all(&folder)?;
    let mut command = suite(tools, subject);
    command.args(&run.arguments).arg("--output-dir").arg(&folder);
    let status = run::run_logged(&mut command, &log, RUN_TIMEOUT)?;
    let mut verdict =
        SuiteResults::read(&folder).map_err(|error| format!("{error}; see {}", log.display()))?;
    verdict.read_summary(&std::fs::read_to_string(&log)?);
    // The suite ends with 1 when a check failed; any other end means that it broke down itself.
    let explained = verdict.bad().count() + verdict.exempt() > 0;
    if status.success() || (status.code() == Some(1) && explained) {
        Ok(verdict)
    } else {
        Err(format!("the suite ended with {status} and no check says why; see {}", log.display()).into())
    }
}

fn suite(tools: &InstalledTools, subject: &TestSubject) -> Command {
    let mut command = run::command(&tools.node);
    command.arg(&tools.conformance);
    match subject {
        TestSubject::Server(url) => command.args([subject.half(), "--url", url]),
        TestSubject::Client(line) => command.args([subject.half(), "--command", line]),
    };
    command
}

impl TestSubject {
    fn half(&self) -> &'static str {
        match self {
            Self::Server(_) => "server",
            Self::Client(_) => "client",
        }
    }

    fn results(&self) -> &'static str {
        match self {
            Self::Server(_) => "conformance",
            Self::Client(_) => "conformance-client",
        }
    }

    /// Reports whether a skipped check fails the run: a client's checks depend only on its fixture, which supports all
    /// of them.
    fn may_skip(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// Prints what needs to be seen and counts the checks that fail the run.
fn show(run: &str, subject: &TestSubject, verdict: &SuiteResults, verbose: bool) -> usize {
    let print = |check: &SuiteCheck| {
        println!("  {} {run} {} {}: {}", check.status, check.scenario, check.id, check.message);
    };
    for check in
        verdict.checks.iter().filter(|check| verbose && matches!(check.status.as_str(), "SKIPPED" | "INFO"))
    {
        print(check);
    }
    let skipped = verdict.skipped().filter(|_| !subject.may_skip());
    verdict.bad().chain(skipped).inspect(|check| print(check)).count()
}

fn row(run: &str, verdict: &SuiteResults) -> Vec<String> {
    let tally = verdict.tally();
    let unknown: usize =
        tally.iter().filter(|(status, _)| !COLUMNS.contains(status)).map(|(_, count)| count).sum();
    let mut cells = vec![run.to_owned(), verdict.scenarios.to_string()];
    for status in COLUMNS {
        let more = if *status == "FAILURE" { unknown } else { 0 };
        cells.push((tally.get(status).unwrap_or(&0) + more).to_string());
    }
    cells.push(verdict.exempt().to_string());
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec_version: Option<&str>, quick: bool) -> Vec<String> {
        let choice = RunChoice { spec_version: spec_version.map(str::to_owned), quick };
        plan(&choice).unwrap().into_iter().map(|run| run.name).collect()
    }

    #[test]
    fn plan_has_the_scored_sets_and_every_revision() {
        assert_eq!(
            names(None, false),
            [
                "required-2025-11-25",
                "required-2026-07-28",
                "all-2025-03-26",
                "all-2025-06-18",
                "all-2025-11-25",
                "all-2026-07-28",
                "all",
            ]
        );
        assert_eq!(names(None, true), ["required-2025-11-25", "required-2026-07-28"]);
        assert_eq!(names(Some("2025-06-18"), false), ["all-2025-06-18"]);
        assert_eq!(names(Some("2026-07-28"), false), ["required-2026-07-28", "all-2026-07-28"]);
    }

    #[test]
    fn unsupported_revision_is_refused() {
        let choice = RunChoice { spec_version: Some("2024-01-01".to_owned()), quick: false };
        assert!(plan(&choice).unwrap_err().to_string().contains("2024-01-01"));
    }
}
