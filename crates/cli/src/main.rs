//! The `trunkline` command: the only crate that prints and exits.
//!
//! Data goes to standard output and diagnostics to standard error; [`exit`] has the table of exit codes.
//!
//! # Invariants
//!
//! - The documentation shows only output that the command prints: `transcripts_are_what_the_command_prints`.
//! - A usage or configuration error includes what to do: `unusable_option_files_exit_with_the_configuration_code`,
//!   `invalid_options_are_reported_with_the_expected_value`.
//! - No secret and no variable of the environment leaves over stdio or its logs: `secrets_sent_over_stdio_are_never_logged`,
//!   `process_environment_never_leaks_over_stdio`.
//! - Nothing that a bridge started outlives it: `no_child_process_outlives_the_bridge`.
//! - An interrupt cancels the call at the server: `interrupt_sends_a_cancellation_and_exits_with_130`.

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
mod file_watcher;
mod link_target;
mod log_limit;
mod log_line;
mod logging;
mod login;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
mod process_counter;
mod render;
mod replay;
mod schema;
mod signals;
mod state_folder;
mod telemetry;
mod terminal;
mod top;
mod trust;
mod user_input;
mod values;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use self::args::Cli;
use self::connect::print_stdout;
use self::exit::{ExitReason, print_stderr};
use self::terminal::{DEFAULT_COLUMNS, fit_lines, terminal_columns};

/// Prints the help, or what is wrong with a command line.
fn print_usage(error: &clap::Error) {
    let is_terminal =
        if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    if !is_terminal || terminal_columns() >= DEFAULT_COLUMNS {
        // A closed terminal does not change the exit code.
        let _ = error.print();
        return;
    }
    let text = fit_lines(&error.render().to_string(), terminal_columns());
    if error.use_stderr() {
        print_stderr(&text);
    } else {
        let _ = print_stdout(&text);
    }
}

/// Names the option for a command that others have: `install` is its own opposite.
fn with_uninstall_hint(mut error: clap::Error) -> clap::Error {
    let given = error.get(ContextKind::InvalidSubcommand);
    if matches!(given, Some(ContextValue::String(given)) if given == "uninstall") {
        error.remove(ContextKind::SuggestedSubcommand);
        let hint = "remove the hub from a client with `trunkline install CLIENT --uninstall`";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

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
            let error = with_uninstall_hint(error);
            print_usage(&error);
            if error.use_stderr() { ExitReason::Usage } else { ExitReason::Ok }
        }
    };
    exit.into()
}
