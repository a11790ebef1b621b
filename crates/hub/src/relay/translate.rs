//! Translates failures of a server into refusals for the caller.

use trunkline_client::{Error, ErrorResponse, RequestDelivery};
use trunkline_config::ServerName;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{CallToolResult, InputRequest};
use trunkline_protocol::{JsonWriter, Method, RawJson, Refusal, error_code};
use trunkline_server::{HandlerOutcome, IncomingCall};

use super::RelayRequest;
use super::incompatibility::RevisionPair;
use crate::upstream::{FailureKind, UpstreamFailure, UpstreamUnavailable, exchange_problem, headline};

/// The request that failed, and the revisions of its two ends.
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

/// Builds a refusal with the server, the reason and whether a retry may help.
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

/// Refuses a call of which the server has not listed its items in time. The cause is left out: it is for the
/// operator.
pub(crate) fn not_listed_refusal(server: &ServerName, failure: Option<&UpstreamFailure>) -> Refusal {
    match failure.map(|failure| failure.kind) {
        Some(FailureKind::NeedsAuth) => {
            let known = failure.and_then(|failure| failure.for_callers.as_deref());
            let problem = format!("unavailable: {}", known.unwrap_or("it requires authorization"));
            failure_refusal(server, "upstream_auth", &problem, false)
        }
        Some(FailureKind::Unreachable | FailureKind::Lost) => failure_refusal(
            server,
            "unreachable",
            "unavailable: it could not be connected to; try again later",
            true,
        ),
        None => failure_refusal(
            server,
            "starting",
            "is still starting and has not listed what it has; try again",
            true,
        ),
    }
}

/// Refuses a call that needs a login of its user first.
pub(super) fn login_refusal(server: &ServerName, text: &str) -> Refusal {
    failure_refusal(server, "upstream_auth", &format!("requires a login: {text}"), true)
}

/// Refuses a call until its user has opened a URL: the error −32042 of
/// [revision 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
pub(super) fn url_required_refusal(server: &ServerName, url: &str, elicitation_id: &str) -> Refusal {
    let message = format!("Log in to `{server}` to continue.");
    let mut data = JsonWriter::with_capacity(256);
    data.open_object();
    data.plain_key("elicitations");
    data.open_array();
    data.open_object();
    for (key, text) in
        [("mode", "url"), ("elicitationId", elicitation_id), ("url", url), ("message", &*message)]
    {
        data.plain_key(key);
        data.string(text);
    }
    data.close_object();
    data.close_array();
    data.close_object();
    let problem =
        format!("Server `{server}` requires a login. Open this link in a browser, and then try again: {url}");
    Refusal::relayed(error_code::URL_ELICITATION_REQUIRED, problem, Some(data.into_raw()))
}

/// Refuses a call for which there is no connection.
pub(super) fn unavailable_refusal(server: &ServerName, unavailable: &UpstreamUnavailable) -> Refusal {
    let (reason, is_retryable) = match unavailable {
        UpstreamUnavailable::Failed(failure, _) => match failure.kind {
            FailureKind::NeedsAuth => ("upstream_auth", false),
            FailureKind::Unreachable => ("unreachable", true),
            FailureKind::Lost => ("upstream_lost", true),
        },
        UpstreamUnavailable::NeedsAuth(_) => ("upstream_auth", false),
        UpstreamUnavailable::Full(_) | UpstreamUnavailable::AllInUse(_) => ("too_many", true),
        UpstreamUnavailable::Disabled => ("disabled", false),
        UpstreamUnavailable::Disconnected => ("disconnected", false),
        UpstreamUnavailable::Removed => ("removed", false),
    };
    failure_refusal(server, reason, &format!("unavailable: {}", unavailable.headline()), is_retryable)
}

