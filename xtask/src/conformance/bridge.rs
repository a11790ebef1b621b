//! The suite through `trunkline bridge`: in front of a server of another era, or over another transport, than those of
//! the suite.

use std::path::Path;

use super::{SuiteRun, TestSubject, row, run_suite};
use crate::fixture::{self, FixtureServer};
use crate::suite_results::{SuiteCheck, SuiteResults};
use crate::table::TextTable;
use crate::tools::InstalledTools;
use crate::{TaskResult, interop, run};

/// One server, and what the suite requires of the bridge in front of it.
struct BridgeSetting {
    name: &'static str,
    start: fn(&BridgePrograms<'_>) -> TaskResult<FixtureServer>,
    /// The scheme and the path at which the bridge reaches it.
    reached_at: (&'static str, &'static str),
    requires: &'static str,
    /// The checks that fail because of what the server's era has no words for.
    expected_failures: &'static [ExpectedFailure],
}

/// A check that no bridge can pass, and why.
pub(super) struct ExpectedFailure {
    pub(super) scenario: &'static str,
    pub(super) check: &'static str,
    pub(super) reason: &'static str,
}

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

const STREAMABLE_HTTP: (&str, &str) = ("http", "/mcp");
const HTTP_SSE: (&str, &str) = ("http", "/sse");
const WEBSOCKET: (&str, &str) = ("ws", "/ws");

/// In the legacy era an input request has no key, and the bridge has to make one up.
const EXPECTED_LEGACY_FAILURES: &[ExpectedFailure] = &[
    ExpectedFailure {
        scenario: "input-required-result-basic-elicitation",
        check: "sep-2322-elicitation-incomplete",
        reason: "the scenario requires a key that the server chose for its input request, and a legacy server chooses none",
    },
    ExpectedFailure {
        scenario: "input-required-result-ignore-extra-params",
        check: "sep-2322-ignore-unexpected-params",
        reason: "the scenario responds before any request, and a legacy server accepts only responses to its own requests",
    },
];

const SETTINGS: &[BridgeSetting] = &[
    BridgeSetting {
        name: "our server of 2025-11-25",
        start: |programs| programs.ours(LEGACY),
        reached_at: STREAMABLE_HTTP,
        requires: MODERN,
        expected_failures: EXPECTED_LEGACY_FAILURES,
    },
    BridgeSetting {
        name: "a server on npm sdk 1.x",
        start: |programs| programs.npm_v1(),
        reached_at: STREAMABLE_HTTP,
        requires: MODERN,
        expected_failures: EXPECTED_LEGACY_FAILURES,
    },
    BridgeSetting {
        name: "our server of 2026-07-28",
        start: |programs| programs.ours(MODERN),
        reached_at: STREAMABLE_HTTP,
        requires: LEGACY,
        expected_failures: &[],
    },
    // The suite itself supports only Streamable HTTP. It tests a server over the other transports through a bridge
    // that has nothing to translate.
    BridgeSetting {
        name: "our server of 2025-11-25 over HTTP+SSE",
        start: |programs| programs.ours(LEGACY),
        reached_at: HTTP_SSE,
        requires: LEGACY,
        expected_failures: &[],
    },
    BridgeSetting {
        name: "our server of 2025-11-25 over WebSocket",
        start: |programs| programs.ours(LEGACY),
        reached_at: WEBSOCKET,
        requires: LEGACY,
        expected_failures: &[],
    },
    BridgeSetting {
        name: "our server of 2026-07-28 over WebSocket",
        start: |programs| programs.ours(MODERN),
        reached_at: WEBSOCKET,
        requires: MODERN,
        expected_failures: &[],
    },
];

/// Where everything is that is started.
struct BridgePrograms<'t> {
    tools: &'t InstalledTools,
    fixture: std::path::PathBuf,
    bridge: std::path::PathBuf,
}

impl BridgePrograms<'_> {
    fn ours(&self, revision: &str) -> TaskResult<FixtureServer> {
        FixtureServer::start_by(|address| {
            let mut command = run::command(&self.fixture);
            command.args(["--http", &address.to_string(), "--revisions", revision]);
            command
        })
    }

    fn npm_v1(&self) -> TaskResult<FixtureServer> {
        FixtureServer::start_by(|address| {
            let mut command = run::command(&self.tools.node);
            let script = self.tools.node_folder.join("everything-v1.mjs");
            command.arg(script).args(["--http", &address.port().to_string()]);
            command
        })
    }
}

/// The columns of a table of runs.
pub(super) const COLUMNS: &[&str] =
    &["in front of", "scenarios", "success", "skipped", "info", "warning", "failure", "exempt"];

