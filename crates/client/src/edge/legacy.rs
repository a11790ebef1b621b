//! Revisions up to 2025-11-25: a handshake, a session, and input requests that are JSON-RPC requests of the server.
//!
//! See [Lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).

use bytes::Bytes;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{
    ClientCapabilities, ElicitAction, Implementation, InputRequest, InputResponse, ServerCapabilities,
};
use trunkline_protocol::{
    Era, JsonWriter, LoggingLevel, Method, RawJson, Refusal, Request, RequestId, Revision, emit, error_code,
    meta, shorten,
};

use super::{InputRequestResult, RequestExtras, RequiredInput};
use crate::call::{AttachedInput, ClientCall, InputPayload};
use crate::client_transport::{HeaderMirror, InputRecipient, OutgoingMessage, OutgoingRequest};
use crate::connect::ServerDescription;
use crate::error::{Error, ErrorResponse};

/// The edge of a legacy session.
#[derive(Debug)]
pub(crate) struct LegacyEdge {
    revision: Revision,
}

impl LegacyEdge {
    pub(crate) fn new(revision: Revision) -> Self {
        Self { revision }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn write(
        &self,
        id: u64,
        call: &ClientCall,
        extras: &RequestExtras<'_>,
    ) -> Result<OutgoingRequest, Error> {
        // In a session, only a call that required URL elicitations is repeated with responses. Preset responses
        // have no form here.
        if let Some(AttachedInput::Resumed(_, input)) = extras.input {
            check_accepted(input)?;
        }
        let (wants_progress, dialect) = (call.wants_progress(), Dialect::of(self.revision));
        let body = emit::numbered_request(id, &call.method, call.encoded_size_hint(), |writer| {
            writer.open_object();
            for (key, value) in call.params.iter() {
                if dialect.completion_context
                    || call.known_method != Some(Method::Complete)
                    || key != "context"
                {
                    writer.member(key, value);
                }
            }
            if wants_progress || !call.meta.is_empty() {
                writer.plain_key("_meta");
                writer.open_object();
                if wants_progress {
                    writer.plain_key(meta::PROGRESS_TOKEN);
                    writer.unsigned(id);
                }
                call.meta.write_into(writer);
                writer.close_object();
            }
            writer.close_object();
        });
        let mirror = HeaderMirror::Version(self.revision);
        let (method, caller_token) = (call.method.clone(), call.caller_token.clone());
        Ok(OutgoingRequest { id, method, body, mirror, recipient: extras.recipient, caller_token })
    }

    pub(super) fn roots_changed(&self) -> OutgoingMessage {
        let body = emit::bare_notification("notifications/roots/list_changed");
        OutgoingMessage {
            body,
            mirror: HeaderMirror::Version(self.revision),
            in_reply_to: None,
            is_for_channels: false,
        }
    }

    pub(super) fn required_input(
        error: &ErrorResponse,
        capabilities: &ClientCapabilities,
    ) -> Option<RequiredInput> {
        let input_requests = required_url_elicitations(error).filter(|_| capabilities.url())?;
        Some((input_requests, Bytes::new()))
    }
}

/// Parses the URL elicitations that are required before a call is repeated (error -32042); they become input
/// requests.
///
/// See [URL Elicitation Required Error](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
fn required_url_elicitations(error: &ErrorResponse) -> Option<Vec<(String, InputRequest)>> {
    if error.code != error_code::URL_ELICITATION_REQUIRED {
        return None;
    }
    let elicitations = error.data.as_ref()?.members().ok()?.get("elicitations")?.elements().ok()?;
    let input_requests: Option<Vec<_>> = elicitations
        .iter()
        .enumerate()
        .map(|(index, elicitation)| {
            let input_request = InputRequest::read("elicitation/create", elicitation.members().ok()?).ok()?;
            matches!(input_request, InputRequest::Url(_)).then(|| (format!("u{}", index + 1), input_request))
        })
        .collect();
    input_requests.filter(|input_requests| !input_requests.is_empty())
}

/// Checks that all URL elicitations were accepted; otherwise the call is not repeated.
fn check_accepted(input: &InputPayload) -> Result<(), Error> {
    let agreed = |answer: &InputResponse| matches!(answer, InputResponse::Elicit(result) if result.action == ElicitAction::Accept);
    let refused = || Error::InputDeclined(Refusal::INTERNAL.with_message("the page was not agreed to"));
    let check = |answer: Result<InputResponse, Refusal>| match answer {
        Ok(answer) if agreed(&answer) => Ok(()),
        Ok(_) => Err(refused()),
        Err(refusal) => Err(Error::InputDeclined(refusal)),
    };
    match input {
        InputPayload::Typed(answers) => answers.iter().try_for_each(|(_, answer)| check(answer.clone())),
        InputPayload::Verbatim(answers) => {
            let elicitation = InputRequest::url("", "");
            answers.iter().try_for_each(|(_, raw)| {
                check(elicitation.read_response(raw).map_err(|_| Refusal::INVALID_PARAMS))
            })
        }
    }
}

/// Parses an input request, or returns why it is refused.
pub(super) fn parse_request(request: Request, capabilities: &ClientCapabilities) -> InputRequestResult {
    let mut params = request.params.members;
    // The handler may need the rest of `_meta`; the progress token is for the client alone, which reports no
    // progress.
    if let Some(mut meta) = request.params.meta {
        meta.take(meta::PROGRESS_TOKEN);
        if !meta.is_empty() {
            params.set("_meta", meta.to_raw());
        }
    }
    let input_request = InputRequest::read(&request.method, params).map_err(|refusal| (refusal, None))?;
    if input_request.is_supported_by(capabilities) {
        return Ok(input_request);
    }
    let declares_some = match &input_request {
        InputRequest::Form(_) | InputRequest::Url(_) => capabilities.form() || capabilities.url(),
        InputRequest::Sampling(_) => capabilities.sampling(),
        InputRequest::Roots => false,
    };
    let problem = format!("this client did not declare what `{}` needs", shorten(&request.method));
    let refusal = match declares_some {
        true => Refusal::INVALID_PARAMS.with_message(problem),
        false => Refusal::METHOD_NOT_FOUND.with_message(problem),
    };
    Err((refusal, Some(Box::new(input_request))))
}

/// Encodes the response to an input request, or the refusal.
pub(super) fn write_response(
    revision: Revision,
    id: &RequestId,
    answer: Result<&InputResponse, &Refusal>,
) -> OutgoingMessage {
    let written = match answer {
        Ok(answer) => {
            let mut writer = JsonWriter::with_capacity(128);
            match answer.write(Dialect::of(revision), &mut writer) {
                Ok(()) => Ok(writer.into_raw()),
                Err(lacks) => {
                    Err(Refusal::INTERNAL.with_message(format!("the answer cannot be said: {lacks}")))
                }
            }
        }
        Err(refusal) => Err(refusal.clone()),
    };
    let body = match written {
        Ok(result) => emit::result(id, result.as_str().len(), |writer| writer.raw(&result)),
        Err(refusal) => emit::error(Some(id), &refusal, revision),
    };
    OutgoingMessage {
        body,
        mirror: HeaderMirror::Version(revision),
        in_reply_to: Some(id.clone()),
        is_for_channels: false,
    }
}

/// Creates the call that sets the log level.
///
/// See [Setting Log Level](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging#setting-log-level).
pub(super) fn set_level_call(level: LoggingLevel) -> ClientCall {
    let mut call = ClientCall::with_method(Method::SetLevel);
    call.params.set("level", RawJson::from_text(level.as_str()));
    call
}

/// Creates the call that subscribes to a resource, or unsubscribes from it.
///
/// See [Resources, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
pub(crate) fn resource_call(method: Method, uri: &str) -> ClientCall {
    let mut call = ClientCall::with_method(method);
    call.params.set("uri", RawJson::from_text(uri));
    call
}

/// Encodes the `initialize` request.
///
/// See [Initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
pub(crate) fn initialize(
    id: u64,
    revision: Revision,
    identity: &Implementation,
    capabilities: &ClientCapabilities,
) -> OutgoingRequest {
    let method = Method::Initialize.as_str();
    let body = emit::numbered_request(id, method, 256, |writer| {
        writer.open_object();
        writer.plain_key("protocolVersion");
        writer.string(revision.as_str());
        writer.member("capabilities", &capabilities.for_revision(revision));
        writer.plain_key("clientInfo");
        identity.write(Dialect::of(revision), writer);
        writer.close_object();
    });
    OutgoingRequest {
        id,
        method: method.into(),
        body,
        mirror: HeaderMirror::Nothing,
        recipient: InputRecipient::None,
        caller_token: None,
    }
}

/// Encodes the `notifications/initialized` notification.
pub(crate) fn initialized(revision: Revision) -> OutgoingMessage {
    let body = emit::bare_notification("notifications/initialized");
    OutgoingMessage {
        body,
        mirror: HeaderMirror::Version(revision),
        in_reply_to: None,
        is_for_channels: false,
    }
}

/// Parses the result of `initialize`.
///
/// # Errors
/// Returns a message if the result is not usable.
pub(crate) fn read_initialized(result: &RawJson) -> Result<ServerDescription, String> {
    let members =
        result.members().map_err(|error| format!("the answer to `initialize` is not usable: {error}"))?;
    let Some(version) = members.text("protocolVersion") else {
        return Err("the server answered `initialize` without a `protocolVersion`".to_owned());
    };
    let revision = match Revision::parse(&version) {
        Some(revision) if revision.era() == Era::Legacy => revision,
        // A pre-release name that some servers still answer with; its wire format is that of the first release.
        None if version == "2024-10-07" => Revision::V2024_11_05,
        _ => return Err(format!("the server answered `initialize` with revision `{}`", shorten(&version))),
    };
    let capabilities = members.get("capabilities").cloned().unwrap_or(RawJson::EMPTY_OBJECT);
    Ok(ServerDescription {
        revision,
        capabilities: ServerCapabilities::read(&capabilities)
            .map_err(|error| format!("the server's capabilities are not usable: {error}"))?,
        // A malformed `serverInfo` is no reason to refuse the connection.
        identity: members
            .get("serverInfo")
            .and_then(|raw| Implementation::read_repaired(&raw.to_owned_buffer()).ok())
            .map(|repaired| repaired.item),
        instructions: members.text("instructions").map(Into::into),
        lists_legacy: false,
    })
}
