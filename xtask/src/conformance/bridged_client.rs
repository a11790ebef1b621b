//! The client scenarios of the suite through `trunkline bridge`: the bridge is the OAuth client of the suite's server, and the
//! fixture a client of the bridge that opens the connect links which it is given.

use super::bridge::{self, ExpectedFailure};
use super::{SuiteRun, TestSubject, row, run_suite};
use crate::TaskResult;
use crate::fixture;
use crate::table::TextTable;
use crate::tools::InstalledTools;

/// One run, and the checks that fail because there is a bridge in between.
struct BridgedRun {
    name: &'static str,
    arguments: &'static [&'static str],
    expected_failures: &'static [ExpectedFailure],
}

const ELICITATION: &str = "elicitation-sep1034-client-defaults";

/// A client with one user can answer such a request; a bridge does not know which of its callers it is for.
const UNRELATED: &str = "the suite's server sends its input request on the standalone stream and not on that of the call, and the \
    bridge passes on only what belongs to a call";

/// The defaults are judged by the answer, which never comes.
const EXPECTED_LEGACY_FAILURES: &[ExpectedFailure] = &[
    expected("client-elicitation-sep1034-general"),
    expected("client-elicitation-sep1034-string-default"),
    expected("client-elicitation-sep1034-integer-default"),
    expected("client-elicitation-sep1034-number-default"),
    expected("client-elicitation-sep1034-enum-default"),
    expected("client-elicitation-sep1034-boolean-default"),
];

const fn expected(check: &'static str) -> ExpectedFailure {
    ExpectedFailure { scenario: ELICITATION, check, reason: UNRELATED }
}

/// The scored sets with the extensions that the suite adds to them, and the two scenarios of the first revision with
/// authorization.
const RUNS: &[BridgedRun] = &[
    BridgedRun {
        name: "required-2025-11-25",
        arguments: &["--requirements", "2025-11-25"],
        expected_failures: EXPECTED_LEGACY_FAILURES,
    },
    BridgedRun {
        name: "required-2026-07-28",
        arguments: &["--requirements", "2026-07-28"],
        expected_failures: &[],
    },
    BridgedRun {
        name: "all-2025-03-26",
        arguments: &["--suite", "all", "--spec-version", "2025-03-26"],
        expected_failures: &[],
    },
];

/// Runs the client scenarios, and counts what fails them.
pub(super) fn judge(tools: &InstalledTools, verbose: bool) -> TaskResult<usize> {
    let client = fixture::build("everything-client")?;
    let bridge = fixture::build_of("trunkline-cli", "trunkline")?;
    // The suite passes the line to a shell.
    let subject = TestSubject::Client(format!("'{}' --bridge '{}'", client.display(), bridge.display()));
    let results = fixture::results_folder("conformance-bridged-client")?;
    let mut table = TextTable::new(bridge::COLUMNS);
    let mut bad = 0;
    for BridgedRun { name, arguments, expected_failures } in RUNS {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let verdict =
            run_suite(tools, &subject, &SuiteRun { name: (*name).to_owned(), arguments }, &results)?;
        bad += bridge::show(expected_failures, &verdict, verbose);
        table.row(row(&format!("the suite's servers, {name}"), &verdict));
    }
    print!("\n{}", table.render());
    println!("Everything the suite wrote is in {}.", results.display());
    Ok(bad)
}
