//! Commands that are described in a file: an argument vector with placeholders, and its arguments.

mod argument;
mod arguments_file;
mod command_template;
mod config;
mod interpreter;
mod question_text;
mod set;
mod settings;
mod template;
mod tool;
mod units;

#[cfg(test)]
mod tests;

pub use self::argument::ArgumentConfig;
pub use self::config::{CommandConfig, CommandEnvironment, CommandFault};
pub use self::set::DescribedSet;
pub use self::settings::{ManifestsConfig, PolicyConfig, schemas};
pub use self::template::DescribedError;
pub use self::tool::{DescribedCommand, PreparedCommand};
