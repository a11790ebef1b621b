use std::fmt;

/// One thing that was tried in order to connect, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// What was tried, such as `server/discover at 2026-07-28`.
    pub what: String,
    /// What came of it, on one line, such as `error -32601: method not found`.
    pub outcome: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.outcome)
    }
}

/// The attempts of one connection, so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Vec<Attempt>);

impl Attempts {
    /// Notes an attempt; what there is to say beyond one line is said where the cause is.
    pub(crate) fn note(&mut self, what: impl Into<String>, outcome: impl AsRef<str>) {
        let outcome = outcome.as_ref().lines().next().unwrap_or_default();
        let attempt = Attempt { what: what.into(), outcome: outcome.to_owned() };
        tracing::debug!(what = attempt.what, outcome = attempt.outcome, "connecting");
        self.0.push(attempt);
    }

    pub(crate) fn list(&self) -> &[Attempt] {
        &self.0
    }

    pub(crate) fn into_list(self) -> Vec<Attempt> {
        self.0
    }
}
