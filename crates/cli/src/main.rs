//! The `trunkline` command: the only crate that prints and exits.
//!
//! Data goes to standard output and words to standard error; [`exit`] has the table of exit codes.

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
mod logging;
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
            // A closed terminal does not change the exit code.
            let _ = error.print();
            if error.use_stderr() { ExitReason::Usage } else { ExitReason::Ok }
        }
    };
    exit.into()
}
