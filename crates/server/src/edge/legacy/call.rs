use std::collections::VecDeque;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use trunkline_protocol::codec::{Dialect, ServerResult};
use trunkline_protocol::model::{CallToolResult, InputRequest};
use trunkline_protocol::{Method, Refusal, RequestId, Revision, emit};

use super::super::{CallEvent, EraCall, RenderedResponse, id_in_use};
use super::elicited_urls::ElicitedUrls;
use super::live::LiveSession;
use super::refuse;
use crate::admission::BytePermit;
use crate::call::{
    AskError, CallProgress, Context, ExecutingCall, HandlerContinuation, HandlerOutcome, IncomingCall,
    InputRound, PendingAction,
};
use crate::metrics::MetricOutcome;
use crate::open_input::ListedRequests;
use crate::server_core::{AdmittedCall, ServerCore};

/// How long to wait before a handler is called again that requests a retry without any input.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A legacy call in progress.
pub(crate) struct LegacyCall {
    session: Arc<LiveSession>,
    id: RequestId,
    method: Method,
    executing: Option<ExecutingCall>,
    /// Whether the call is registered with the session, which happens if it does not end with its first step.
    registered: bool,
    /// Allocated by the first input request: most calls only return a result.
    client_requests: Option<Box<ClientRequests>>,
    admitted: AdmittedCall,
}

/// The requests of a call to its client.
#[derive(Default)]
struct ClientRequests {
    outgoing: VecDeque<String>,
    request_ids: Vec<RequestId>,
    /// Those that an operator may answer.
    listed: Option<ListedRequests>,
    /// Allocated by the first URL elicitation.
    elicited_urls: Option<ElicitedUrls>,
    /// How the call ended, while messages remain to be sent before that.
    ended: Option<Result<HandlerOutcome, Refusal>>,
}

impl LegacyCall {
    pub(super) fn start(
        session: Arc<LiveSession>,
        in_flight: AdmittedCall,
        id: RequestId,
        method: Method,
        running: ExecutingCall,
    ) -> Box<Self> {
        Box::new(Self {
            session,
            id,
            method,
            executing: Some(running),
            registered: false,
            client_requests: None,
            admitted: in_flight,
        })
    }

    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Holds the memory permit of a large request while the call runs.
    pub(in crate::edge) fn hold_permit(&self, reserved: BytePermit) {
        if let Some(running) = &self.executing {
            running.shared().hold_permit(reserved);
        }
    }