/// Translates an error of the client into a refusal for the caller.
fn error_refusal(context: &FailureContext<'_>, error: &Error) -> Refusal {
    match error {
        Error::ErrorResponse(refused) => forwarded_refusal(context, refused),
        Error::InputDeclined(refusal) => Refusal::INTERNAL.with_message(format!(
            "a question of upstream `{}` was not answered: {refusal}",
            context.revisions.server
        )),
        Error::TimedOut { after } => {
            // The server may have run the call, or may still run it.
            context.failure_refusal("timeout", &format!("gave no answer within {after:?}"), false)
        }
        Error::Unauthorized { .. } => {
            context.failure_refusal("upstream_auth", "wants other credentials", false)
        }
        // The reason is for the operator; to the caller it could name a URL of the network behind the hub.
        Error::Authorization(error) => {
            let problem = exchange_problem(error).map(|problem| format!("unavailable: {problem}"));
            let problem =
                problem.as_deref().unwrap_or("requires an authorization that the hub could not obtain");
            context.failure_refusal("upstream_auth", problem, false)
        }
        Error::Closed { cause, delivery, .. } => {
            let problem = format!("was lost: {}", headline(cause));
            context.failure_refusal("upstream_lost", &problem, *delivery == RequestDelivery::NotSent)
        }
        Error::Status { delivery, .. } => {
            let problem = error.to_string();
            let problem = problem.trim_start_matches("the server ");
            context.failure_refusal("unreachable", problem, *delivery == RequestDelivery::NotSent)
        }
        Error::Unreachable(unreachable) => context.failure_refusal(
            "unreachable",
            &format!("unavailable: {}", headline(&unreachable.cause)),
            true,
        ),
        Error::Malformed(problem) => context.failure_refusal(
            "upstream_protocol",
            &format!("does not keep to the protocol: {problem}"),
            false,
        ),
        Error::TooLong { limit } => context.failure_refusal(
            "upstream_protocol",
            &format!(
                "sent a message of more than {limit} bytes; the operator can raise `--max-upstream-message`"
            ),
            false,
        ),
        Error::Unsupported(problem) => {
            context.revisions.unsupported_refusal(context.request.method.as_str(), problem)
        }
        Error::Invalid(problem) => Refusal::INVALID_PARAMS.with_message(problem.clone()),
        other => context.failure_refusal("unreachable", &other.to_string(), false),
    }
}

/// Forwards a server's error response; errors about the hop between hub and server are translated.
fn forwarded_refusal(context: &FailureContext<'_>, refused: &ErrorResponse) -> Refusal {
    let required = refused.data.as_ref().and_then(|data| data.members().ok()?.take("requiredCapabilities"));
    let missing =
        |required: &RawJson| context.revisions.missing_capability_refusal(required, None, &refused.message);
    match (refused.code, context.uri()) {
        (error_code::MISSING_CAPABILITY, _) => missing(&required.unwrap_or(RawJson::EMPTY_OBJECT)),
        (error_code::URL_ELICITATION_REQUIRED, _) => {
            let url_request = InputRequest::url("", "");
            context.revisions.missing_capability_refusal(
                &url_request.required_capability(),
                Some(&url_request),
                &refused.message,
            )
        }
        (error_code::HEADER_MISMATCH | error_code::UNSUPPORTED_VERSION, _) => context.failure_refusal(
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
            // From a trunkline server of a revision without an error code for it.
            Some(required) => missing(&required),
            None => refused.clone().into_refusal(),
        },
    }
}

/// Reports whether an "invalid params" error is about this resource being absent.
fn names_resource(refused: &ErrorResponse, uri: &str) -> bool {
    let is_invalid = refused.code == Refusal::INVALID_PARAMS.code(trunkline_protocol::Era::Modern);
    let named = refused.data.as_ref().and_then(|data| data.members().ok()?.text("uri"));
    is_invalid && named.is_some_and(|named| named == uri)
}

/// Answers with the refusal for an error. A declined input request of a tool becomes a tool result, which the model
/// can read.
pub(super) fn error_answer(
    context: &FailureContext<'_>,
    error: &Error,
    call: &IncomingCall,
) -> Result<HandlerOutcome, Refusal> {
    let refusal = error_refusal(context, error);
    match (error, call.method) {
        (Error::InputDeclined(_), Method::ToolsCall) => {
            Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(refusal.to_string()))))
        }
        _ => refusal_answer(refusal, call),
    }
}

/// Answers with a refusal, or with a tool result if the caller's revision has no error code for it.
pub(super) fn refusal_answer(refusal: Refusal, call: &IncomingCall) -> Result<HandlerOutcome, Refusal> {
    let as_result =
        (call.method == Method::ToolsCall).then(|| refusal.as_tool_result(call.context.revision()));
    match as_result.flatten() {
        Some(result) => Ok(HandlerOutcome::Done(ServerResult::Tool(result))),
        None => Err(refusal),
    }
}
