//! From a command line to a connection: targets, options, who answers, and how it ends.
//!
//! # Invariants
//!
//! - The expanded value of a configuration variable is never shown: `expanded_variable_values_are_never_printed`.
//! - Ctrl-C cancels the call and clears the progress bar:
//!   `ctrl_c_cancels_the_call_at_the_server_and_clears_the_progress_bar`.
//! - A server process gets the cancellation before its stdin is closed: `interrupted_call_is_cancelled_before_stdin_closes`.
//! - A second Ctrl-C does not wait for a server that does not exit:
//!   `second_interrupt_skips_the_wait_for_the_server`.

mod build;
mod command_words;
mod connect_settings;
mod connecting_notice;
mod failure;
mod input;
mod input_handler;
mod lookup;
mod options;
mod resolve;
mod running_hub;
mod runtime;
mod session;
mod starting_servers;

pub(crate) use self::build::{client_builder, output_line};
pub(crate) use self::command_words::{CommandWords, TargetArgs, with_path, with_scheme};
pub(crate) use self::connect_settings::{ConnectSettings, has_credentials};
pub(crate) use self::failure::{call_failure, connect_failure};
pub(crate) use self::input::read_input;
pub(crate) use self::input_handler::TerminalInputHandler;
pub(crate) use self::options::{AnswerArgs, ConnectArgs, TargetOptionArgs, target_help, target_or_hub_help};
pub(crate) use self::resolve::{ResolvedTarget, resolve};
pub(crate) use self::running_hub::unlisted_servers;
pub(crate) use self::runtime::{in_runtime, interrupted};
pub(crate) use self::session::{CommandSession, close_client, print_stdout, with_session};
pub(crate) use self::starting_servers::wait_for_starting_servers;
