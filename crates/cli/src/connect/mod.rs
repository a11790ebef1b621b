//! From a command line to a connection: targets, options, who answers, and how it ends.

mod failure;
mod input;
mod options;
mod person;
mod resolve;
mod session;
mod words;

pub(crate) use self::failure::failed;
pub(crate) use self::input::read_input;
pub(crate) use self::options::{AskArgs, ConnectArgs};
pub(crate) use self::resolve::resolve;
pub(crate) use self::session::{Session, log_line, print, run};
pub(crate) use self::words::Words;
