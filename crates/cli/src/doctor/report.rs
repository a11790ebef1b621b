use std::time::Duration;

use serde_json::{Value, json};

use super::finding::{Finding, Severity};
use crate::terminal::{OutputLayout, display_width, escape_line, pad};

/// The outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckStatus {
    /// As it should be.
    Passed,
    /// Not looked at, since there is nothing to look at.
    NotApplicable,
    /// Not as it should be.
    Flagged(Severity),
}

impl CheckStatus {
    const fn label(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::NotApplicable => "-",
            Self::Flagged(severity) => severity.label(),
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportLine {
    pub(crate) status: CheckStatus,
    /// What it is about; a visible line.
    pub(crate) subject: String,
    /// The details; an escaped line.
    pub(crate) detail: String,
    pub(crate) elapsed: Option<Duration>,
}

/// The whole report.
#[derive(Debug, Default)]
pub(crate) struct DoctorReport {
    lines: Vec<ReportLine>,
}

impl DoctorReport {
    /// Adds a check that passed.
    pub(crate) fn passed(&mut self, subject: &str, words: &str) {
        self.add(CheckStatus::Passed, subject, words, None);
    }

    /// Adds a check that passed, with its duration.
    pub(crate) fn passed_in(&mut self, subject: &str, words: &str, took: Duration) {
        self.add(CheckStatus::Passed, subject, words, Some(took));
    }

    /// Adds a check that does not apply.
    pub(crate) fn not_applicable(&mut self, subject: &str, words: &str) {
        self.add(CheckStatus::NotApplicable, subject, words, None);
    }

    /// Adds a problem.
    pub(crate) fn problem(&mut self, subject: &str, words: &str) {
        self.add(CheckStatus::Flagged(Severity::Problem), subject, words, None);
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, subject: &str, words: &str) {
        self.add(CheckStatus::Flagged(Severity::Warning), subject, words, None);
    }

    /// Takes up what was found.
    pub(crate) fn add_findings(&mut self, findings: Vec<Finding>) {
        for Finding { severity, subject, message: what } in findings {
            self.lines.push(ReportLine {
                status: CheckStatus::Flagged(severity),
                subject,
                detail: what,
                elapsed: None,
            });
        }
    }

    fn add(&mut self, state: CheckStatus, subject: &str, words: &str, took: Option<Duration>) {
        let (subject, words) = (escape_line(subject).into_owned(), escape_line(words).into_owned());
        self.lines.push(ReportLine { status: state, subject, detail: words, elapsed: took });
    }

    fn count(&self, severity: Severity) -> usize {
        self.lines.iter().filter(|line| line.status == CheckStatus::Flagged(severity)).count()
    }

    /// Reports whether anything is a problem.
    pub(crate) fn has_problems(&self) -> bool {
        self.count(Severity::Problem) > 0
    }

    /// Reports whether anything could be better for some clients or models.
    pub(crate) fn has_warnings(&self) -> bool {
        self.count(Severity::Warning) > 0
    }

    /// Returns the number of findings by severity, on one line.
    pub(crate) fn summary(&self) -> String {
        let counted = [Severity::Problem, Severity::Warning, Severity::Note].map(|severity| {
            let count = self.count(severity);
            let ending = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {}{ending}", severity.label()))
        });
        let counted: Vec<_> = counted.into_iter().flatten().collect();
        if counted.is_empty() { "no problems found".to_owned() } else { counted.join(", ") }
    }

    /// Formats the report as text, one line per check.
    pub(crate) fn to_text(&self, sheet: OutputLayout) -> String {
        let subjects = self
            .lines
            .iter()
            .map(|line| display_width(&line.subject))
            .filter(|width| *width <= MAX_SUBJECT_COLUMNS);
        let width = subjects.max().unwrap_or(0);
        let write = |line: &ReportLine| {
            let took = line.elapsed.map(|took| format!(" ({})", format_duration(took))).unwrap_or_default();
            let state = pad(line.status.label(), 7);
            let state = match line.status {
                CheckStatus::Passed => sheet.style.success(&state),
                CheckStatus::NotApplicable | CheckStatus::Flagged(Severity::Note) => sheet.style.dim(&state),
                CheckStatus::Flagged(Severity::Warning) => sheet.style.warning(&state),
                CheckStatus::Flagged(Severity::Problem) => sheet.style.error(&state),
            };
            format!("{state}  {}  {}{took}\n", pad(&line.subject, width), line.detail)
        };
        self.lines.iter().map(write).collect()
    }

    /// Writes the report for a program.
    pub(crate) fn to_json(&self) -> Value {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| {
                let milliseconds = line.elapsed.map(|took| took.as_secs_f64() * 1_000.0);
                json!({
                    "state": if line.status == CheckStatus::NotApplicable { "absent" } else { line.status.label() },
                    "subject": line.subject,
                    "words": line.detail,
                    "milliseconds": milliseconds,
                })
            })
            .collect();
        json!({
            "lines": lines,
            "problems": self.count(Severity::Problem),
            "warnings": self.count(Severity::Warning),
            "notes": self.count(Severity::Note),
        })
    }
}

/// A subject that is wider pushes its own words to the right, and not those of all others.
const MAX_SUBJECT_COLUMNS: usize = 24;

/// Formats a duration with a readable unit.
pub(super) fn format_duration(took: Duration) -> String {
    let milliseconds = took.as_secs_f64() * 1_000.0;
    match milliseconds {
        ..10.0 => format!("{milliseconds:.1} ms"),
        10.0..1_000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.1} s", milliseconds / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::TextStyle;

    fn report() -> DoctorReport {
        let mut report = DoctorReport::default();
        report.passed_in("dns", "127.0.0.1", Duration::from_micros(1_234));
        report.not_applicable("tls", "not used");
        report.problem("tool `a`", "bad\nname");
        report
    }

    #[test]
    fn doctor_report_lines_have_a_status() {
        let sheet = OutputLayout { columns: 80, style: TextStyle::PLAIN };
        assert_eq!(
            report().to_text(sheet),
            "ok       dns       127.0.0.1 (1.2 ms)\n\
             -        tls       not used\n\
             problem  tool `a`  bad\\nname\n"
        );
        assert_eq!(report().summary(), "1 problem");
        assert_eq!(DoctorReport::default().summary(), "no problems found");
    }

    #[test]
    fn programs_get_the_same_lines_and_the_counts() {
        let json = report().to_json();
        assert_eq!(json["lines"][0]["milliseconds"], 1.234);
        assert_eq!(json["lines"][1]["state"], "absent");
        assert_eq!((&json["problems"], &json["notes"]), (&json!(1), &json!(0)));
    }

    #[test]
    fn durations_are_formatted_in_readable_units() {
        let words = [900, 12_345, 2_500_000].map(|us| format_duration(Duration::from_micros(us)));
        assert_eq!(words, ["0.9 ms", "12 ms", "2.5 s"]);
    }
}
