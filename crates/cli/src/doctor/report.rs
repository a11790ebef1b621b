use std::time::Duration;

use serde_json::{Value, json};

use super::finding::{Finding, Severity};
use crate::terminal::{Sheet, columns_of, pad, visible_line};

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// As it should be.
    Good,
    /// Not looked at, since there is nothing to look at.
    Absent,
    /// Not as it should be.
    Poor(Severity),
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Absent => "-",
            Self::Poor(severity) => severity.word(),
        }
    }
}

/// One line of what the doctor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) state: State,
    /// What it is about; a visible line.
    pub(crate) subject: String,
    /// What there is to say; a visible line.
    pub(crate) words: String,
    pub(crate) took: Option<Duration>,
}

/// All that the doctor says.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// Says that something is as it should be.
    pub(crate) fn good(&mut self, subject: &str, words: &str) {
        self.add(State::Good, subject, words, None);
    }

    /// Says that something is as it should be, and how long it took.
    pub(crate) fn timed(&mut self, subject: &str, words: &str, took: Duration) {
        self.add(State::Good, subject, words, Some(took));
    }

    /// Says that there is nothing to look at.
    pub(crate) fn absent(&mut self, subject: &str, words: &str) {
        self.add(State::Absent, subject, words, None);
    }

    /// Says that something is wrong.
    pub(crate) fn problem(&mut self, subject: &str, words: &str) {
        self.add(State::Poor(Severity::Problem), subject, words, None);
    }

    /// Takes up what was found.
    pub(crate) fn take_up(&mut self, findings: Vec<Finding>) {
        for Finding { severity, subject, what } in findings {
            self.lines.push(Line { state: State::Poor(severity), subject, words: what, took: None });
        }
    }

    fn add(&mut self, state: State, subject: &str, words: &str, took: Option<Duration>) {
        let (subject, words) = (visible_line(subject).into_owned(), visible_line(words).into_owned());
        self.lines.push(Line { state, subject, words, took });
    }

    fn count(&self, severity: Severity) -> usize {
        self.lines.iter().filter(|line| line.state == State::Poor(severity)).count()
    }

    /// Reports whether anything is a problem.
    pub(crate) fn has_problems(&self) -> bool {
        self.count(Severity::Problem) > 0
    }

    /// Reports whether anything could be better for some clients or models.
    pub(crate) fn has_warnings(&self) -> bool {
        self.count(Severity::Warning) > 0
    }

    /// Says how much was found, in one line.
    pub(crate) fn summary(&self) -> String {
        let counted = [Severity::Problem, Severity::Warning, Severity::Note].map(|severity| {
            let count = self.count(severity);
            let ending = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {}{ending}", severity.word()))
        });
        let counted: Vec<_> = counted.into_iter().flatten().collect();
        if counted.is_empty() { "nothing is wrong".to_owned() } else { counted.join(", ") }
    }

    /// Writes the report for a person, a line each.
    pub(crate) fn to_text(&self, sheet: Sheet) -> String {
        let subjects =
            self.lines.iter().map(|line| columns_of(&line.subject)).filter(|width| *width <= WIDEST);
        let width = subjects.max().unwrap_or(0);
        let write = |line: &Line| {
            let took = line.took.map(|took| format!(" ({})", duration_words(took))).unwrap_or_default();
            let state = pad(line.state.word(), 7);
            let state = match line.state {
                State::Good => sheet.style.good(&state),
                State::Absent | State::Poor(Severity::Note) => sheet.style.dim(&state),
                State::Poor(Severity::Warning) => sheet.style.warning(&state),
                State::Poor(Severity::Problem) => sheet.style.bad(&state),
            };
            format!("{state}  {}  {}{took}\n", pad(&line.subject, width), line.words)
        };
        self.lines.iter().map(write).collect()
    }

    /// Writes the report for a program.
    pub(crate) fn to_json(&self) -> Value {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| {
                let milliseconds = line.took.map(|took| took.as_secs_f64() * 1_000.0);
                json!({
                    "state": if line.state == State::Absent { "absent" } else { line.state.word() },
                    "subject": line.subject,
                    "words": line.words,
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
const WIDEST: usize = 24;

/// Says how long something took, in a unit that one can picture.
pub(super) fn duration_words(took: Duration) -> String {
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
    use crate::terminal::Style;

    fn report() -> Report {
        let mut report = Report::default();
        report.timed("dns", "127.0.0.1", Duration::from_micros(1_234));
        report.absent("tls", "not used");
        report.problem("tool `a`", "bad\nname");
        report
    }

    #[test]
    fn every_line_says_how_something_stands() {
        let sheet = Sheet { columns: 80, style: Style::PLAIN };
        assert_eq!(
            report().to_text(sheet),
            "ok       dns       127.0.0.1 (1.2 ms)\n\
             -        tls       not used\n\
             problem  tool `a`  bad\\nname\n"
        );
        assert_eq!(report().summary(), "1 problem");
        assert_eq!(Report::default().summary(), "nothing is wrong");
    }

    #[test]
    fn programs_get_the_same_lines_and_the_counts() {
        let json = report().to_json();
        assert_eq!(json["lines"][0]["milliseconds"], 1.234);
        assert_eq!(json["lines"][1]["state"], "absent");
        assert_eq!((&json["problems"], &json["notes"]), (&json!(1), &json!(0)));
    }

    #[test]
    fn durations_are_said_in_units_that_one_can_picture() {
        let words = [900, 12_345, 2_500_000].map(|us| duration_words(Duration::from_micros(us)));
        assert_eq!(words, ["0.9 ms", "12 ms", "2.5 s"]);
    }
}
