use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use trunkline_protocol::{Refusal, RequestId};

use super::legacy::LegacyCall;
use super::modern::{self, ModernCall};
use super::{CallEvent, RenderedResponse};
use crate::admission::BytePermit;
use crate::bus::RemoteCall;
use crate::call::CallState;

/// The call of one message, in either era, or the calls of a legacy batch, which are answered together.
pub(crate) enum EraExchange {
    /// A modern call.
    Modern(Box<ModernCall>),
    /// A legacy call.
    Legacy(Box<LegacyCall>),
    /// A legacy batch.
    Batch(Box<BatchCalls>),
    /// A modern call that another process continues.
    Relayed(Box<RemoteCall>),
    /// All responses of the legacy call or batch were sent.
    Done,
}

/// The calls of a batch that still run, and the responses of those that do not.
pub(crate) struct BatchCalls {
    calls: Vec<LegacyCall>,
    responses: Vec<String>,
    /// The memory permit of the batch, of which each call holds a part.
    memory_permit: Option<BytePermit>,
}

impl EraExchange {
    pub(super) fn batch(calls: Vec<LegacyCall>, responses: Vec<String>) -> Self {
        Self::Batch(Box::new(BatchCalls { calls, responses, memory_permit: None }))
    }

    /// Polls for what the transport must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        let event = match self {
            // It keeps its id, by which the transport knows it.
            Self::Modern(call) => return call.poll_event(cx),
            Self::Relayed(call) => return call.poll_event(cx),
            Self::Legacy(call) => ready!(call.poll_event(cx)),
            Self::Batch(batch) => ready!(batch.poll_event(cx)),
            Self::Done => return Poll::Ready(CallEvent::NoResponse),
        };
        if matches!(event, CallEvent::Response(_) | CallEvent::NoResponse) {
            *self = Self::Done;
        }
        Poll::Ready(event)
    }

    /// Returns the id of a modern call. A legacy call is known to its session by its id.
    pub(crate) fn modern_id(&self) -> Option<&RequestId> {
        match self {
            Self::Modern(call) => Some(call.id()),
            Self::Relayed(call) => Some(call.id()),
            _ => None,
        }
    }

    /// Returns the state to cancel a modern call by; its next event is then [`CallEvent::NoResponse`].
    pub(crate) fn modern_state(&self) -> Option<Arc<CallState>> {
        match self {
            Self::Modern(call) => call.shared(),
            _ => None,
        }
    }

    /// Reports whether a call waits for a response of the client.
    pub(crate) fn is_waiting_for_input(&self) -> bool {
        self.legacy_calls().iter().any(LegacyCall::is_waiting_for_input)
    }

    /// Fails the open input requests, as if the client had disconnected.
    pub(crate) fn fail_open_requests(&self) {
        self.legacy_calls().iter().for_each(LegacyCall::fail_open_requests);
    }

    /// Returns how many calls still run.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Modern(_) | Self::Relayed(_) => 1,
            _ => self.legacy_calls().len(),
        }
    }

    /// Ends the calls that still run, and answers them with a refusal.
    pub(crate) fn abort(self, refusal: &Refusal) -> RenderedResponse {
        match self {
            Self::Modern(call) => modern::refuse(Some(call.id()), refusal),
            Self::Relayed(call) => modern::refuse(Some(call.id()), refusal),
            Self::Legacy(call) => call.refuse(refusal),
            Self::Batch(mut batch) => {
                batch.responses.extend(batch.calls.iter().map(|call| call.refuse(refusal).message));
                batch_response(&batch.responses)
            }
            Self::Done => batch_response(&[]),
        }
    }

    /// Holds the memory permit of a large message while it runs.
    pub(super) fn hold_permit(&mut self, reserved: BytePermit) {
        match self {
            Self::Modern(call) => call.hold_permit(reserved),
            Self::Legacy(call) => call.hold_permit(reserved),
            Self::Batch(batch) => batch.memory_permit = Some(reserved),
            Self::Relayed(call) => call.hold_permit(reserved),
            Self::Done => {}
        }
    }

    fn legacy_calls(&self) -> &[LegacyCall] {
        match self {
            Self::Legacy(call) => std::slice::from_ref(call),
            Self::Batch(batch) => &batch.calls,
            Self::Modern(_) | Self::Relayed(_) | Self::Done => &[],
        }
    }
}

impl BatchCalls {
    fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallEvent> {
        let mut at = 0;
        while let Some(call) = self.calls.get_mut(at) {
            match call.poll_event(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(CallEvent::Response(answer)) => {
                    self.calls.swap_remove(at);
                    self.responses.push(answer.message);
                }
                Poll::Ready(CallEvent::NoResponse) => {
                    self.calls.swap_remove(at);
                }
                Poll::Ready(event) => return Poll::Ready(event),
            }
        }
        if !self.calls.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(match self.responses.as_slice() {
            [] => CallEvent::NoResponse,
            answers => CallEvent::Response(batch_response(answers)),
        })
    }
}

/// Makes the response to a batch.
///
/// See [Batching](https://modelcontextprotocol.io/specification/2025-03-26/basic/index#batching).
pub(super) fn batch_response(answers: &[String]) -> RenderedResponse {
    RenderedResponse { message: format!("[{}]", answers.join(",")), status: 200 }
}
