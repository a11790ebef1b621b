//! What is wrong with a configuration, as a failure of a command.

use trunkline_config::{EditError, Problem};

use crate::exit::{Exit, Failure};

/// Tells what is wrong with a configuration, with the first advice that there is.
pub(crate) fn misconfigured<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Failure {
    let (mut told, mut advice) = (Vec::new(), None);
    for problem in problems {
        told.push(problem.to_string());
        advice = advice.or_else(|| problem.advice());
    }
    let failure = Failure::configuration(told.join("\n"));
    advice.into_iter().fold(failure, Failure::hint)
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Config(error) => misconfigured(error.problems()),
            EditError::Changed { .. } => Self::new(Exit::Failed, error),
            error => Self::configuration(error),
        }
    }
}
