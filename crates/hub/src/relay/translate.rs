//! What went wrong with a server, in words for its caller.

use trunkline_client::{Error, Refused};
use trunkline_config::ServerName;
use trunkline_protocol::codec::Reply;
use trunkline_protocol::model::{CallToolResult, Question};
use trunkline_protocol::{Method, Raw, Refusal, Writer, error_code};
use trunkline_server::{Call, Outcome};

use super::Errand;
use super::gap::Ends;
use crate::upstream::{FailureKind, Unavailable, headline};

/// What was asked, and of whom.
pub(super) struct Place<'a> {
    pub(super) ends: &'a Ends,
    pub(super) errand: &'a Errand,
}

impl Place<'_> {
    fn failed(&self, reason: &str, problem: &str, is_retryable: bool) -> Refusal {
        failed(&self.ends.server, reason, problem, is_retryable)
    }

    fn uri(&self) -> Option<String> {
        let is_read = self.errand.method == Method::ResourcesRead;
        is_read.then(|| self.errand.params().text("uri")).flatten().map(|uri| uri.to_string())
    }
}

/// Says what failed at which server.
fn failed(server: &ServerName, reason: &str, problem: &str, is_retryable: bool) -> Refusal {
    let mut data = Writer::with_capacity(96);
    data.open_object();
    data.plain_key("upstream");
    data.string(server.as_str());
    data.plain_key("reason");
    data.string(reason);
    data.plain_key("retryable");
    data.boolean(is_retryable);
    data.close_object();
    let message = format!("upstream `{}` {problem}", server);
    Refusal::INTERNAL.because(message).with_data(data.into_raw())
}

/// Says that a server has not listed what it has within what a call may wait. Why it failed is for its operator to read.
pub(crate) fn not_listed_refusal(server: &ServerName, has_failed: bool) -> Refusal {
    match has_failed {
        true => {
            failed(server, "unreachable", "unavailable: it could not be connected to; try again later", true)
        }
        false => {
            failed(server, "starting", "is still starting and has not listed what it has; try again", true)
        }
    }
}

/// Says why there is no connection.
pub(super) fn unavailable_refusal(server: &ServerName, unavailable: &Unavailable) -> Refusal {
    let (reason, is_retryable) = match unavailable {
        Unavailable::Failed(failure, _) => match failure.kind {
            FailureKind::NeedsAuth => ("upstream_auth", false),
            FailureKind::Unreachable => ("unreachable", true),
            FailureKind::Lost => ("upstream_lost", true),
        },
        Unavailable::Full(_) | Unavailable::InUse(_) => ("too_many", true),
        Unavailable::Disabled => ("disabled", false),
        Unavailable::Disconnected => ("disconnected", false),
        Unavailable::Removed => ("removed", false),
    };
    failed(server, reason, &format!("unavailable: {}", unavailable.headline()), is_retryable)
}

/// Says what a failure on the way to a server means to its caller.
fn error_refusal(place: &Place<'_>, error: &Error) -> Refusal {
    match error {
        Error::Refused(refused) => carried(place, refused),
        Error::Unanswered(refusal) => Refusal::INTERNAL
            .because(format!("a question of upstream `{}` was not answered: {refusal}", place.ends.server)),
        Error::TimedOut { after } => {
            place.failed("timeout", &format!("gave no answer within {after:?}"), true)
        }
        Error::Unauthorized { .. } => place.failed("upstream_auth", "wants other credentials", false),
        Error::Closed { cause, may_have_run } => {
            place.failed("upstream_lost", &format!("was lost: {}", headline(cause)), !may_have_run)
        }
        Error::Status { may_have_run, .. } => {
            let problem = error.to_string();
            place.failed("unreachable", problem.trim_start_matches("the server "), !may_have_run)
        }
        Error::Unreachable(unreachable) => {
            place.failed("unreachable", &format!("unavailable: {}", headline(&unreachable.cause)), true)
        }
        Error::Malformed(problem) => {
            place.failed("upstream_protocol", &format!("does not keep to the protocol: {problem}"), false)
        }
        Error::TooLong { limit } => {
            place.failed("upstream_protocol", &format!("sent a message of more than {limit} bytes"), false)
        }
        Error::Unsupported(problem) => place.ends.inexpressible(place.errand.method.as_str(), problem),
        Error::Invalid(problem) => Refusal::INVALID_PARAMS.because(problem.clone()),
        other => place.failed("unreachable", &other.to_string(), false),
    }
}

/// Carries a server's refusal on; what was about the hop to it is said anew.
fn carried(place: &Place<'_>, refused: &Refused) -> Refusal {
    let required = refused.data.as_ref().and_then(|data| data.members().ok()?.take("requiredCapabilities"));
    let missing = |required: &Raw| place.ends.lacking(required, None, &refused.message);
    match (refused.code, place.uri()) {
        (error_code::MISSING_CAPABILITY, _) => missing(&required.unwrap_or(Raw::EMPTY_OBJECT)),
        (error_code::URL_ELICITATION_REQUIRED, _) => {
            let page = Question::url("", "");
            place.ends.lacking(&page.required_capability(), Some(&page), &refused.message)
        }
        (error_code::HEADER_MISMATCH | error_code::UNSUPPORTED_VERSION, _) => place.failed(
            "upstream_protocol",
            &format!("does not keep to the protocol: {}", refused.message),
            false,
        ),
        (error_code::RESOURCE_NOT_FOUND, Some(uri)) => {
            Refusal::resource_not_found(&uri).because(refused.message.clone())
        }
        (_, Some(uri)) if is_about(refused, &uri) => {
            Refusal::resource_not_found(&uri).because(refused.message.clone())
        }
        _ => match required {
            // A server of our own, which had no other code for it.
            Some(required) => missing(&required),
            None => refused.clone().into_refusal(),
        },
    }
}

/// Reports whether a refusal of parameters says that it is this resource which is not there.
fn is_about(refused: &Refused, uri: &str) -> bool {
    let is_invalid = refused.code == Refusal::INVALID_PARAMS.code(trunkline_protocol::Era::Modern);
    let named = refused.data.as_ref().and_then(|data| data.members().ok()?.text("uri"));
    is_invalid && named.is_some_and(|named| named == uri)
}

/// Answers with what a failure on the way to a server means to its caller. That nobody answered a question of a tool is for
/// the model to read.
pub(super) fn error_answer(place: &Place<'_>, error: &Error, call: &Call) -> Result<Outcome, Refusal> {
    let refusal = error_refusal(place, error);
    match (error, call.method) {
        (Error::Unanswered(_), Method::ToolsCall) => {
            Ok(Outcome::Done(Reply::Tool(CallToolResult::error(refusal.to_string()))))
        }
        _ => as_answer(refusal, call),
    }
}

/// Answers with a refusal, or with the result of a tool where the caller's revision has no code for it.
pub(super) fn as_answer(refusal: Refusal, call: &Call) -> Result<Outcome, Refusal> {
    let said = (call.method == Method::ToolsCall).then(|| refusal.as_tool_result(call.context.revision()));
    match said.flatten() {
        Some(result) => Ok(Outcome::Done(Reply::Tool(result))),
        None => Err(refusal),
    }
}
