//! From a command line to a connection: targets, options, who answers, and how it ends.

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
