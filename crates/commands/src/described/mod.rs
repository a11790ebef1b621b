//! Commands that are described in a file: their argument vector with places for values, and what is known of those.

mod argument;
mod config;
mod file;
mod interpreter;
mod line;
mod set;
mod settings;
mod shown;
mod template;
mod tool;
mod units;

#[cfg(test)]
mod tests;

pub use self::argument::ArgumentConfig;
pub use self::config::{CommandConfig, Environment, Fault};
pub use self::set::DescribedSet;
pub use self::settings::{ManifestsConfig, PolicyConfig, schemas};
pub use self::template::DescribedError;
pub use self::tool::{Described, Prepared};