    /// Polls for what the transport must do next.
    pub(in crate::edge) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        self.poll_redacted(cx)
    }

    pub(in crate::edge) fn is_waiting_for_input(&self) -> bool {
        self.session.has_open_requests(self.request_ids())
    }

    pub(in crate::edge) fn fail_open_requests(&self) {
        self.session.fail_requests(self.request_ids());
    }

    fn request_ids(&self) -> &[RequestId] {
        self.client_requests.as_ref().map_or(&[], |client_requests| &client_requests.request_ids)
    }

    /// Registers the call with the session; returns false if another has its id.
    ///
    /// Two requests with one id may come at the same time, on two connections. Most calls end with their first step,
    /// and for these it makes no difference: each is answered on its own connection, as if they had come one after
    /// the other. Of those that continue, the first to register has the id, and the other ends before its second
    /// step. So nothing has to be recorded, and no lock taken, for the many that end at once.
    fn register(&mut self) -> bool {
        if let (false, Some(running)) = (self.registered, &self.executing) {
            self.registered = self.session.register_call(&self.id, running.shared());
            return self.registered;
        }
        true
    }

    /// Turns the new input requests into requests to the client; one that its revision cannot express fails at once.
    ///
    /// See [Elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#elicitation-requests),
    /// [Sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#creating-messages) and
    /// [Roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#listing-roots).
    fn send_requests(&mut self) {
        let Some(running) = &self.executing else { return };
        let client_requests = self.client_requests.get_or_insert_default();
        let dialect = Dialect::of(self.session.revision());
        for (key, question) in running.shared().take_unsent_requests() {
            let elicitation_id = || {
                let id = client_requests.elicited_urls.get_or_insert_default().record(&question);
                running.shared().record_elicitation(&key, &id);
                id
            };
            let params = question
                .to_legacy(dialect, elicitation_id)
                .map_err(|inexpressible| AskError::unsupported(&question, inexpressible.to_string()));
            let is_roots = matches!(question, InputRequest::Roots);
            let put = params.and_then(|params| {
                Ok((self.session.register_request(running.shared(), &key, is_roots)?, params))
            });
            match put {
                Ok((id, params)) => {
                    let registry = &self.admitted.core().open_input;
                    let listed =
                        client_requests.listed.get_or_insert_with(|| ListedRequests::new(registry.clone()));
                    listed.add(&self.session, &id, running.shared(), &key);
                    client_requests.outgoing.push_back(emit::request(&id, question.method(), Some(&params)));
                    let ids = &mut client_requests.request_ids;
                    // As many as are open, however long the call runs.
                    if ids.len() == ids.capacity() {
                        ids.retain(|id| self.session.has_open_requests(std::slice::from_ref(id)));
                    }
                    ids.push(id);
                }
                Err(error) => {
                    running.shared().deliver_response(&key, Err(error));
                }
            }
        }
    }

    /// Continues after a handler returned input requests together with bytes to be called again with.
    fn request_input_and_retry(&mut self, round: InputRound) {
        let Some(running) = self.executing.take() else { return };
        let shared = running.shared().clone();
        let HandlerContinuation::Portable(bytes) = round.continuation;
        let (handler, method) = (self.admitted.core().handler.clone(), self.method);
        let context = Context::new(shared.clone());
        let mut questions = round.requests;
        let has_urls = questions.iter().any(|(_, question)| matches!(question, InputRequest::Url(_)));
        let urls = has_urls.then(|| {
            self.client_requests.get_or_insert_default().elicited_urls.get_or_insert_default().clone()
        });
        let agreed = urls.as_ref().map(|urls| urls.take_accepted(&mut questions)).unwrap_or_default();
        let again = async move {
            if questions.is_empty() {
                tokio::time::sleep(RETRY_DELAY).await;
            }
            let requested = urls.as_ref().map(|_| questions.clone()).unwrap_or_default();
            if let Err((input_method, error)) = context.shared().collect_responses(questions).await {
                return input_failure(method, input_method, &error);
            }
            if let Some(urls) = urls {
                urls.record_responses(&requested, &context.shared().unused_responses());
                context.shared().replay_responses(agreed);
            }
            handler.call(IncomingCall { method, continuation: Some(bytes), context }).await
        };
        self.executing = Some(ExecutingCall::from_future(shared, Box::pin(again)));
    }

    /// Notifies the client of URL elicitations that the handler no longer requests.
    fn complete_elicitations(&mut self, still_requested: &[(String, InputRequest)]) {
        if let Some(client_requests) = &mut self.client_requests
            && let Some(urls) = &client_requests.elicited_urls
        {
            client_requests.outgoing.extend(urls.complete(still_requested));
        }
    }

    fn finish(&mut self, outcome: Result<HandlerOutcome, Refusal>) -> RenderedResponse {
        self.executing = None;
        let outcome = as_tool_result(outcome, self.method, self.session.revision());
        self.admitted.record_outcome(MetricOutcome::from_result(&outcome));
        let revision = self.session.revision();
        match outcome {
            Ok(HandlerOutcome::Done(reply)) => RenderedResponse {
                message: self.admitted.core().result(&self.id, &reply, revision),
                status: 200,
            },
            Ok(HandlerOutcome::InputRequired(_)) => self.refuse(&Refusal::INTERNAL),
            Err(refusal) => self.refuse(&refusal).with_handler_status(&refusal),
        }
    }

    fn refuse_duplicate_id(&mut self) -> RenderedResponse {
        self.executing = None;
        self.admitted.record_outcome(MetricOutcome::Refused);
        self.refuse(&id_in_use())
    }

    /// Renders a refusal as the response.
    pub(in crate::edge) fn refuse(&self, refusal: &Refusal) -> RenderedResponse {
        refuse(Some(&self.id), refusal, self.session.revision())
    }
}

