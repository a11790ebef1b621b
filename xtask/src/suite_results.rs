//! Reads the results that the official suite leaves in its output folder.
//!
//! The suite counts a scenario as passed when none of its checks failed, so a pass can hide
//! warnings and checks that were never made. Here every check counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::TaskResult;

/// Extensions that we do not offer: what their scenarios find is counted and does not fail a run.
const EXEMPT: &[&str] = &["tasks-", "sep-2640-"];

/// The length of `-2026-11-15T03-30-07-464Z`, which the suite adds to the name of a scenario.
const TIMESTAMP_LENGTH: usize = 25;

/// One thing that a scenario looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SuiteCheck {
    pub(crate) scenario: String,
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) message: String,
}

impl SuiteCheck {
    /// Reports whether this check fails a run: every failure does that is not known to be harmless.
    pub(crate) fn is_bad(&self) -> bool {
        !matches!(self.status.as_str(), "SUCCESS" | "SKIPPED" | "INFO")
    }

    pub(crate) fn is_exempt(&self) -> bool {
        EXEMPT.iter().any(|prefix| self.scenario.starts_with(prefix))
    }
}

/// Everything that one run of the suite has found.
#[derive(Debug, Default)]
pub(crate) struct SuiteResults {
    pub(crate) scenarios: usize,
    pub(crate) checks: Vec<SuiteCheck>,
}

impl SuiteResults {
    /// Reads an output folder: a folder for each scenario, each with one list of checks.
    pub(crate) fn read(folder: &Path) -> TaskResult<Self> {
        let mut verdict = Self::default();
        verdict.read_under(folder, "")?;
        if verdict.scenarios == 0 {
            return Err(format!("the suite ran no scenario: {} is empty", folder.display()).into());
        }
        Ok(verdict)
    }

    fn read_under(&mut self, folder: &Path, group: &str) -> TaskResult {
        let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries.iter().filter(|entry| entry.path().is_dir()) {
            let name = format!("{group}{}", entry.file_name().to_string_lossy());
            match scenario_of(&name) {
                Some(scenario) => self.read_scenario(&entry.path(), scenario)?,
                None => self.read_under(&entry.path(), &format!("{name}/"))?,
            }
        }
        Ok(())
    }

    fn read_scenario(&mut self, folder: &Path, scenario: &str) -> TaskResult {
        self.scenarios += 1;
        let check = |id: &str, status: &str, message: &str| SuiteCheck {
            scenario: scenario.to_owned(),
            id: id.to_owned(),
            status: status.to_owned(),
            message: message.to_owned(),
        };
        // The suite makes the folder first and the file last, so a scenario that broke down leaves no file.
        let Ok(text) = fs::read_to_string(folder.join("checks.json")) else {
            self.checks.push(check("checks.json", "ABSENT", "the scenario ended without a result"));
            return Ok(());
        };
        let found: Vec<Value> = serde_json::from_str(&text)?;
        for value in &found {
            let field = |name| value.get(name).and_then(Value::as_str);
            let message = field("errorMessage").or(field("description")).unwrap_or_default();
            self.checks.push(check(
                field("id").unwrap_or("(no id)"),
                field("status").unwrap_or("(no status)"),
                message,
            ));
        }
        Ok(())
    }

    /// Reads the summary at the end of the suite's log: a client that ended with an error has failed its scenario,
    /// without a failed check.
    pub(crate) fn read_summary(&mut self, log: &str) {
        let failed = log.lines().filter_map(|line| line.trim().strip_prefix("✗ ")?.split_once(": "));
        for (scenario, outcome) in failed {
            let is_known = |check: &SuiteCheck| check.scenario == scenario && check.is_bad();
            if !self.checks.iter().any(is_known) {
                self.checks.push(SuiteCheck {
                    scenario: scenario.to_owned(),
                    id: "summary".to_owned(),
                    status: "FAILURE".to_owned(),
                    message: outcome.to_owned(),
                });
            }
        }
    }

    /// Gives the checks that were not made because the scenario never got there.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = &SuiteCheck> {
        self.checks.iter().filter(|check| check.status == "SKIPPED" && !check.is_exempt())
    }

    /// Counts the checks of each status, leaving out the exempt ones that are bad.
    pub(crate) fn tally(&self) -> BTreeMap<&str, usize> {
        let mut tally = BTreeMap::new();
        for check in self.checks.iter().filter(|check| !(check.is_bad() && check.is_exempt())) {
            *tally.entry(check.status.as_str()).or_default() += 1;
        }
        tally
    }

    /// Gives the checks that fail the run.
    pub(crate) fn bad(&self) -> impl Iterator<Item = &SuiteCheck> {
        self.checks.iter().filter(|check| check.is_bad() && !check.is_exempt())
    }

    /// Counts the checks that would fail the run if we offered the extension.
    pub(crate) fn exempt(&self) -> usize {
        self.checks.iter().filter(|check| check.is_bad() && check.is_exempt()).count()
    }
}

