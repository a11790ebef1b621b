//! From a command line to a connection: targets, options, who answers, and how it ends.
//!
//! # Invariants
//!
//! - The expanded value of a configuration variable is never shown: `what_a_variable_stands_for_is_not_shown`.
//! - Ctrl-C cancels the call and clears the progress bar:
//!   `control_c_cancels_a_call_at_the_server_and_takes_the_bar_away`.
//! - A server process gets the cancellation before its stdin is closed: `a_program_is_told_before_its_input_is_closed`.
//! - A second Ctrl-C does not wait for a server that does not exit:
//!   `a_second_interrupt_does_not_wait_for_a_server_that_does_not_end`.

mod build;
mod command_words;
mod connect_settings;
mod failure;
mod input;
mod input_handler;
mod lookup;
mod options;
mod resolve;
mod runtime;
mod session;

pub(crate) use self::build::{client_builder, output_line};
pub(crate) use self::command_words::TargetArgs;
pub(crate) use self::connect_settings::{ConnectSettings, has_credentials};
pub(crate) use self::failure::{call_failure, connect_failure};
pub(crate) use self::input::read_input;
pub(crate) use self::input_handler::TerminalInputHandler;
pub(crate) use self::options::{AnswerArgs, ConnectArgs, TargetOptionArgs, target_help};
pub(crate) use self::resolve::{ResolvedTarget, resolve};
pub(crate) use self::runtime::{in_runtime, interrupted};
pub(crate) use self::session::{CommandSession, close_client, print_stdout, with_session};
