//! The commands, one file or folder each.

pub(crate) mod completions;
pub(crate) mod serve;

use crate::args::Command;
use crate::exit::Failure;

/// Runs a command to its end.
///
/// # Errors
/// What the person at the terminal is told, and the exit code.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
