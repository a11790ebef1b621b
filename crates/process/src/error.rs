use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::exit::{ExitCause, ProcessExit};
use super::stderr_tail::StderrTail;
use super::stdout_noise::StdoutNoise;

/// The reason why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("`{program}` was not found{}", where_it_was_looked_for(program))]
    NotFound {
        /// The name of the program as given.
        program: String,
    },
    /// The file exists, but is not executable.
    #[error("`{program}` cannot be executed: {source}")]
    NotExecutable {
        /// The name of the program as given.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The working folder cannot be used.
    #[error("`{program}` cannot start in `{}`: it is not a folder", directory.display())]
    Directory {
        /// The name of the program as given.
        program: String,
        /// The folder.
        directory: PathBuf,
    },
    /// The limit of running children is reached.
    #[error("`{program}` was not started: {limit} processes are running already")]
    TooMany {
        /// The name of the program as given.
        program: String,
        /// The limit.
        limit: usize,
    },
    /// The call was made outside of a tokio runtime.
    #[error("`{program}` was not started: there is no tokio runtime here")]
    NoRuntime {
        /// The name of the program as given.
        program: String,
    },
    /// The reaper process, without which children could outlive this process, could not be started.
    #[error("`{program}` was not started: nothing would end it if this process was killed: {source}")]
    ReaperFailed {
        /// The name of the program as given.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refused for another reason.
    #[error("`{program}` could not be started: {source}")]
    Failed {
        /// The name of the program as given.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Returns the end of the message about a missing program: where it was looked for, and a mistake that is often made.
fn where_it_was_looked_for(program: &str) -> String {
    let place = if program.contains(std::path::is_separator) { "" } else { " in PATH" };
    let is_line = program.contains(char::is_whitespace);
    let hint = if is_line { "; its arguments have to be given apart from its name" } else { "" };
    format!("{place}{hint}")
}

/// Returns the name of a program for messages.
pub(super) fn display_name(program: &OsStr) -> String {
    program.to_string_lossy().into_owned()
}

/// The report of a server that has exited.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitReport {
    /// The name of the program as given.
    pub program: String,
    /// How it ended.
    pub exit: ProcessExit,
    /// Why it ended.
    pub cause: ExitCause,
    /// The end of its standard error.
    pub stderr: StderrTail,
    /// The lines of its standard output that were no messages.
    pub noise: StdoutNoise,
}

/// How many lines of standard error are in a message.
const MAX_STDERR_LINES: usize = 10;

impl std::error::Error for ExitReport {}

/// The first line has the exit. The program's own output follows on further lines, so that a caller can omit it for
/// readers that may not see it.
impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, exit, cause, stderr, noise } = self;
        match cause {
            ExitCause::Voluntary => write!(f, "`{program}` {exit}")?,
            ExitCause::TimedOut => write!(f, "`{program}` took too long and {exit}")?,
            ExitCause::ClosedOutput => write!(f, "`{program}` closed its standard output and {exit}")?,
            ExitCause::ClosedInput => write!(f, "`{program}` closed its standard input and {exit}")?,
            ExitCause::Requested => write!(f, "`{program}` was asked to end and {exit}")?,
        }
        let lines = stderr.last_lines(MAX_STDERR_LINES);
        if !lines.is_empty() {
            f.write_str("\nits standard error ended with:")?;
            lines.lines().try_for_each(|line| write!(f, "\n  {line}"))?;
        } else if let Some(first) = &noise.first {
            // A program that prints its error to standard output has left nothing on standard error.
            write!(f, "\nits standard output was not the protocol: {first}")?;
        }
        Ok(())
    }
}
