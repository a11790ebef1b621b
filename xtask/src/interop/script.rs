//! Runs something that prints a line for each of its checks, and reads how many there were.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{TaskResult, run};

/// Each check inside a script has its own limit, so this one only catches a script that will not end.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(300);

/// What came of one run.
#[derive(Debug)]
pub(super) struct ScriptRun {
    pub(super) summary: CheckCounts,
    /// Everything in it passed.
    pub(super) passed: bool,
    /// What a person should see of it.
    pub(super) notes: Vec<String>,
}

impl ScriptRun {
    /// Makes the result of so many checks, of which these failed.
    pub(super) fn of_checks(count: usize, failed: Vec<String>) -> Self {
        let summary = CheckCounts { passed: count - failed.len(), failed: failed.len(), skipped: 0 };
        Self { summary, passed: failed.is_empty(), notes: failed }
    }

    /// Creates the result of a script that could not be run.
    pub(super) fn not_run(why: String) -> Self {
        Self { summary: CheckCounts::default(), passed: false, notes: vec![why] }
    }
}

/// What one run of a script has printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CheckCounts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

/// Whether checks may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkipPolicy {
    /// Everything is there that a check needs, so that one which is skipped has stopped to look at anything.
    Refused,
    /// The server is a third party's, and may lack what a check needs.
    Allowed,
}

impl CheckCounts {
    /// Reports whether there is nothing to complain of.
    fn passes(&self, skips: SkipPolicy) -> bool {
        self.failed == 0 && self.passed > 0 && (self.skipped == 0 || skips == SkipPolicy::Allowed)
    }
}

/// Runs one script; what it prints goes to the log.
pub(super) fn run(command: &mut Command, log: &Path, skips: SkipPolicy) -> TaskResult<ScriptRun> {
    let ended = run::run_logged(command, log, SCRIPT_TIMEOUT);
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let is_note = |line: &&str| line.starts_with("not ok ") || line.starts_with("skip ");
    let mut notes: Vec<String> = text.lines().filter(is_note).map(str::to_owned).collect();
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            notes.push(error.to_string());
            return Ok(ScriptRun { summary: CheckCounts::default(), passed: false, notes });
        }
    };
    let Some(summary) = summary_of(&text) else {
        notes.push(format!("the script broke down ({status}); see {}", log.display()));
        return Ok(ScriptRun { summary: CheckCounts::default(), passed: false, notes });
    };
    let is_sound = status.success() && summary.passes(skips);
    Ok(ScriptRun { summary, passed: is_sound, notes })
}

/// Reads the closing line `N passed, N failed`; a script that broke down has none.
fn summary_of(text: &str) -> Option<CheckCounts> {
    let closing = text.lines().rev().find(|line| line.ends_with(" failed"))?;
    let (passed, failed) = closing.split_once(" passed, ")?;
    Some(CheckCounts {
        passed: passed.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
        skipped: text.lines().filter(|line| line.starts_with("skip ")).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_check_in_a_complete_environment_is_a_failure() {
        for (passed, failed, skipped, refused, allowed) in
            [(2, 0, 0, true, true), (2, 0, 1, false, true), (0, 0, 2, false, false), (2, 1, 0, false, false)]
        {
            let summary = CheckCounts { passed, failed, skipped };
            assert_eq!(
                (summary.passes(SkipPolicy::Refused), summary.passes(SkipPolicy::Allowed)),
                (refused, allowed),
                "{summary:?}"
            );
        }
    }

    #[test]
    fn closing_line_of_a_script_decides() {
        let table = [
            (
                "ok a\nok b\nskip c: why\n2 passed, 0 failed\n",
                Some(CheckCounts { passed: 2, failed: 0, skipped: 1 }),
            ),
            (
                "not ok a: 1 failed\n0 passed, 1 failed\nstderr after it\n",
                Some(CheckCounts { failed: 1, ..CheckCounts::default() }),
            ),
            ("ok a\nTraceback\n", None),
            ("the build failed\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(summary_of(text), expected, "{text}");
        }
    }
}
