//! What is wrong with a configuration, as a failure of a command.

use trunkline_config::{ConfigProblem, EditError};

use crate::exit::{CliFailure, ExitReason};

/// Describes the problems of a configuration, with the first hint among them.
pub(crate) fn config_failure<'a>(problems: impl IntoIterator<Item = &'a ConfigProblem>) -> CliFailure {
    let (mut lines, mut advice) = (Vec::new(), None);
    for problem in problems {
        lines.push(problem.to_string());
        advice = advice.or_else(|| problem.hint_text());
    }
    let failure = CliFailure::configuration(lines.join("\n"));
    advice.into_iter().fold(failure, CliFailure::hint)
}

impl From<EditError> for CliFailure {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Config(error) => config_failure(error.problems()),
            EditError::Changed { .. } => Self::new(ExitReason::Failed, error),
            error => Self::configuration(error),
        }
    }
}
