use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_protocol::{ByteString, JsonObject, LoggingLevel, Method, RawJson, meta};

use super::observer::CallObservers;
use super::{
    CallObserver, ClientContinuation, CompletionRequest, InputResponses, LogMessage, ProgressUpdate,
};
use crate::client_transport::InputRecipient;

/// One request to a server, whatever its era.
///
/// [`Client::call`](crate::Client::call) and its siblings make one and run it. One is made by hand for
/// [`Client::step`](crate::Client::step), which gives the questions of the server to its caller.
#[must_use = "a call does nothing until it is run"]
#[derive(Debug)]
pub struct ClientCall {
    pub(crate) method: ByteString,
    pub(crate) known_method: Option<Method>,
    /// What the call names: the tool, the prompt or the resource.
    pub(crate) name: Option<ByteString>,
    pub(crate) params: JsonObject,
    pub(crate) meta: JsonObject,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) capabilities: Option<ClientCapabilities>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) observers: CallObservers,
    /// In a box, as are all things that few calls have: calls are moved about.
    pub(crate) supplied_input: Option<Box<SuppliedInput>>,
    /// Whether questions that come right after another are waited for, so that they are given out together.
    pub(crate) batches_requests: bool,
    /// Who made it, of several callers of one client.
    pub(crate) caller_id: u64,
    /// Whether a session that the server forgot is opened again for it.
    pub(crate) may_reopen: bool,
    /// What is wrong with it, which its caller hears instead of an answer.
    pub(crate) invalid_reason: Option<Box<str>>,
}

/// What a call comes with, because questions were answered.
#[derive(Debug)]
pub(crate) enum SuppliedInput {
    /// Answers to questions that were asked before.
    Responses(ClientContinuation, InputResponses),
    /// The same, as somebody else gave them; the bytes are those of a portable continuation.
    RawResponses(Bytes, RawInputResponses),
    /// Answers of somebody who knows the questions before they are asked.
    Preset(RawInputResponses),
}

/// Answers that are carried as they came, by the keys of their questions.
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

    /// Asks what an argument could be completed to.
    pub fn complete(completion: CompletionRequest) -> Self {
        let CompletionRequest { params, invalid_reason: fault } = completion;
        Self { params, invalid_reason: fault, ..Self::with_method(Method::Complete) }
    }

    /// Makes any other request, with parameters that are a JSON object; what belongs to the protocol is added.
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

    /// Makes a request that somebody else has made, with parameters of theirs and the `_meta` that came with them.
    ///
    /// What belongs to one hop alone, answers, state and the protocol's own members of `_meta`, is left out.
    pub fn forwarded(method: Method, mut params: JsonObject, meta: Option<&JsonObject>) -> Self {
        for own in ["_meta", "inputResponses", "requestState"] {
            params.take(own);
        }
        let name = method.name_header_param().and_then(|member| params.get(member)?.to_text());
        let others = meta.into_iter().flat_map(JsonObject::iter).filter(|(key, _)| !meta::is_hop_by_hop(key));
        let meta = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { name, params, meta, ..Self::with_method(method) }
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
        }
    }

    /// Tells a function of all progress.
    pub fn on_progress(mut self, tell: impl Fn(&ProgressUpdate) + Send + Sync + 'static) -> Self {
        self.observers.on_progress(tell);
        self
    }

    /// Tells a function of the log messages of this call, where they can be told apart from those of others.
    pub fn on_log(mut self, tell: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        self.observers.on_log(tell);
        self
    }

    /// Asks for log messages from a level on, where that is asked with each call.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets how long the server may be silent; progress begins the time anew.
    pub fn timeout(mut self, silent_for: Duration) -> Self {
        self.timeout = Some(silent_for);
        self
    }

    /// Adds a member to `_meta`, such as `traceparent`.
    ///
    /// What the protocol itself keeps there is left out: it is written for each request anew.
    pub fn meta(mut self, key: impl Into<String>, value: RawJson) -> Self {
        let key = key.into();
        if !meta::is_hop_by_hop(&key) {
            self.meta.set(key, value);
        }
        self
    }

    /// Declares other capabilities than the client's own, in this call alone; a session has declared its own for good.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Goes on with a call that was interrupted by questions. The call has to be the same one.
    pub fn resume(mut self, continuation: ClientContinuation, answers: InputResponses) -> Self {
        self.supplied_input = Some(Box::new(SuppliedInput::Responses(continuation, answers)));
        self
    }

    /// Goes on with a call that was interrupted by questions, with the bytes of its portable continuation and with answers
    /// that are carried as they came. The call has to be the same one.
    pub fn resume_raw(mut self, state: Bytes, answers: Vec<(String, RawJson)>) -> Self {
        self.supplied_input = Some(Box::new(SuppliedInput::RawResponses(state, answers)));
        self
    }

    /// Gives answers before they are asked for, by the keys of their questions. A server that asks by requests of its own
    /// cannot be given any, so that it asks.
    pub fn preset_responses(mut self, answers: Vec<(String, RawJson)>) -> Self {
        self.supplied_input = (!answers.is_empty()).then(|| Box::new(SuppliedInput::Preset(answers)));
        self
    }

    /// Says which of several callers of one client makes the call, by a number. Without it all are the same.
    ///
    /// Where nothing says to which call a question belongs, it is given to a [step](crate::Client::step) only if no other
    /// caller could have caused it; if one could, it is not given to any of them, and the client's
    /// [`InputHandler`](crate::InputHandler) is asked as if no call were running.
    pub fn caller_id(mut self, number: u64) -> Self {
        self.caller_id = number;
        self
    }

    /// Tells somebody of everything that the server says while it works.
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

    /// Returns what a header repeats of the call.
    pub(crate) fn mirrored_name(&self) -> Option<ByteString> {
        self.known_method.and_then(Method::name_header_param).and(self.name.clone())
    }

    pub(crate) fn allows_input_requests(&self) -> bool {
        self.known_method.is_some_and(Method::may_require_input)
    }

    /// Returns who answers what the server asks within the call, given what is declared for it.
    pub(crate) fn input_recipient(&self, declared: &ClientCapabilities) -> InputRecipient {
        let can_be_asked = declared.form() || declared.url() || declared.sampling() || declared.roots();
        match (self.allows_input_requests(), can_be_asked, self.batches_requests) {
            (false, ..) => InputRecipient::None,
            (true, false, _) => InputRecipient::Undeclared,
            (true, true, false) => InputRecipient::Handler,
            // The caller of a step is given the questions itself.
            (true, true, true) => InputRecipient::Caller(self.caller_id),
        }
    }

    /// Progress is asked for wherever work is done: it also tells that the server is alive.
    pub(crate) fn wants_progress(&self) -> bool {
        self.allows_input_requests() || self.observers.wants_progress()
    }

    /// Guesses how long the written request will be.
    pub(crate) fn encoded_size_hint(&self) -> usize {
        self.params.iter().map(|(key, value)| key.len() + value.as_str().len() + 4).sum::<usize>() + 64
    }
}
