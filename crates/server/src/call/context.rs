use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use trunkline_protocol::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageResult, ElicitResult, Implementation,
};
use trunkline_protocol::{LoggingLevel, RawJson, Revision, TraceContext};
use trunkline_session::{Principal, SessionId, ShortSessionId};

use super::ask::{self, AskAll, AskError, InputFuture, TypedInputRequest};
use super::call_state::CallState;
use super::caller::Caller;
use crate::change::ServerChange;
use crate::server::ServerHandle;

/// The caller of a handler, and the means to notify it and to request input from it.
///
/// A call may span several requests, each with its own progress token, log level and capabilities; the context
/// always refers to the latest one.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<CallState>,
    server: Option<ServerHandle>,
}

impl Context {
    pub(crate) fn new(shared: Arc<CallState>) -> Self {
        Self { shared, server: None }
    }

    pub(crate) fn with_server(mut self, server: ServerHandle) -> Self {
        self.server = Some(server);
        self
    }

    pub(crate) fn shared(&self) -> &Arc<CallState> {
        &self.shared
    }

    /// Returns the number of the call for an observer of the wire ([`HostOptions::observer`](crate::HostOptions::observer));
    /// `None` if none was attached when the call began.
    pub fn call_number(&self) -> Option<NonZeroU64> {
        self.shared.number()
    }

    /// Returns the caller.
    pub fn caller(&self) -> Caller {
        self.shared.with_caller(Clone::clone)
    }

    /// Reads a part of the caller without a copy of the rest. The lock of the call is held meanwhile: `read` must
    /// be short, and must not use this context.
    pub fn with_caller<T>(&self, read: impl FnOnce(&Caller) -> T) -> T {
        self.shared.with_caller(read)
    }

    /// Records that the result of this call shows one of the handler's lists, in a version that the handler numbers
    /// from 1 on. A legacy session is notified of outdated lists by
    /// [`ChangePublisher::publish_outdated`](crate::ChangePublisher::publish_outdated).
    pub fn record_listed(&self, list: &ServerChange, version: u64) {
        if let Some(session) = self.shared.scope().session() {
            session.record_listed(list, version);
        }
    }

    /// Returns the principal that the request belongs to.
    pub fn principal(&self) -> Principal {
        self.shared.with_caller(|caller| caller.principal.clone())
    }

    /// Returns the protocol revision of the request.
    pub fn revision(&self) -> Revision {
        self.shared.revision()
    }

    /// Returns the client's declared capabilities.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.shared.with_caller(Caller::capabilities)
    }

    /// Returns the client's description of itself, if it declares one.
    pub fn client(&self) -> Option<Implementation> {
        self.shared.with_caller(Caller::client)
    }

    /// Returns the kinds of content that the caller's revision has, by their names on the wire.
    pub fn content_types(&self) -> &'static [&'static str] {
        self.shared.with_caller(Caller::content_types)
    }

    /// Returns the prefix of the id of the caller's legacy session, for display; no other caller has a session.
    pub fn session_id(&self) -> Option<ShortSessionId> {
        self.shared.with_caller(|caller| caller.session.map(SessionId::short))
    }

    /// Returns the server, to add and remove its parts while it runs; `None` with a custom
    /// [`Handler`](crate::Handler).
    pub fn server(&self) -> Option<&ServerHandle> {
        self.server.as_ref()
    }

    /// Reports whether the caller requested progress notifications, so that a handler can skip computing progress.
    pub fn wants_progress(&self) -> bool {
        self.shared.with_caller(|caller| caller.progress_token.is_some())
    }

    /// Reports progress, if the caller requested it.
    ///
    /// A value that is not above the last one is dropped.
    pub fn progress(&self, done: impl Into<f64>, total: impl Into<f64>) {
        self.shared.report_progress(done.into(), Some(total.into()), None);
    }

    /// Reports progress with a message, and without a total if that is not known.
    pub fn progress_with(&self, done: impl Into<f64>, total: Option<f64>, message: impl Into<String>) {
        self.shared.report_progress(done.into(), total, Some(message.into()));
    }

    /// Forwards progress that an upstream reports.
    pub fn forward_progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.shared.report_progress(done, total, message);
    }

    /// Forwards a log message of an upstream, if the caller wants messages of this severity.
    pub fn forward_log(&self, level: LoggingLevel, logger: Option<String>, data: RawJson) {
        self.shared.report_log(level, logger, || data);
    }

    /// Sends a log message, if the caller wants messages of this severity.
    ///
    /// Revision 2026-07-28 still has logging, and deprecates it: operators should use the log of the process, or a
    /// trace.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.shared.report_log(level, None, || RawJson::from_value(&data).unwrap_or(RawJson::NULL));
    }

    /// Sends an input request to the caller and waits for the response.
    ///
    /// # Errors
    /// [`AskError`]: the user declined, the client does not support the request, or it has disconnected.
    pub async fn ask<T>(&self, question: TypedInputRequest<T>) -> Result<T, AskError> {
        InputFuture::new(self.shared.clone(), question).await
    }

    /// Sends several input requests in one round and waits for all responses.
    ///
    /// # Errors
    /// The first [`AskError`] among them, once all have a response or failed; if one of them is not supported, none
    /// is sent.
    pub async fn ask_all<Q: AskAll>(&self, questions: Q) -> Result<Q::Answers, AskError> {
        questions.request_all(self).await
    }

    /// Elicits a form given as a schema, and returns the response unchanged.
    ///
    /// # Errors
    /// As [`Context::ask`], except that a declined form is a response.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        schema: impl Into<RawJson>,
    ) -> Result<ElicitResult, AskError> {
        self.ask(ask::elicit(message, schema)).await
    }

    /// Requests sampling from the caller's model.
    ///
    /// Revision 2026-07-28 still has sampling, and deprecates it: a server that can reach a model itself should.
    ///
    /// # Errors
    /// As [`Context::ask`].
    pub async fn sample(&self, question: CreateMessageRequest) -> Result<CreateMessageResult, AskError> {
        self.ask(ask::sample(question)).await
    }

    /// Reports whether an operator answered the input request with this key in the place of the client
    /// ([`Host::answer_input_request`](crate::Host::answer_input_request)).
    pub fn is_operator_answer(&self, key: &str) -> bool {
        self.shared.is_operator_answer(key)
    }

    /// Waits until the caller has cancelled the call.
    ///
    /// The handler's own future is dropped then; this is for tasks that it has spawned.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        async move { shared.cancelled().await }
    }

    /// Reports whether an input request is open, so that the call waits for its caller and not for its handler.
    pub fn is_waiting(&self) -> bool {
        self.shared.has_open_requests()
    }

    /// Returns the trace context of the request that began the call, if it has a legible one.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::read(self.shared.params().meta.as_ref())
    }

    /// Reports whether the caller has cancelled the call.
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled()
    }

    /// Lets a 2025-11-25 client disconnect from the call's stream and reconnect for the response after `retry`.
    ///
    /// Elsewhere it has no effect.
    pub fn release_stream(&self, retry: Duration) {
        self.shared.release_stream(retry);
    }
}
