use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_auth::authorizer::CallerToken;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_protocol::{ByteString, JsonObject, LoggingLevel, Method, RawJson, meta};

use super::observer::CallObservers;
use super::{
    CallObserver, ClientContinuation, CompletionRequest, InputResponses, LogMessage, ProgressUpdate,
};
use crate::client_transport::InputRecipient;

/// One request to a server, whatever its era.
///
/// [`Client::call`](crate::Client::call) and its siblings create one and run it. Create one yourself for
/// [`Client::step`](crate::Client::step), which returns input requests to its caller.
#[must_use = "a call does nothing until it is run"]
#[derive(Debug)]
pub struct ClientCall {
    pub(crate) method: ByteString,
    pub(crate) known_method: Option<Method>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) name: Option<ByteString>,
    pub(crate) params: JsonObject,
    pub(crate) meta: JsonObject,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) capabilities: Option<ClientCapabilities>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) observers: CallObservers,
    /// Boxed, like all fields that few calls have, since calls are moved often.
    pub(crate) supplied_input: Option<Box<SuppliedInput>>,
    /// Whether input requests that arrive in quick succession are collected into one round.
    pub(crate) batches_requests: bool,
    /// The caller, if several share one client.
    pub(crate) caller_id: u64,
    /// Whether the session is opened again if the server has lost it.
    pub(crate) may_reopen: bool,
    /// Why the call is invalid; returned to its caller instead of a result.
    pub(crate) invalid_reason: Option<Box<str>>,
    /// The token of the caller that it is made for, if such tokens are exchanged.
    pub(crate) caller_token: Option<CallerToken>,
    /// Its number for an observer of the wire.
    pub(crate) number: Option<NonZeroU64>,
}

/// Input that is sent with a call.
#[derive(Debug)]
pub(crate) enum SuppliedInput {
    /// Responses to input requests of an earlier step.
    Responses(ClientContinuation, InputResponses),
    /// The same, forwarded verbatim; the bytes are those of a portable continuation.
    RawResponses(Bytes, RawInputResponses),
    /// Responses that the caller supplies before the server requests input.
    Preset(RawInputResponses),
}

/// Verbatim responses, by the keys of their input requests.
pub(crate) type RawInputResponses = Vec<(String, RawJson)>;

impl ClientCall {
    /// Calls a tool with arguments, a JSON object.
    pub fn tool(name: impl Into<String>, arguments: impl Into<RawJson>) -> Self {
        Self::with_method(Method::ToolsCall).with_name("name", name.into()).with_arguments(arguments.into())
    }

    /// Fetches a prompt with arguments, a JSON object of strings.
    pub fn prompt(name: impl Into<String>, arguments: impl Into<RawJson>) -> Self {
        Self::with_method(Method::PromptsGet).with_name("name", name.into()).with_arguments(arguments.into())
    }

    /// Reads a resource.
    pub fn read(uri: impl Into<String>) -> Self {
        Self::with_method(Method::ResourcesRead).with_name("uri", uri.into())
    }

    /// Requests completions of an argument.
    pub fn complete(completion: CompletionRequest) -> Self {
        let CompletionRequest { params, invalid_reason } = completion;
        Self { params, invalid_reason, ..Self::with_method(Method::Complete) }
    }

    /// Makes any other request, with parameters that are a JSON object; the members of the protocol are added.
    pub fn other(method: impl Into<String>, params: impl Into<RawJson>) -> Self {
        let method = method.into();
        let known = Method::ALL.into_iter().find(|known| known.as_str() == method);
        let mut call = Self::with_method(Method::Ping);
        call.known_method = known;
        call.method = method.into();
        match params.into().members() {
            Ok(mut params) => {
                call.name = known
                    .and_then(Method::name_header_param)
                    .and_then(|member| params.get(member)?.to_text());
                if let Some(meta) = params.take("_meta").and_then(|meta| meta.members().ok()) {
                    let others = meta.iter().filter(|(key, _)| !meta::is_hop_by_hop(key));
                    call.meta = others.map(|(key, value)| (key.clone(), value.clone())).collect();
                }
                call.params = params;
            }
            Err(error) => {
                call.invalid_reason = Some(format!("the parameters are not usable: {error}").into());
            }
        }
        call
    }

    /// Forwards a request of another client, with its parameters and its `_meta`.
    ///
    /// Hop-by-hop members are left out: input responses, request state, and the protocol's own members of `_meta`.
    pub fn forwarded(method: Method, mut params: JsonObject, meta: Option<&JsonObject>) -> Self {
        for own in ["_meta", "inputResponses", "requestState"] {
            params.take(own);
        }
        let name = method.name_header_param().and_then(|member| params.get(member)?.to_text());
        let others = meta.into_iter().flat_map(JsonObject::iter).filter(|(key, _)| !meta::is_hop_by_hop(key));
        let meta = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { name, params, meta, ..Self::with_method(method) }
    }

    /// Copies the call without its input, to repeat it with other input.
    pub(crate) fn without_input(&self) -> Self {
        Self {
            method: self.method.clone(),
            known_method: self.known_method,
            name: self.name.clone(),
            params: self.params.clone(),
            meta: self.meta.clone(),
            log_level: self.log_level,
            capabilities: self.capabilities.clone(),
            timeout: self.timeout,
            observers: self.observers.clone(),
            supplied_input: None,
            batches_requests: self.batches_requests,
            caller_id: self.caller_id,
            may_reopen: self.may_reopen,
            invalid_reason: self.invalid_reason.clone(),
            caller_token: self.caller_token.clone(),
            number: self.number,
        }
    }

