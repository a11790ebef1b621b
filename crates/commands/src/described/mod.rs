//! Commands that are described in a file: an argument vector with placeholders, and its arguments.
//!
//! # Invariants
//!
//! - A value is never part of a script; scripts receive it as an argument:
//!   `scripts_get_their_arguments_only_beside_their_text`.
//! - A value may begin with a dash only after a `--` that is declared to precede it:
//!   `only_a_double_dash_that_is_there_and_says_so_of_the_value_lets_it_begin_with_a_dash`.
//! - A confirmation shows only the text written for it, and no value can imitate that text:
//!   `the_question_has_the_words_of_the_file_or_what_was_given_and_nothing_else`.
//! - Legacy clients confirm before the command runs, too: `the_user_is_asked_before_a_command_runs_in_the_legacy_era`.

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
