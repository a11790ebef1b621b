//! What went wrong with a server, in words for its caller.

use trunkline_client::{Error, ErrorResponse};
use trunkline_config::ServerName;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{CallToolResult, InputRequest};
use trunkline_protocol::{JsonWriter, Method, RawJson, Refusal, error_code};
use trunkline_server::{HandlerOutcome, IncomingCall};

use super::RelayRequest;
use super::incompatibility::RevisionPair;
use crate::upstream::{FailureKind, UpstreamUnavailable, headline};

/// What was asked, and of whom.
pub(super) struct FailureContext<'a> {
    pub(super) revisions: &'a RevisionPair,
    pub(super) request: &'a RelayRequest,
}

impl FailureContext<'_> {
    fn failure_refusal(&self, reason: &str, problem: &str, is_retryable: bool) -> Refusal {
        failure_refusal(&self.revisions.server, reason, problem, is_retryable)
    }

    fn uri(&self) -> Option<String> {
        let is_read = self.request.method == Method::ResourcesRead;
        is_read.then(|| self.request.params().text("uri")).flatten().map(|uri| uri.to_string())
    }
}

/// Says what failed at which server.
fn failure_refusal(server: &ServerName, reason: &str, problem: &str, is_retryable: bool) -> Refusal {
    let mut data = JsonWriter::with_capacity(96);
    data.open_object();
    data.plain_key("upstream");
    data.string(server.as_str());
    data.plain_key("reason");
    data.string(reason);
    data.plain_key("retryable");
    data.boolean(is_retryable);
    data.close_object();
    let message = format!("upstream `{}` {problem}", server);
    Refusal::INTERNAL.with_message(message).with_data(data.into_raw())
}

/// Says that a server has not listed what it has within what a call may wait. Why it failed is for its operator to read.
pub(crate) fn not_listed_refusal(server: &ServerName, has_failed: bool) -> Refusal {
    match has_failed {
        true => failure_refusal(
            server,
            "unreachable",
            "unavailable: it could not be connected to; try again later",
            true,
        ),
        false => failure_refusal(
            server,
            "starting",
            "is still starting and has not listed what it has; try again",
            true,
        ),
    }
}

/// Says why there is no connection.
pub(super) fn unavailable_refusal(server: &ServerName, unavailable: &UpstreamUnavailable) -> Refusal {
    let (reason, is_retryable) = match unavailable {
        UpstreamUnavailable::Failed(failure, _) => match failure.kind {
            FailureKind::NeedsAuth => ("upstream_auth", false),
            FailureKind::Unreachable => ("unreachable", true),
            FailureKind::Lost => ("upstream_lost", true),
        },
        UpstreamUnavailable::Full(_) | UpstreamUnavailable::AllInUse(_) => ("too_many", true),
        UpstreamUnavailable::Disabled => ("disabled", false),
        UpstreamUnavailable::Disconnected => ("disconnected", false),
        UpstreamUnavailable::Removed => ("removed", false),
    };
    failure_refusal(server, reason, &format!("unavailable: {}", unavailable.headline()), is_retryable)
}

