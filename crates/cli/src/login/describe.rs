use std::time::{Duration, SystemTime};

use trunkline_client::authorization::{AuthorizationError, ScopeSet, TokenSet, UserAgentError};

use crate::exit::{CliFailure, ExitReason};

/// Describes a login that failed: the step, the URL and the OAuth error.
pub(crate) fn login_failure(error: &AuthorizationError) -> CliFailure {
    let unauthorized = |what: String| CliFailure::new(ExitReason::Unauthorized, what);
    match error {
        AuthorizationError::UserAgent(agent) => match &**agent {
            UserAgentError::Unavailable(command) => unauthorized("the server requires a login".to_owned())
                .hint(format!(
                    "run `{command}`, or send a token with `--bearer env:NAME` or `--bearer @FILE`"
                )),
            UserAgentError::Cancelled => unauthorized("the login was cancelled".to_owned()),
            UserAgentError::Input(_) => unauthorized("no redirect URL was entered".to_owned())
                .hint("after the login, paste the address that the browser shows"),
            _ => unauthorized(error.to_string()),
        },
        AuthorizationError::Flow(flow) if !flow.has_metadata() => {
            unauthorized(format!("the server has no OAuth metadata to log in with: {flow}"))
                .hint("if it accepts tokens, send one with `--bearer env:NAME` or `--bearer @FILE`")
        }
        AuthorizationError::Flow(flow) => {
            let failure = unauthorized(error.to_string());
            match flow.failure() {
                trunkline_client::authorization::FlowFailure::NoClient(_) => {
                    failure.hint("register a client there, and pass `--client-id` to `trunkline login`")
                }
                _ => failure.hint("`trunkline doctor` checks each step"),
            }
        }
        AuthorizationError::Store(_) => CliFailure::configuration(error),
        _ => unauthorized(error.to_string()),
    }
}

/// Describes when a login ends, or is renewed.
pub(crate) fn describe_expiry(tokens: &TokenSet, now: SystemTime) -> String {
    let is_renewed = tokens.refresh_token.is_some();
    match tokens.expires_at.map(|expiry| expiry.duration_since(now)) {
        None => "no expiry known".to_owned(),
        Some(_) if is_renewed => "renewed automatically".to_owned(),
        Some(Ok(left)) => format!("in {}", rough_duration(left)),
        Some(Err(_)) => "expired".to_owned(),
    }
}

fn rough_duration(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Lists scopes.
pub(crate) fn scope_text(scopes: &ScopeSet) -> String {
    if scopes.is_empty() { "-".to_owned() } else { scopes.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_down_to_one_unit() {
        for (seconds, expected) in
            [(5, "5 s"), (119, "119 s"), (3_599, "59 min"), (7_200, "2 h"), (200_000, "2 days")]
        {
            assert_eq!(rough_duration(Duration::from_secs(seconds)), expected);
        }
    }
}
