use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::exit::{ExitCause, ProcessExit};
use super::stderr_tail::StderrTail;
use super::stdout_noise::StdoutNoise;

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("`{program}` was not found{}", if program.contains(std::path::is_separator) { "" } else { " in PATH" })]
    NotFound {
        /// The program as it was named.
        program: String,
    },
    /// There is such a file, but it may not be executed.
    #[error("`{program}` cannot be executed: {source}")]
    NotExecutable {
        /// The program as it was named.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The folder to start it in cannot be used.
    #[error("`{program}` cannot start in `{}`: it is not a folder", directory.display())]
    Directory {
        /// The program as it was named.
        program: String,
        /// The folder.
        directory: PathBuf,
    },
    /// As many children are running as are allowed at once.
    #[error("`{program}` was not started: {limit} processes are running already")]
    TooMany {
        /// The program as it was named.
        program: String,
        /// How many are allowed.
        limit: usize,
    },
    /// It was asked for outside of a tokio runtime.
    #[error("`{program}` was not started: there is no tokio runtime here")]
    NoRuntime {
        /// The program as it was named.
        program: String,
    },
    /// The guard, without which children could outlive us, could not be made.
    #[error("`{program}` was not started: nothing would end it if this process was killed: {source}")]
    ReaperFailed {
        /// The program as it was named.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system refused for another reason.
    #[error("`{program}` could not be started: {source}")]
    Failed {
        /// The program as it was named.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
}

/// The name of a program as messages give it.
pub(super) fn display_name(program: &OsStr) -> String {
    program.to_string_lossy().into_owned()
}

/// What is known of a server that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitReport {
    /// The program as it was named.
    pub program: String,
    /// How it ended.
    pub exit: ProcessExit,
    /// Why it ended.
    pub cause: ExitCause,
    /// The last that it wrote to standard error.
    pub stderr: StderrTail,
    /// What it wrote to standard output beside the protocol.
    pub noise: StdoutNoise,
}

/// How many lines of standard error are in a message.
const MAX_STDERR_LINES: usize = 10;

impl std::error::Error for ExitReport {}

/// The first line is how it ended. What the program itself has said follows on lines of its own, so that whoever may not see
/// that can leave it out.
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
            // A program that prints its complaint to the wrong place has nothing but noise to show.
            write!(f, "\nits standard output was not the protocol: {first}")?;
        }
        Ok(())
    }
}
