use std::time::Duration;

use trunkline_client::protocol::error_code;
use trunkline_client::{Attempt, Error};

use crate::exit::{Exit, Failure};

/// Turns what went wrong between us and a server into words and an exit code.
pub(crate) fn failed(error: Error) -> Failure {
    match error {
        Error::Unreachable(unreachable) => {
            unreached(&unreachable.target, &unreachable.cause, &unreachable.attempts)
        }
        Error::Unauthorized { .. } | Error::Status { status: 401 | 403, .. } => {
            Failure::new(Exit::Unauthorized, error)
                .hint("`--bearer env:NAME` or `--bearer @FILE` sends a token")
        }
        Error::TimedOut { after } => {
            let after = Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
            Failure::new(Exit::Failed, format!("no answer within {after:?}"))
                .hint("`--timeout` lets the server take longer; it may have run the call")
        }
        Error::Closed { may_have_run: true, .. } | Error::Status { may_have_run: true, .. } => {
            Failure::new(Exit::Failed, error).hint("the server may have run the call")
        }
        Error::TooLong { .. } => Failure::new(Exit::Failed, error)
            .hint("`--max-message` lets it be longer; the server may have run the call"),
        Error::Refused(ref refused) if refused.code == error_code::METHOD_NOT_FOUND => {
            Failure::new(Exit::Failed, error).hint("`trunkline info` says what the server has")
        }
        error => Failure::new(Exit::Failed, error),
    }
}

/// Turns what went wrong while connecting into words; the target has the name that it has for people.
pub(crate) fn failed_to_connect(error: Error, label: &str) -> Failure {
    match error {
        Error::Unreachable(unreachable) => unreached(label, &unreachable.cause, &unreachable.attempts),
        error => failed(error).on(label),
    }
}

fn unreached(label: &str, cause: &str, tried: &[Attempt]) -> Failure {
    let what = format!("cannot connect to {label}: {cause}{}", attempts(tried));
    Failure::new(Exit::Unreachable, what).hint("`trunkline doctor` looks at each step of the way")
}

/// Lists what was tried, a line for each, if there was more than one thing.
fn attempts(attempts: &[Attempt]) -> String {
    let told = if attempts.len() > 1 { attempts } else { &[] };
    let lines = told.iter().map(|attempt| format!("\n  {attempt}"));
    if told.is_empty() {
        String::new()
    } else {
        std::iter::once("\ntried:".to_owned()).chain(lines).collect()
    }
}