/// Takes the scenario's name from the name of its folder; a folder without a time holds other folders.
fn scenario_of(folder: &str) -> Option<&str> {
    let at = folder.len().checked_sub(TIMESTAMP_LENGTH)?;
    let (scenario, time) = folder.split_at_checked(at)?;
    let is_time = time.starts_with('-') && time.contains('T') && time.ends_with('Z');
    is_time.then(|| scenario.strip_prefix("server-").unwrap_or(scenario))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an output folder as the suite would; `None` stands for a scenario that broke down.
    fn verdict(name: &str, scenarios: &[(&str, Option<&str>)]) -> TaskResult<SuiteResults> {
        let folder = std::env::temp_dir().join(format!("xtask-verdict-{name}-{}", std::process::id()));
        for (scenario, checks) in scenarios {
            let folder = folder.join(format!("{scenario}-2026-11-15T03-30-07-464Z"));
            fs::create_dir_all(&folder).unwrap();
            if let Some(checks) = checks {
                fs::write(folder.join("checks.json"), checks).unwrap();
            }
        }
        fs::create_dir_all(&folder).unwrap();
        let verdict = SuiteResults::read(&folder);
        fs::remove_dir_all(&folder).unwrap();
        verdict
    }

    fn one_check(status: &str) -> String {
        format!(r#"[{{"id":"some-id","status":"{status}","errorMessage":"why"}}]"#)
    }

    #[test]
    fn check_with_unknown_status_is_a_failure() {
        let table = [
            ("SUCCESS", false),
            ("SKIPPED", false),
            ("INFO", false),
            ("WARNING", true),
            ("FAILURE", true),
            ("SOMETHING-NEW", true),
        ];
        for (status, bad) in table {
            let verdict = verdict(status, &[("server-ping", Some(&one_check(status)))]).unwrap();
            assert_eq!(verdict.bad().count() == 1, bad, "{status}");
            assert_eq!(verdict.tally().get(status), Some(&1), "{status}");
        }
    }

    #[test]
    fn failed_check_names_its_scenario_and_reason() {
        let verdict = verdict("why", &[("server-ping", Some(&one_check("FAILURE")))]).unwrap();
        let check = verdict.bad().next().unwrap();
        assert_eq!(
            (check.scenario.as_str(), check.id.as_str(), check.message.as_str()),
            ("ping", "some-id", "why")
        );
    }

    #[test]
    fn scenario_without_result_is_a_failure() {
        let verdict = verdict("absent", &[("server-ping", None), ("server-server-stateless", None)]).unwrap();
        let scenarios: Vec<&str> = verdict.bad().map(|check| check.scenario.as_str()).collect();
        assert_eq!(scenarios, ["ping", "server-stateless"]);
    }

    #[test]
    fn extensions_that_we_do_not_offer_fail_nothing() {
        let failure = one_check("FAILURE");
        let runs =
            [("server-tasks-lifecycle", Some(failure.as_str())), ("server-sep-2640-skills-manifest", None)];
        let verdict = verdict("exempt", &runs).unwrap();
        assert_eq!((verdict.bad().count(), verdict.exempt(), verdict.tally().len()), (0, 2, 0));
    }

    #[test]
    fn scenarios_in_a_group_keep_the_name_of_the_group() {
        let verdict = verdict("group", &[("auth/iss-supported", Some(&one_check("WARNING")))]).unwrap();
        assert_eq!(verdict.checks[0].scenario, "auth/iss-supported");
        assert_eq!((verdict.bad().count(), verdict.exempt()), (1, 0));
    }

    #[test]
    fn failed_scenario_without_failed_check_is_a_failure() {
        let (success, failure) = (one_check("SUCCESS"), one_check("FAILURE"));
        let runs = [("initialize", Some(success.as_str())), ("tools_call", Some(failure.as_str()))];
        let mut verdict = verdict("summary", &runs).unwrap();
        verdict.read_summary(
            "✓ ping: 1 passed, 0 failed\n✗ initialize: 1 passed, 1 failed\n✗ tools_call: 0 passed, 1 failed\n\
             ✗ tasks-x: 0 passed, 1 failed\n",
        );
        let bad: Vec<_> = verdict.bad().map(|check| (check.scenario.as_str(), check.id.as_str())).collect();
        assert_eq!(bad, [("tools_call", "some-id"), ("initialize", "summary")]);
        assert_eq!(verdict.exempt(), 1);
    }

    #[test]
    fn skipped_checks_are_listed_unless_exempt() {
        let skipped = one_check("SKIPPED");
        let runs = [("initialize", Some(skipped.as_str())), ("sep-2640-client-x", Some(skipped.as_str()))];
        let verdict = verdict("skipped", &runs).unwrap();
        let skipped: Vec<_> = verdict.skipped().map(|check| check.scenario.as_str()).collect();
        assert_eq!(skipped, ["initialize"]);
    }

    #[test]
    fn run_without_scenarios_is_an_error() {
        assert!(verdict("empty", &[]).is_err());
    }
}
