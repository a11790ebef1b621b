//! Commands that are described in a file: an argument vector with placeholders, and its arguments.
//!
//! # Invariants
//!
//! - A value is never part of a script; scripts receive it as an argument:
//!   `script_arguments_are_passed_by_environment_or_file_never_in_the_text`.
//! - A value may begin with a dash only after a `--` that is declared to precede it:
//!   `leading_dash_is_allowed_only_directly_after_a_double_dash`.
//! - A confirmation shows only the text written for it, and no value can imitate that text:
//!   `confirmation_shows_the_configured_question_or_the_arguments_only`.
//! - Legacy clients confirm before the command runs, too: `command_requires_confirmation_in_the_legacy_era`.

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
