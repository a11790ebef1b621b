//! The `trunkline` command: the one room that prints and exits.
//!
//! Data goes to standard output and words to standard error; [`exit`] has the table of exit codes.

mod admin;
mod args;
mod ask;
mod audit;
mod builtin;
mod commands;
#[cfg(test)]
mod config_schema;
mod connect;
mod described;
mod doctor;
mod exit;
mod logging;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
mod misconfigured;
mod render;
mod schema;
mod signals;
mod state_folder;
mod terminal;
mod values;

use std::process::ExitCode;

use clap::Parser as _;

use self::args::Cli;
use self::exit::Exit;

fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => match commands::run(cli.command) {
            Ok(()) => Exit::Ok,
            Err(failure) => {
                failure.tell();
                failure.exit()
            }
        },
        Err(error) => {
            // A closed terminal is no reason to end in any other way.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Ok }
        }
    };
    exit.into()
}
