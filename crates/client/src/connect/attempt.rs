use std::fmt;

/// The outcome of a probe that was not answered.
pub(crate) const UNANSWERED: &str = "no answer in time";

/// One connection attempt and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectAttempt {
    /// The action, such as `server/discover at 2026-07-28`.
    pub action: String,
    /// The outcome on one line, such as `error -32601: method not found`.
    pub outcome: String,
}

impl ConnectAttempt {
    /// Reports whether the server never answered the era probe. Each connection to such a server takes longer by
    /// [`ClientLimits::initialize_delay`](crate::ClientLimits::initialize_delay), unless its era is known.
    pub fn is_unanswered_probe(&self) -> bool {
        self.action.starts_with("server/discover") && self.outcome == UNANSWERED
    }

    /// Reports whether the server's program could not be started.
    pub fn is_failed_start(&self) -> bool {
        self.action == START_PROGRAM
    }
}

impl fmt::Display for ConnectAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.action, self.outcome)
    }
}

/// The action of starting a program, which is recorded only if it fails.
pub(super) const START_PROGRAM: &str = "start the program";

/// The attempts of one connection, so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectAttempts(Vec<ConnectAttempt>);

impl ConnectAttempts {
    /// Records an attempt, with the first line of its outcome; the cause of the error has the rest.
    pub(crate) fn record(&mut self, what: impl Into<String>, outcome: impl AsRef<str>) {
        let outcome = outcome.as_ref().lines().next().unwrap_or_default();
        let attempt = ConnectAttempt { action: what.into(), outcome: outcome.to_owned() };
        tracing::debug!(what = attempt.action, outcome = attempt.outcome, "connecting");
        self.0.push(attempt);
    }

    pub(crate) fn as_slice(&self) -> &[ConnectAttempt] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<ConnectAttempt> {
        self.0
    }
}
