//! Revisions from 2026-07-28 on: every request is stateless, and a server requests input by its result.
//!
//! See [Statelessness](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#statelessness) and
//! [Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#client-requirements-basic-workflow).

use bytes::Bytes;
use trunkline_protocol::codec::{Dialect, RawResult};
use trunkline_protocol::model::{ClientCapabilities, Implementation, InputRequest, ServerCapabilities};
use trunkline_protocol::{
    Era, JsonObject, JsonWriter, Method, RawJson, Refusal, Request, Revision, emit, meta, shorten,
};

use super::{RequestExtras, RequiredInput};
use crate::call::{AttachedInput, ClientCall, InputPayload, InputResponses};
use crate::client_transport::{HeaderMirror, InputRecipient, OutgoingRequest};
use crate::connect::ServerDescription;
use crate::error::Error;
use crate::subscribe::ChangeFilter;

/// The edge of a stateless server.
#[derive(Debug)]
pub(crate) struct ModernEdge {
    revision: Revision,
    /// The beginning of every request's `_meta`, encoded once, up to the capabilities, which come next.
    meta_prefix: String,
    /// The capabilities, encoded once.
    capabilities: RawJson,
}

impl ModernEdge {
    pub(crate) fn new(
        revision: Revision,
        identity: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Self {
        let mut writer = JsonWriter::with_capacity(256);
        writer.open_object();
        writer.plain_key(meta::PROTOCOL_VERSION);
        writer.string(revision.as_str());
        writer.plain_key(meta::CLIENT_INFO);
        identity.write(Dialect::of(revision), &mut writer);
        writer.plain_key(meta::CLIENT_CAPABILITIES);
        let meta_prefix = writer.into_string();
        Self { revision, meta_prefix, capabilities: capabilities.for_revision(revision) }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the refusal for a JSON-RPC request of the server, which this era does not have
    /// ([Message Patterns](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#message-patterns)).
    pub(super) fn refuse_request(&self, request: &Request) -> Refusal {
        let (method, revision) = (shorten(&request.method), self.revision);
        let problem = format!(
            "`{method}`: revision {revision} has no requests from servers; return a result of type `input_required` instead"
        );
        Refusal::METHOD_NOT_FOUND.with_message(problem)
    }

    pub(super) fn write(
        &self,
        id: u64,
        call: &ClientCall,
        extras: RequestExtras<'_>,
    ) -> Result<OutgoingRequest, Error> {
        let attached_input = match extras.input {
            Some(AttachedInput::Resumed(state, InputPayload::Typed(answers))) => {
                (write_responses(answers)?, state.as_ref())
            }
            Some(AttachedInput::Resumed(state, InputPayload::Verbatim(answers))) => {
                (write_raw_responses(answers), state.as_ref())
            }
            Some(AttachedInput::Preset(answers)) => (write_raw_responses(answers), None),
            None => (None, None),
        };
        let hint = call.encoded_size_hint() + self.meta_prefix.len() + self.capabilities.as_str().len() + 64;
        let body = emit::numbered_request(id, &call.method, hint, |writer| {
            writer.open_object();
            call.params.write_into(writer);
            let (answers, state) = &attached_input;
            if let Some(answers) = answers {
                writer.member("inputResponses", answers);
            }
            if let Some(state) = state {
                writer.member("requestState", state);
            }
            writer.verbatim(r#""_meta":"#);
            self.write_meta(id, call, &extras, writer);
            writer.close_object();
        });
        let mirror =
            HeaderMirror::Full { revision: self.revision, name: call.mirrored_name(), params: extras.params };
        let (method, caller_token) = (call.method.clone(), call.caller_token.clone());
        Ok(OutgoingRequest { id, method, body, mirror, recipient: InputRecipient::None, caller_token })
    }

    /// Writes the `_meta` that every modern request carries.
    ///
    /// See [General fields, `_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta).
    fn write_meta(&self, id: u64, call: &ClientCall, extras: &RequestExtras<'_>, writer: &mut JsonWriter) {
        writer.verbatim(&self.meta_prefix);
        match &call.capabilities {
            Some(capabilities) => writer.raw(&capabilities.for_revision(self.revision)),
            None => writer.raw(&self.capabilities),
        }
        if call.wants_progress() {
            writer.plain_key(meta::PROGRESS_TOKEN);
            writer.unsigned(id);
        }
        if let Some(level) = call.log_level.or(extras.level) {
            writer.plain_key(meta::LOG_LEVEL);
            writer.string(level.as_str());
        }
        call.meta.write_into(writer);
        writer.close_object();
    }

    pub(super) fn required_input(
        method: Option<Method>,
        result: &RawResult,
        capabilities: &ClientCapabilities,
    ) -> Result<Option<RequiredInput>, Error> {
        // Fast path: nearly every result begins with this.
        if result.as_str().starts_with(r#"{"resultType":"complete","#) {
            return Ok(None);
        }
        let members =
            result.shallow_members().map_err(|error| Error::Malformed(format!("the result: {error}")))?;
        let kind = members.get("resultType").map(|kind| kind.as_text().unwrap_or_default());
        match kind.as_deref() {
            None | Some("complete") => Ok(None),
            Some("input_required") if method.is_some_and(Method::may_require_input) => {
                let input_requests = parse_input_requests(members.get("inputRequests"))?;
                if let Some((_, input_request)) =
                    input_requests.iter().find(|(_, request)| !request.is_supported_by(capabilities))
                {
                    let problem =
                        format!("it asks `{}`, which the client did not offer", input_request.method());
                    return Err(Error::Malformed(problem));
                }
                let state = members.get("requestState").map(RawJson::to_owned_buffer);
                let state = state.map_or_else(Bytes::new, |state| state.text().clone().into_bytes());
                if input_requests.is_empty() && state.is_empty() {
                    let problem = "it wants to be asked again, and gives neither question nor state";
                    return Err(Error::Malformed(problem.to_owned()));
                }
                Ok(Some((input_requests, state)))
            }
            Some("input_required") => {
                Err(Error::Malformed("the server asks within a request that has no questions".to_owned()))
            }
            Some(other) => Err(Error::Malformed(format!("unknown type of result `{}`", shorten(other)))),
        }
    }
}

fn parse_input_requests(requests: Option<&RawJson>) -> Result<Vec<(String, InputRequest)>, Error> {
    let Some(requests) = requests else { return Ok(Vec::new()) };
    let malformed = |key: &str, problem: &dyn std::fmt::Display| {
        Error::Malformed(format!("the question `{}`: {problem}", shorten(key)))
    };
    let requests = requests.members().map_err(|error| malformed("inputRequests", &error))?;
    let read = |(key, request): (&trunkline_protocol::ByteString, &RawJson)| {
        // Copied: an input request lives until the user decides, and must not keep the whole message in memory.
        let request = request.to_owned_buffer().members().map_err(|error| malformed(key, &error))?;
        let method = request.text("method").unwrap_or_default();
        let params = match request.get("params") {
            Some(params) => params.members().map_err(|error| malformed(key, &error))?,
            None => Default::default(),
        };
        let input_request =
            InputRequest::read(&method, params).map_err(|refusal| malformed(key, &refusal))?;
        Ok((key.to_string(), input_request))
    };
    requests.iter().map(read).collect()
}

/// Encodes responses as the members of one object; `None` without responses.
fn write_responses(answers: &InputResponses) -> Result<Option<RawJson>, Error> {
    if answers.is_empty() {
        return Ok(None);
    }
    let mut writer = JsonWriter::with_capacity(128);
    writer.open_object();
    for (key, answer) in answers {
        // `inputResponses` cannot express a refusal, so the call is not repeated.
        let answer = answer.as_ref().map_err(|refusal| Error::InputDeclined(refusal.clone()))?;
        writer.key(key);
        answer
            .write(Dialect::NEWEST, &mut writer)
            .map_err(|lacks| Error::Invalid(format!("the answer cannot be said: {lacks}")))?;
    }
    writer.close_object();
    Ok(Some(writer.into_raw()))
}

/// Encodes verbatim responses; `None` without responses.
fn write_raw_responses(answers: &[(String, RawJson)]) -> Option<RawJson> {
    let members = answers.iter().map(|(key, answer)| (key.as_str().into(), answer.clone()));
    (!answers.is_empty()).then(|| members.collect::<JsonObject>().to_raw())
}

/// Creates the `subscriptions/listen` request
/// ([Notification Filter](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter)).
pub(super) fn listen_call(filter: &ChangeFilter) -> ClientCall {
    let mut call = ClientCall::with_method(Method::Listen);
    call.params.set("notifications", filter.to_raw());
    call
}

/// Parses the result of `server/discover`.
///
/// See [DiscoverResult](https://modelcontextprotocol.io/specification/2026-07-28/server/discover#discoverresult).
///
/// # Errors
/// Returns a message if the result is not usable.
pub(crate) fn parse_discover_result(
    result: &RawJson,
    revision: Revision,
) -> Result<ServerDescription, String> {
    let members = result.members().map_err(|error| format!("the answer is not usable: {error}"))?;
    let capabilities = members.get("capabilities").map_or(RawJson::EMPTY_OBJECT, RawJson::to_owned_buffer);
    let server = members.get("_meta").and_then(|meta| meta.members().ok()).and_then(|mut meta| {
        let server = meta.take(meta::SERVER_INFO)?;
        Implementation::read_repaired(&server.to_owned_buffer()).ok().map(|repaired| repaired.item)
    });
    Ok(ServerDescription {
        revision,
        capabilities: ServerCapabilities::read(&capabilities)
            .map_err(|error| format!("the server's capabilities are not usable: {error}"))?,
        identity: server,
        instructions: members.text("instructions").map(Into::into),
        lists_legacy: lists_legacy(&members),
    })
}

/// Reports whether a server lists legacy revisions
/// ([Backward Compatibility](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions)).
fn lists_legacy(members: &JsonObject) -> bool {
    let listed =
        members.get("supportedVersions").and_then(|listed| listed.elements().ok()).unwrap_or_default();
    let known = listed.iter().filter_map(|name| Revision::parse(&name.as_text()?));
    known.into_iter().any(|revision| revision.era() == Era::Legacy)
}
