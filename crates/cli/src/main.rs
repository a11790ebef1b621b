//! The `trunkline` command: the only crate that prints and exits.
//!
//! Data goes to standard output and words to standard error; [`exit`] has the table of exit codes.
//!
//! # Invariants
//!
//! - The documentation shows only output that the command prints: `transcripts_are_what_the_command_prints`.
//! - A usage or configuration error includes what to do: `files_that_cannot_be_used_are_a_matter_of_configuration`,
//!   `a_wrong_command_line_says_what_would_be_right`.
//! - No secret and no variable of the environment leaves over stdio or its logs: `no_secret_of_a_pipe_is_logged`,
//!   `no_variable_of_the_process_comes_out_of_a_pipe`.
//! - Nothing that a bridge started outlives it: `nothing_outlives_a_bridge_however_it_ends`.

mod admin;
mod args;
mod audit;
mod builtin;
mod commands;
mod config_failure;
#[cfg(test)]
mod config_schema;
mod configured_commands;
mod connect;
mod doctor;
mod exit;
mod log_limit;
mod logging;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
mod render;
mod schema;
mod signals;
mod state_folder;
mod terminal;
mod user_input;
mod values;

use std::process::ExitCode;

use clap::Parser as _;

use self::args::Cli;
use self::exit::ExitReason;

fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => match commands::run(cli.command) {
            Ok(()) => ExitReason::Ok,
            Err(failure) => {
                failure.print();
                failure.exit()
            }
        },
        Err(error) => {
            // A closed terminal is no reason to end in any other way.
            let _ = error.print();
            if error.use_stderr() { ExitReason::Usage } else { ExitReason::Ok }
        }
    };
    exit.into()
}
