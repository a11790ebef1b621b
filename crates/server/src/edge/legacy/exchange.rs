use std::task::{Context as TaskContext, Poll, ready};

use trunkline_protocol::Refusal;

use super::super::{CallEvent, RenderedResponse};
use super::call::LegacyCall;
use crate::request_memory::RequestMemoryPermit;

/// The call of one message, or the calls of one batch, which are answered together.
pub(crate) enum LegacyExchange {
    /// One call.
    Single(Box<LegacyCall>),
    /// The calls of a batch that still run, and the responses of those that do not.
    Batch {
        calls: Vec<LegacyCall>,
        responses: Vec<String>,
        /// The memory permit of the batch, of which each call holds a part.
        _memory_permit: Option<RequestMemoryPermit>,
    },
    /// All responses were sent.
    Done,
}

impl LegacyExchange {
    /// Reports whether a call waits for a response of the client.
    pub(crate) fn is_waiting_for_input(&self) -> bool {
        self.calls().iter().any(LegacyCall::is_waiting_for_input)
    }

    /// Fails the open input requests, as if the client had disconnected.
    pub(crate) fn fail_open_requests(&self) {
        self.calls().iter().for_each(LegacyCall::fail_open_requests);
    }

    /// Returns how many calls still run.
    pub(crate) fn count(&self) -> usize {
        self.calls().len()
    }

    /// Ends the calls that still run, and answers them with a refusal.
    pub(crate) fn abort(self, refusal: &Refusal) -> RenderedResponse {
        match self {
            Self::Single(call) => call.refuse(refusal),
            Self::Batch { calls, responses: mut answers, .. } => {
                answers.extend(calls.iter().map(|call| call.refuse(refusal).message));
                batch_response(&answers)
            }
            Self::Done => batch_response(&[]),
        }
    }

    /// Holds the memory permit of a large message while it runs.
    pub(super) fn hold_permit(&mut self, reserved: RequestMemoryPermit) {
        match self {
            Self::Single(call) => call.hold_permit(reserved),
            Self::Batch { _memory_permit: _reserved, .. } => *_reserved = Some(reserved),
            Self::Done => {}
        }
    }

    fn calls(&self) -> &[LegacyCall] {
        match self {
            Self::Single(call) => std::slice::from_ref(call),
            Self::Batch { calls, .. } => calls,
            Self::Done => &[],
        }
    }

    /// Polls for what the transport must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        let event = match self {
            Self::Single(call) => ready!(call.poll_event(cx)),
            Self::Batch { calls, responses: answers, .. } => ready!(poll_batch(calls, answers, cx)),
            Self::Done => return Poll::Ready(CallEvent::NoResponse),
        };
        if matches!(event, CallEvent::Response(_) | CallEvent::NoResponse) {
            *self = Self::Done;
        }
        Poll::Ready(event)
    }
}

fn poll_batch(
    calls: &mut Vec<LegacyCall>,
    answers: &mut Vec<String>,
    cx: &mut TaskContext<'_>,
) -> Poll<CallEvent> {
    let mut at = 0;
    while let Some(call) = calls.get_mut(at) {
        match call.poll_event(cx) {
            Poll::Pending => at += 1,
            Poll::Ready(CallEvent::Response(answer)) => {
                calls.swap_remove(at);
                answers.push(answer.message);
            }
            Poll::Ready(CallEvent::NoResponse) => {
                calls.swap_remove(at);
            }
            Poll::Ready(event) => return Poll::Ready(event),
        }
    }
    if !calls.is_empty() {
        return Poll::Pending;
    }
    Poll::Ready(match answers.as_slice() {
        [] => CallEvent::NoResponse,
        answers => CallEvent::Response(batch_response(answers)),
    })
}

/// Makes the response to a batch.
pub(super) fn batch_response(answers: &[String]) -> RenderedResponse {
    RenderedResponse { message: format!("[{}]", answers.join(",")), status: 200 }
}
