use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use trunkline_protocol::codec::{InputRequiredResult, ServerResult};
use trunkline_protocol::model::InputRequest;
use trunkline_protocol::{JsonWriter, Method, RawJson, Refusal, RequestId, Revision};
use trunkline_session::Principal;

use super::super::{CallEvent, EraCall, RenderedResponse};
use super::refuse;
use crate::admission::BytePermit;
use crate::call::{
    CallState, ExecutingCall, HandlerContinuation, HandlerOutcome, IncomingCall, PendingAction,
};
use crate::input_round::{SealedContinuation, StateBinding, SuspendingClient, params_digest};
use crate::metrics::MetricOutcome;
use crate::server_core::{AdmittedCall, ServerCore, now};

/// A modern call in progress.
pub(crate) struct ModernCall {
    id: RequestId,
    method: Method,
    principal: Principal,
    round: u32,
    executing: Option<ExecutingCall>,
    admitted: AdmittedCall,
}

impl ModernCall {
    pub(super) fn new(in_flight: AdmittedCall, id: RequestId, method: Method, principal: Principal) -> Self {
        Self { id, method, principal, round: 0, executing: None, admitted: in_flight }
    }

    pub(super) fn start(&mut self, call: IncomingCall) {
        self.executing = Some(ExecutingCall::start(&*self.core().handler, call));
    }

    pub(super) fn attach(&mut self, running: ExecutingCall) {
        self.executing = Some(running);
    }

    pub(super) fn set_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Refuses the request before any of it runs.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) -> RenderedResponse {
        self.admitted.record_outcome(MetricOutcome::Refused);
        refuse(Some(&self.id), refusal)
    }

    /// Records that another process has answered the call.
    pub(crate) fn record_relayed(&mut self) {
        self.admitted.record_outcome(MetricOutcome::Ok);
    }

    pub(super) fn core(&self) -> &Arc<ServerCore> {
        self.admitted.core()
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the state to cancel the call by; its next event is then [`CallEvent::NoResponse`].
    ///
    /// See [Cancellation, Behavior Requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation#behavior-requirements).
    pub(crate) fn shared(&self) -> Option<Arc<CallState>> {
        self.executing.as_ref().map(|running| running.shared().clone())
    }

    /// Holds the memory permit of a large request while the call runs or is suspended.
    pub(in crate::edge) fn hold_permit(&self, reserved: BytePermit) {
        if let Some(running) = &self.executing {
            running.shared().hold_permit(reserved);
        }
    }

    /// Polls for what the transport must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        self.poll_redacted(cx)
    }

    fn finish(&self, outcome: Result<HandlerOutcome, Refusal>) -> RenderedResponse {
        match (outcome, &self.executing) {
            (Ok(HandlerOutcome::Done(reply)), _) => self.reply(&reply),
            (Ok(HandlerOutcome::InputRequired(round)), Some(running)) => {
                let shared = running.shared();
                if let Some(error) = shared.first_unsupported(&round.requests) {
                    return refuse(Some(&self.id), &error.to_refusal());
                }
                let HandlerContinuation::Portable(bytes) = round.continuation;
                self.input_required(
                    shared.adapt_requests(round.requests),
                    self.portable_continuation(bytes),
                    shared,
                )
            }
            (Ok(HandlerOutcome::InputRequired(_)), None) => refuse(Some(&self.id), &Refusal::INTERNAL),
            (Err(refusal), _) => refuse(Some(&self.id), &refusal).with_handler_status(&refusal),
        }
    }

    fn reply(&self, reply: &ServerResult) -> RenderedResponse {
        RenderedResponse { message: self.core().result(&self.id, reply, Revision::NEWEST), status: 200 }
    }

    /// Ends the request with input requests; the call itself waits for the next request.
    ///
    /// See [InputRequiredResult](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult).
    fn suspend_for_input(&mut self) -> RenderedResponse {
        let Some(running) = self.executing.take() else { return refuse(Some(&self.id), &Refusal::INTERNAL) };
        let shared = running.shared().clone();
        let questions = shared.take_unsent_requests();
        let then = match shared.recorded_responses() {
            Some(answers) => self.portable_continuation(encode_replay(&answers)),
            None => self
                .core()
                .suspended_calls
                .suspend(self.suspended_by(), self.round + 1, running)
                .map(|number| self.suspended(number)),
        };
        self.input_required(questions, then, &shared)
    }

    fn portable_continuation(&self, bytes: Bytes) -> Option<SealedContinuation> {
        if bytes.len() <= self.core().limits.state_bytes {
            return Some(SealedContinuation::Portable(bytes));
        }
        self.core()
            .suspended_calls
            .suspend_bytes(self.suspended_by(), self.round + 1, bytes)
            .map(|number| self.suspended(number))
    }

    fn suspended_by(&self) -> SuspendingClient {
        SuspendingClient { principal: self.principal.clone(), party: self.admitted.party().clone() }
    }

    /// Names this process too where the retry may arrive at another one.
    fn suspended(&self, number: u128) -> SealedContinuation {
        SealedContinuation::Suspended(number, self.core().bus.as_ref().map(|bus| bus.process()))
    }

    fn input_required(
        &self,
        questions: Vec<(String, InputRequest)>,
        then: Option<SealedContinuation>,
        shared: &CallState,
    ) -> RenderedResponse {
        let binding = StateBinding {
            principal: self.principal.clone(),
            method: self.method,
            params_digest: params_digest(shared.params()),
        };
        let expires = now().plus(self.core().limits.suspended_for);
        let state = then.and_then(|then| self.core().sealer.seal(&binding, self.round + 1, expires, &then));
        match state {
            Some(state) => self.reply(&ServerResult::InputRequired(InputRequiredResult {
                input_requests: questions,
                request_state: Some(state),
            })),
            None => refuse(Some(&self.id), &Refusal::INTERNAL),
        }
    }
}

impl EraCall for ModernCall {
    fn core(&self) -> &ServerCore {
        self.admitted.core()
    }

    fn executing(&self) -> Option<&ExecutingCall> {
        self.executing.as_ref()
    }

    fn poll_unredacted(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        loop {
            let Some(running) = &mut self.executing else { return Poll::Ready(CallEvent::NoResponse) };
            let step = ready!(running.poll_step(cx));
            return Poll::Ready(match step {
                Continue(PendingAction::Notification(notification)) => match running.render(&notification) {
                    Some(message) => CallEvent::Message(message),
                    None => continue,
                },
                // This era has no resumable streams to release.
                Continue(PendingAction::ReleaseStream(_)) => continue,
                Continue(PendingAction::Cancelled) => {
                    self.executing = None;
                    CallEvent::NoResponse
                }
                Continue(PendingAction::InputRequests) => {
                    self.admitted.record_outcome(MetricOutcome::InputRequired);
                    CallEvent::Response(self.suspend_for_input())
                }
                Break(outcome) => {
                    self.admitted.record_outcome(MetricOutcome::from_result(&outcome));
                    let answer = self.finish(outcome);
                    self.executing = None;
                    CallEvent::Response(answer)
                }
            });
        }
    }
}

/// Writes the responses that a replayed call gets when it runs again.
fn encode_replay(answers: &[(String, RawJson)]) -> Bytes {
    let mut writer = JsonWriter::with_capacity(64);
    writer.open_array();
    for (key, answer) in answers {
        writer.open_array();
        writer.string(key);
        writer.raw(answer);
        writer.close_array();
    }
    writer.close_array();
    writer.into_string().into()
}