    pub(crate) fn with_method(method: Method) -> Self {
        Self {
            method: ByteString::from_static(method.as_str()),
            known_method: Some(method),
            name: None,
            params: JsonObject::new(),
            meta: JsonObject::new(),
            log_level: None,
            capabilities: None,
            timeout: None,
            observers: CallObservers::default(),
            supplied_input: None,
            batches_requests: false,
            caller_id: 0,
            may_reopen: true,
            invalid_reason: None,
            caller_token: None,
            number: None,
        }
    }

    /// Calls a function for every progress notification.
    pub fn on_progress(mut self, callback: impl Fn(&ProgressUpdate) + Send + Sync + 'static) -> Self {
        self.observers.on_progress(callback);
        self
    }

    /// Calls a function for the log messages of this call, where they can be attributed to it.
    pub fn on_log(mut self, callback: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        self.observers.on_log(callback);
        self
    }

    /// Requests log messages of this level and above, in revisions where the level is sent with each call.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets the timeout without any progress; every progress notification restarts it.
    pub fn timeout(mut self, silent_for: Duration) -> Self {
        self.timeout = Some(silent_for);
        self
    }

    /// Adds a member to `_meta`, such as `traceparent`.
    ///
    /// Keys that are reserved by the protocol are ignored, since they are written for each request.
    pub fn meta(mut self, key: impl Into<String>, value: RawJson) -> Self {
        let key = key.into();
        if !meta::is_hop_by_hop(&key) {
            self.meta.set(key, value);
        }
        self
    }

    /// Removes a member of `_meta`, of those that a forwarded request has.
    pub fn without_meta(mut self, key: &str) -> Self {
        self.meta.take(key);
        self
    }

    /// Declares other capabilities than the client's own for this call. A legacy session has declared its
    /// capabilities for good.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Resumes a call that was suspended by input requests. It has to be the same call.
    pub fn resume(mut self, continuation: ClientContinuation, answers: InputResponses) -> Self {
        self.supplied_input = Some(Box::new(SuppliedInput::Responses(continuation, answers)));
        self
    }

    /// Resumes a call that was suspended by input requests, with the bytes of its portable continuation and
    /// verbatim responses. It has to be the same call.
    pub fn resume_raw(mut self, state: Bytes, answers: Vec<(String, RawJson)>) -> Self {
        self.supplied_input = Some(Box::new(SuppliedInput::RawResponses(state, answers)));
        self
    }

    /// Supplies responses before the server requests input, by the keys of the input requests. They are ignored by
    /// servers that send input requests of their own (legacy era), which elicit as usual.
    pub fn preset_responses(mut self, answers: Vec<(String, RawJson)>) -> Self {
        self.supplied_input = (!answers.is_empty()).then(|| Box::new(SuppliedInput::Preset(answers)));
        self
    }

    /// Sets which of several callers of one client makes the call, by a number. By default all are the same.
    ///
    /// On transports that do not attribute an input request to a call, a [step](crate::Client::step) receives it
    /// only if no other caller could have caused it. If another could, none of them does, and the client's
    /// [`InputHandler`](crate::InputHandler) answers it as if no call were running.
    pub fn caller_id(mut self, number: u64) -> Self {
        self.caller_id = number;
        self
    }

    /// Makes the call with what the token of a caller is exchanged for, on a client that exchanges tokens (RFC 8693);
    /// without a token of its own, a call uses the latest one. Only Streamable HTTP authorizes each request: over any other
    /// transport the call fails.
    pub fn caller_token(mut self, token: CallerToken) -> Self {
        self.caller_token = Some(token);
        self
    }

    /// Sets the number of the call for an [observer](crate::ClientBuilder::observer) of the wire.
    pub fn number(mut self, number: Option<NonZeroU64>) -> Self {
        self.number = number;
        self
    }

    /// Sets the observer of everything that the server sends during the call.
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observers.set(observer);
        self
    }

    fn with_name(mut self, member: &'static str, name: String) -> Self {
        self.params.set(ByteString::from_static(member), RawJson::from_text(&name));
        self.name = Some(name.into());
        self
    }

    fn with_arguments(mut self, arguments: RawJson) -> Self {
        if arguments.kind() != trunkline_protocol::json::JsonKind::Object {
            self.invalid_reason = Some("the arguments must be a JSON object".into());
        }
        self.params.set(ByteString::from_static("arguments"), arguments);
        self
    }

    /// Returns the value of the `Mcp-Name` header.
    pub(crate) fn mirrored_name(&self) -> Option<ByteString> {
        self.known_method.and_then(Method::name_header_param).and(self.name.clone())
    }

    pub(crate) fn allows_input_requests(&self) -> bool {
        self.known_method.is_some_and(Method::may_require_input)
    }

    /// Returns the recipient of input requests within the call, given the declared capabilities.
    pub(crate) fn input_recipient(&self, declared: &ClientCapabilities) -> InputRecipient {
        let can_answer = declared.form() || declared.url() || declared.sampling() || declared.roots();
        match (self.allows_input_requests(), can_answer, self.batches_requests) {
            (false, ..) => InputRecipient::None,
            (true, false, _) => InputRecipient::Undeclared,
            (true, true, false) => InputRecipient::Handler,
            // The caller of a step receives the input requests itself.
            (true, true, true) => InputRecipient::Caller(self.caller_id),
        }
    }

    /// Reports whether to send a progress token. All calls that do work send one, since progress also shows that
    /// the server is alive.
    pub(crate) fn wants_progress(&self) -> bool {
        self.allows_input_requests() || self.observers.wants_progress()
    }

    /// Estimates the length of the encoded request.
    pub(crate) fn encoded_size_hint(&self) -> usize {
        self.params.iter().map(|(key, value)| key.len() + value.as_str().len() + 4).sum::<usize>() + 64
    }
}