/// Describes in front of which servers the suite is run, and what no bridge can pass there.
pub(crate) fn settings_text() -> String {
    let mut beyond: Vec<&ExpectedFailure> = Vec::new();
    let mut text =
        "| server behind the bridge | passes the suite of | except |\n| --- | --- | --- |\n".to_owned();
    for BridgeSetting { name, requires, expected_failures: listed, .. } in SETTINGS {
        let mut numbers = Vec::new();
        for one in *listed {
            let known =
                beyond.iter().position(|known| (known.scenario, known.check) == (one.scenario, one.check));
            let at = known.unwrap_or_else(|| {
                beyond.push(one);
                beyond.len() - 1
            });
            numbers.push((at + 1).to_string());
        }
        let but = if numbers.is_empty() { "nothing".to_owned() } else { numbers.join(", ") };
        text.push_str(&format!("| {name} | {requires} | {but} |\n"));
    }
    for (at, ExpectedFailure { scenario, check, reason: why }) in beyond.iter().enumerate() {
        text.push_str(&format!("\n{}. `{check}` of `{scenario}`: {why}.", at + 1));
    }
    text
}

/// Runs the suite in every setting, and counts what fails it.
pub(super) fn judge(tools: &InstalledTools, verbose: bool) -> TaskResult<usize> {
    interop::copy_scripts(tools)?;
    let programs = BridgePrograms {
        tools,
        fixture: fixture::build("everything-server")?,
        bridge: fixture::build_of("trunkline-cli", "trunkline")?,
    };
    let results = fixture::results_folder("conformance-bridge")?;
    let mut table = TextTable::new(COLUMNS);
    let mut bad = 0;
    for setting in SETTINGS {
        let verdict = run_setting(&programs, setting, &results)?;
        bad += show(setting.expected_failures, &verdict, verbose);
        table.row(row(setting.name, &verdict));
    }
    print!("\n{}", table.render());
    println!("Everything the suite wrote is in {}.", results.display());
    Ok(bad)
}

fn run_setting(
    programs: &BridgePrograms<'_>,
    setting: &BridgeSetting,
    results: &Path,
) -> TaskResult<SuiteResults> {
    let server = (setting.start)(programs)?;
    let (scheme, path) = setting.reached_at;
    let bridge = FixtureServer::start_bridge(&programs.bridge, &server.url(scheme, path))?;
    let run = SuiteRun {
        name: setting.name.replace(' ', "-"),
        arguments: vec!["--requirements".to_owned(), setting.requires.to_owned()],
    };
    println!("in front of {}:", setting.name);
    run_suite(programs.tools, &TestSubject::Server(bridge.url("http", "/mcp")), &run, results)
}

/// Prints what needs to be seen and counts what fails the run: a bad check that is not listed, and a listed one that is
/// not bad.
pub(super) fn show(expected: &[ExpectedFailure], verdict: &SuiteResults, verbose: bool) -> usize {
    let skipped = verdict.skipped().filter(|_| verbose);
    let (listed, bad): (Vec<_>, Vec<_>) =
        verdict.bad().partition(|check| expected.iter().any(|beyond| beyond.matches(check)));
    for check in bad.iter().copied().chain(skipped) {
        println!("  {} {} {}: {}", check.status, check.scenario, check.id, check.message);
    }
    let needless = expected.iter().filter(|beyond| !listed.iter().any(|check| beyond.matches(check)));
    let needless = needless.inspect(|beyond| {
        println!("  {} {} passes, and should not be listed any more", beyond.scenario, beyond.check);
    });
    bad.len() + needless.count()
}

impl ExpectedFailure {
    fn matches(&self, check: &SuiteCheck) -> bool {
        self.scenario == check.scenario && self.check == check.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(checks: &[(&str, &str, &str)]) -> SuiteResults {
        let check = |(scenario, id, status): &(&str, &str, &str)| SuiteCheck {
            scenario: (*scenario).to_owned(),
            id: (*id).to_owned(),
            status: (*status).to_owned(),
            message: String::new(),
        };
        SuiteResults { scenarios: 1, checks: checks.iter().map(check).collect() }
    }

    #[test]
    fn only_listed_checks_fail_and_all_of_them_do() {
        const BEYOND: &[ExpectedFailure] = &[ExpectedFailure { scenario: "s", check: "c", reason: "w" }];
        for (checks, bad) in [
            (&[("s", "c", "FAILURE"), ("s", "d", "SUCCESS")][..], 0),
            (&[("s", "c", "FAILURE"), ("s", "d", "WARNING")], 1),
            (&[("s", "c", "SUCCESS")], 1),
            (&[("t", "c", "FAILURE")], 2),
        ] {
            assert_eq!(show(BEYOND, &verdict(checks), false), bad, "{checks:?}");
        }
    }

    #[test]
    fn everything_that_is_listed_has_its_reason() {
        for beyond in SETTINGS.iter().flat_map(|setting| setting.expected_failures) {
            assert!(beyond.reason.len() > 20, "{} {}", beyond.scenario, beyond.check);
        }
    }
}
