use std::time::Duration;

use trunkline_client::protocol::error_code;
use trunkline_client::{ConnectAttempt, Error, RequestDelivery};

use crate::exit::{CliFailure, ExitReason};
use crate::login::{is_plain_scope, login_failure};

/// Turns what went wrong between us and a server into words and an exit code.
pub(crate) fn call_failure(error: Error) -> CliFailure {
    match error {
        Error::Unreachable(unreachable) => {
            unreachable_failure(&unreachable.target, &unreachable.cause, &unreachable.attempts)
        }
        Error::Authorization(error) => login_failure(&error),
        Error::Unauthorized { status: 403, challenge: Some(ref challenge) }
            if challenge.contains("insufficient_scope") =>
        {
            let hint = format!(
                "get a token with `trunkline login TARGET{}`, or send one that has the scope with `--bearer`",
                scope_options(challenge)
            );
            CliFailure::new(ExitReason::Unauthorized, error).hint(hint)
        }
        Error::Unauthorized { .. } | Error::Status { status: 401 | 403, .. } => {
            CliFailure::new(ExitReason::Unauthorized, error)
                .hint("send a token with `--bearer env:NAME` or `--bearer @FILE`")
        }
        Error::TimedOut { after } => {
            let after = Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
            CliFailure::new(ExitReason::Failed, format!("no response within {after:?}"))
                .hint("increase `--timeout`; the server may have run the call")
        }
        Error::Closed { delivery: RequestDelivery::MaybeSent, .. }
        | Error::Status { delivery: RequestDelivery::MaybeSent, .. } => {
            CliFailure::new(ExitReason::Failed, error).hint("the server may have run the call")
        }
        Error::TooLong { .. } => CliFailure::new(ExitReason::Failed, error)
            .hint("increase `--max-message`; the server may have run the call"),
        Error::ErrorResponse(ref refused) if refused.code == error_code::METHOD_NOT_FOUND => {
            CliFailure::new(ExitReason::Failed, error).hint_command("info", "lists the server's capabilities")
        }
        error => CliFailure::new(ExitReason::Failed, error),
    }
}

/// Returns the options that request the scopes of a challenge.
fn scope_options(challenge: &str) -> String {
    let scopes = challenge.split_once("scope=\"").and_then(|(_, rest)| rest.split('"').next());
    let scopes = scopes.unwrap_or_default().split(' ').filter(|scope| is_plain_scope(scope));
    scopes.map(|scope| format!(" --scope {scope}")).collect()
}

/// Describes a failed connection, with the displayed name of the target.
pub(crate) fn connect_failure(error: Error, label: &str) -> CliFailure {
    match error {
        Error::Unreachable(unreachable) => {
            unreachable_failure(label, &unreachable.cause, &unreachable.attempts)
        }
        error => call_failure(error).with_subject(label),
    }
}

fn unreachable_failure(label: &str, cause: &str, tried: &[ConnectAttempt]) -> CliFailure {
    let what = format!("cannot connect to {label}: {cause}{}", attempt_lines(tried));
    let failure = CliFailure::new(ExitReason::Unreachable, what);
    if cause.contains("HTTP 404")
        && let Some(url) = usual_url(label)
    {
        return failure.hint(format!("nothing is at this path; did you mean `{url}`?"));
    }
    if cause.starts_with("no answer within")
        && let Some(launcher) = launcher(label)
    {
        let words = "may still be downloading the package; try again with `--timeout 3m`";
        return failure.hint(format!("`{launcher}` {words}"));
    }
    failure.hint_command("doctor", "checks each step")
}

/// Programs that download a package before they start it.
const LAUNCHERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "pipx", "docker", "podman"];

/// Returns the launcher that a command line starts with.
fn launcher(command_line: &str) -> Option<&str> {
    let program = command_line.split(' ').next()?.rsplit('/').next()?;
    LAUNCHERS.iter().copied().find(|launcher| *launcher == program)
}

/// Returns the URL of a host with the path that most servers have, unless this is it.
fn usual_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (path.trim_end_matches('/') != "mcp").then(|| format!("{scheme}://{host}/mcp"))
}

/// Lists what was tried, a line for each, if there was more than one thing.
fn attempt_lines(attempts: &[ConnectAttempt]) -> String {
    let shown = if attempts.len() > 1 { attempts } else { &[] };
    let lines = shown.iter().map(|attempt| format!("\n  {attempt}"));
    if shown.is_empty() {
        String::new()
    } else {
        std::iter::once("\ntried:".to_owned()).chain(lines).collect()
    }
}
