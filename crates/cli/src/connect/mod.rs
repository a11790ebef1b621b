//! From a command line to a connection: targets, options, who answers, and how it ends.

mod build;
mod failure;
mod input;
mod lookup;
mod options;
mod person;
mod resolve;
mod runtime;
mod session;
mod way;
mod words;

pub(crate) use self::build::{builder, output_line};
pub(crate) use self::failure::{failed, failed_to_connect};
pub(crate) use self::input::read_input;
pub(crate) use self::options::{AskArgs, ConnectArgs, ReachArgs, help};
pub(crate) use self::person::Person;
pub(crate) use self::resolve::{Resolved, resolve};
pub(crate) use self::runtime::{in_runtime, interrupted};
pub(crate) use self::session::{Session, leave, print, run};
pub(crate) use self::way::{Way, shows_credentials};
pub(crate) use self::words::TargetArgs;
