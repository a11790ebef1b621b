use crate::terminal::{escape_line, is_unsafe_char};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Some clients or models do worse than they could.
    Note,
    /// Some clients or models cannot use it.
    Warning,
    /// It violates the protocol, or no client can use it.
    Problem,
}

impl Severity {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// A finding about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// What it is about, such as ``tool `add` ``; a visible line.
    pub(crate) subject: String,
    /// What is wrong, and which clients it affects; an escaped line.
    pub(crate) message: String,
}

/// Findings on their way, all about one subject at a time.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) findings: Vec<Finding>,
    subject: String,
}

impl Findings {
    /// Sets the subject of the findings that follow.
    pub(super) fn set_subject(&mut self, kind: &str, name: &str) {
        let name = escape_line(name);
        let short: String = name.chars().take(MAX_NAME_COLUMNS).collect();
        let more = if short.len() < name.len() { "…" } else { "" };
        self.subject = if name.is_empty() { kind.to_owned() } else { format!("{kind} `{short}{more}`") };
    }

    pub(super) fn problem(&mut self, what: impl Into<String>) {
        self.add(Severity::Problem, &what.into());
    }

    pub(super) fn warning(&mut self, what: impl Into<String>) {
        self.add(Severity::Warning, &what.into());
    }

    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.add(Severity::Note, &what.into());
    }

    fn add(&mut self, severity: Severity, what: &str) {
        self.findings.push(Finding {
            severity,
            subject: self.subject.clone(),
            message: escape_line(what).into_owned(),
        });
    }

    /// Finds invisible characters, which a model reads all the same.
    pub(super) fn check_hidden(&mut self, what: &str, text: &str) {
        let hidden = text.chars().filter(|c| is_unsafe_char(*c) && !matches!(c, '\n' | '\t' | '\r')).count();
        if hidden > 0 {
            self.problem(format!("{what} has {hidden} invisible characters, which models read"));
        }
    }

    /// Finds names that occur more than once.
    pub(super) fn check_distinct<'n>(&mut self, kind: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = std::collections::HashMap::new();
        for name in names {
            *seen.entry(name).or_insert(0_usize) += 1;
        }
        let mut repeated: Vec<_> = seen.into_iter().filter(|(_, count)| *count > 1).collect();
        repeated.sort_unstable();
        for (name, count) in repeated {
            self.set_subject(kind, name);
            self.problem(format!("is listed {count} times"));
        }
    }
}

/// Names longer than this are cut where they are named.
const MAX_NAME_COLUMNS: usize = 80;