impl EraCall for LegacyCall {
    fn core(&self) -> &ServerCore {
        self.admitted.core()
    }

    fn executing(&self) -> Option<&ExecutingCall> {
        self.executing.as_ref()
    }

    fn poll_unredacted(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        loop {
            if let Some(client_requests) = &mut self.client_requests {
                if let Some(message) = client_requests.outgoing.pop_front() {
                    return Poll::Ready(CallEvent::Message(message));
                }
                if let Some(outcome) = client_requests.ended.take() {
                    return Poll::Ready(CallEvent::Response(self.finish(outcome)));
                }
            }
            let Some(running) = &mut self.executing else { return Poll::Ready(CallEvent::NoResponse) };
            let step = running.poll_step(cx);
            if continues_after(&step) && !self.register() {
                return Poll::Ready(CallEvent::Response(self.refuse_duplicate_id()));
            }
            match ready!(step) {
                Continue(PendingAction::Notification(notification)) => {
                    match self.executing.as_ref().and_then(|running| running.render(&notification)) {
                        Some(message) => return Poll::Ready(CallEvent::Message(message)),
                        None => continue,
                    }
                }
                Continue(PendingAction::ReleaseStream(retry)) if self.session.revision().primes_streams() => {
                    return Poll::Ready(CallEvent::ReleaseStream(retry));
                }
                Continue(PendingAction::ReleaseStream(_)) => continue,
                Continue(PendingAction::InputRequests) => self.send_requests(),
                Break(Ok(HandlerOutcome::InputRequired(round))) => {
                    self.complete_elicitations(&round.requests);
                    self.request_input_and_retry(round);
                }
                Break(outcome) => {
                    self.complete_elicitations(&[]);
                    match &mut self.client_requests {
                        Some(client_requests) if !client_requests.outgoing.is_empty() => {
                            client_requests.ended = Some(outcome);
                        }
                        _ => return Poll::Ready(CallEvent::Response(self.finish(outcome))),
                    }
                }
                Continue(PendingAction::Cancelled) => {
                    self.executing = None;
                    return Poll::Ready(CallEvent::NoResponse);
                }
            }
        }
    }
}

/// Reports whether a call continues after a step, perhaps without ever having to wait.
fn continues_after(step: &Poll<CallProgress>) -> bool {
    !matches!(
        step,
        Poll::Ready(Break(Ok(HandlerOutcome::Done(_)) | Err(_)) | Continue(PendingAction::Cancelled))
    )
}

/// Ends a call after an input request failed: a model that called a tool should read which, and why.
fn input_failure(
    method: Method,
    input_method: Option<&str>,
    error: &AskError,
) -> Result<HandlerOutcome, Refusal> {
    let problem = match input_method {
        Some(input_method) => format!("a question for {input_method} was not answered: {error}"),
        None => error.to_string(),
    };
    match (method, error) {
        (_, AskError::Unsupported { .. }) => Err(error.to_refusal()),
        (Method::ToolsCall, _) => {
            Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(problem))))
        }
        _ => Err(error.to_refusal().with_message(problem)),
    }
}

/// Turns a refusal without a code in the revision into the result of a tool.
fn as_tool_result(
    outcome: Result<HandlerOutcome, Refusal>,
    method: Method,
    revision: Revision,
) -> Result<HandlerOutcome, Refusal> {
    match outcome {
        Err(refusal) if method == Method::ToolsCall => match refusal.as_tool_result(revision) {
            Some(result) => Ok(HandlerOutcome::Done(ServerResult::Tool(result))),
            None => Err(refusal),
        },
        outcome => outcome,
    }
}

impl Drop for LegacyCall {
    fn drop(&mut self) {
        if self.registered {
            self.session.remove_call(&self.id, self.request_ids());
        }
    }
}