/// Says what a failure on the way to a server means to its caller.
fn error_refusal(place: &FailureContext<'_>, error: &Error) -> Refusal {
    match error {
        Error::ErrorResponse(refused) => forwarded_refusal(place, refused),
        Error::InputDeclined(refusal) => Refusal::INTERNAL.with_message(format!(
            "a question of upstream `{}` was not answered: {refusal}",
            place.revisions.server
        )),
        Error::TimedOut { after } => {
            place.failure_refusal("timeout", &format!("gave no answer within {after:?}"), true)
        }
        Error::Unauthorized { .. } => {
            place.failure_refusal("upstream_auth", "wants other credentials", false)
        }
        Error::Closed { cause, may_have_run } => {
            place.failure_refusal("upstream_lost", &format!("was lost: {}", headline(cause)), !may_have_run)
        }
        Error::Status { may_have_run, .. } => {
            let problem = error.to_string();
            place.failure_refusal("unreachable", problem.trim_start_matches("the server "), !may_have_run)
        }
        Error::Unreachable(unreachable) => place.failure_refusal(
            "unreachable",
            &format!("unavailable: {}", headline(&unreachable.cause)),
            true,
        ),
        Error::Malformed(problem) => place.failure_refusal(
            "upstream_protocol",
            &format!("does not keep to the protocol: {problem}"),
            false,
        ),
        Error::TooLong { limit } => place.failure_refusal(
            "upstream_protocol",
            &format!("sent a message of more than {limit} bytes"),
            false,
        ),
        Error::Unsupported(problem) => {
            place.revisions.unsupported_refusal(place.request.method.as_str(), problem)
        }
        Error::Invalid(problem) => Refusal::INVALID_PARAMS.with_message(problem.clone()),
        other => place.failure_refusal("unreachable", &other.to_string(), false),
    }
}

/// Carries a server's refusal on; what was about the hop to it is said anew.
fn forwarded_refusal(place: &FailureContext<'_>, refused: &ErrorResponse) -> Refusal {
    let required = refused.data.as_ref().and_then(|data| data.members().ok()?.take("requiredCapabilities"));
    let missing =
        |required: &RawJson| place.revisions.missing_capability_refusal(required, None, &refused.message);
    match (refused.code, place.uri()) {
        (error_code::MISSING_CAPABILITY, _) => missing(&required.unwrap_or(RawJson::EMPTY_OBJECT)),
        (error_code::URL_ELICITATION_REQUIRED, _) => {
            let page = InputRequest::url("", "");
            place.revisions.missing_capability_refusal(
                &page.required_capability(),
                Some(&page),
                &refused.message,
            )
        }
        (error_code::HEADER_MISMATCH | error_code::UNSUPPORTED_VERSION, _) => place.failure_refusal(
            "upstream_protocol",
            &format!("does not keep to the protocol: {}", refused.message),
            false,
        ),
        (error_code::RESOURCE_NOT_FOUND, Some(uri)) => {
            Refusal::resource_not_found(&uri).with_message(refused.message.clone())
        }
        (_, Some(uri)) if names_resource(refused, &uri) => {
            Refusal::resource_not_found(&uri).with_message(refused.message.clone())
        }
        _ => match required {
            // A server of our own, which had no other code for it.
            Some(required) => missing(&required),
            None => refused.clone().into_refusal(),
        },
    }
}

/// Reports whether a refusal of parameters says that it is this resource which is not there.
fn names_resource(refused: &ErrorResponse, uri: &str) -> bool {
    let is_invalid = refused.code == Refusal::INVALID_PARAMS.code(trunkline_protocol::Era::Modern);
    let named = refused.data.as_ref().and_then(|data| data.members().ok()?.text("uri"));
    is_invalid && named.is_some_and(|named| named == uri)
}

/// Answers with what a failure on the way to a server means to its caller. That nobody answered a question of a tool is for
/// the model to read.
pub(super) fn error_answer(
    place: &FailureContext<'_>,
    error: &Error,
    call: &IncomingCall,
) -> Result<HandlerOutcome, Refusal> {
    let refusal = error_refusal(place, error);
    match (error, call.method) {
        (Error::InputDeclined(_), Method::ToolsCall) => {
            Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(refusal.to_string()))))
        }
        _ => refusal_answer(refusal, call),
    }
}

/// Answers with a refusal, or with the result of a tool where the caller's revision has no code for it.
pub(super) fn refusal_answer(refusal: Refusal, call: &IncomingCall) -> Result<HandlerOutcome, Refusal> {
    let said = (call.method == Method::ToolsCall).then(|| refusal.as_tool_result(call.context.revision()));
    match said.flatten() {
        Some(result) => Ok(HandlerOutcome::Done(ServerResult::Tool(result))),
        None => Err(refusal),
    }
}
