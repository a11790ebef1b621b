use std::io::{self, Write as _};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{CliFailure, ExitReason};

/// Print a shell completion script
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written to.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CliFailure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "trunkline", &mut script);
    let written = io::stdout().write_all(&script);
    written.map_err(|error| CliFailure::new(ExitReason::Failed, format!("cannot print the script: {error}")))
}
