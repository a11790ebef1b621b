//! What is wrong with a configuration, as a failure of a command.

use trunkline_config::{ConfigError, EditError};

use crate::exit::{Exit, Failure};

/// Tells what is wrong with a configuration, with the advice of the first thing.
pub(crate) fn misconfigured(error: &ConfigError) -> Failure {
    let failure = Failure::configuration(error);
    match error.problems().find_map(|problem| problem.advice()) {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Config(error) => misconfigured(&error),
            EditError::Changed { .. } => Self::new(Exit::Failed, error),
            error => Self::configuration(error),
        }
    }
}
