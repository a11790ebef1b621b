//! Programs that are started: what to start.

mod command;

pub use self::command::{Command, CommandLineError};
