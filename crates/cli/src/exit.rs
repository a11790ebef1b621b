use std::fmt::{self, Display};
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::json;

use crate::render::one_line;
use crate::terminal::escape_text;

/// The exit codes as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success, or a clean shutdown
  1    a tool or the protocol failed, or calls were cut off at shutdown
  2    invalid command line
  3    a configured file, name or address cannot be used
  4    cannot reach the server
  5    authentication failed
  130  interrupted";

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    Configuration = 3,
    Unreachable = 4,
    Unauthorized = 5,
    Interrupted = 130,
}

impl From<ExitReason> for ExitCode {
    fn from(exit: ExitReason) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed, as a message for the user.
#[derive(Debug)]
#[must_use = "a failure must be returned or printed"]
pub(crate) struct CliFailure {
    exit: ExitReason,
    message: String,
    hint: Option<FailureHint>,
    json: bool,
}

/// What to do about a failure.
#[derive(Debug)]
enum FailureHint {
    Text(String),
    /// A command for the same target, and what it does.
    Command {
        command: &'static str,
        effect: &'static str,
        target: Option<String>,
    },
}

impl Display for FailureHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Command { command, effect, target: None } => write!(f, "`trunkline {command}` {effect}"),
            Self::Command { command, effect, target: Some(target) } => {
                write!(f, "`trunkline {command} {target}` {effect}")
            }
        }
    }
}

impl CliFailure {
    /// Creates a failure with a message.
    pub(crate) fn new(exit: ExitReason, what: impl Display) -> Self {
        Self { exit, message: what.to_string(), hint: None, json: false }
    }

    /// Creates a failure for a configuration that cannot be used.
    pub(crate) fn configuration(what: impl Display) -> Self {
        Self::new(ExitReason::Configuration, what)
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(FailureHint::Text(hint.to_string()));
        self
    }

    /// Adds a command that helps with the same target, and what it does.
    pub(crate) fn hint_command(mut self, command: &'static str, effect: &'static str) -> Self {
        self.hint = Some(FailureHint::Command { command, effect, target: None });
        self
    }

    /// Completes a command of the hint with the target, as it is typed.
    pub(crate) fn with_target(mut self, words: &str) -> Self {
        if let Some(FailureHint::Command { target, .. }) = &mut self.hint {
            *target = Some(words.to_owned());
        }
        self
    }

    /// Puts words before the hint, if there is one.
    pub(crate) fn with_hint_prefix(mut self, words: &str) -> Self {
        if let Some(FailureHint::Text(hint)) = &mut self.hint {
            hint.insert_str(0, words);
        }
        self
    }

    /// Replaces the message, keeping its meaning.
    pub(crate) fn with_message(self, message: impl Display) -> Self {
        Self { message: message.to_string(), ..self }
    }

    /// Adds a hint, unless there is one.
    pub(crate) fn or_hint(self, hint: impl Display) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }

    /// Prefixes the message with its subject.
    pub(crate) fn with_subject(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Keeps only the first line, where the rest is printed elsewhere.
    pub(crate) fn first_line_only(self) -> Self {
        let first = self.message.lines().next().unwrap_or_default().to_owned();
        Self { message: first, hint: None, ..self }
    }

    /// Sets whether the failure is printed as one line of JSON.
    pub(crate) fn with_json(self, json: bool) -> Self {
        Self { json, ..self }
    }

    /// Reports whether the message contains a word.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        self.message.contains(word)
    }

    pub(crate) fn exit(&self) -> ExitReason {
        self.exit
    }

    /// Prints the failure to standard error.
    pub(crate) fn print(&self) {
        if self.json {
            let report = json!({ "error": self.message, "hint": self.hint.as_ref().map(ToString::to_string), "exit": self.exit as u8 });
            print_stderr(&format!("{}\n", one_line(&report.into())));
            return;
        }
        let hint = self.hint.as_ref().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
        // The message may contain a peer's text.
        print_stderr(&escape_text(&format!("error: {}\n{hint}", self.message)));
    }
}

/// What happened and what to do about it, on one line.
impl Display for CliFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Writes text to standard error, ignoring failures.
pub(crate) fn print_stderr(words: &str) {
    // Unlike `eprint!` this does not panic when the reader is gone.
    let _ = io::stderr().write_all(words.as_bytes());
}
