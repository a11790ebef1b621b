//! The two eras, each as a translator between the wire and the core.
//!
//! What comes in becomes a [`IncomingCall`](crate::IncomingCall); what a call does becomes [`CallEvent`]s, which are finished messages for
//! whatever carries them. Nothing beyond this module asks about the era.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_protocol::Refusal;

use crate::call::{CallState, ExecutingCall};
use crate::env::redact;
use crate::server_core::ServerCore;

/// What the carrier of a call must do next.
pub(crate) enum CallEvent {
    /// Send this message; the call goes on.
    Message(String),
    /// Let the client disconnect for a while; the call goes on.
    ReleaseStream(Duration),
    /// Send this answer; the call is over.
    Response(RenderedResponse),
    /// The call is over, and its caller wants no answer.
    NoResponse,
}

/// A call in progress, of either era.
pub(crate) trait EraCall {
    fn core(&self) -> &ServerCore;

    fn executing(&self) -> Option<&ExecutingCall>;

    /// Polls for what the carrier must do next, as the call says it.
    fn poll_unredacted(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent>;

    /// Polls for what the carrier must do next.
    fn poll_redacted(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        if !self.core().env.has_any() {
            return self.poll_unredacted(cx);
        }
        let shared = self.executing().map(|running| running.shared().clone());
        let event = ready!(self.poll_unredacted(cx));
        Poll::Ready(match shared {
            Some(shared) => event.redacted(&shared),
            None => event,
        })
    }
}

impl CallEvent {
    /// Removes the caller's secrets from what is said, whoever put them there.
    fn redacted(self, shared: &CallState) -> Self {
        let clean = |message| redact(message, &shared.secrets());
        match self {
            Self::Message(message) => Self::Message(clean(message)),
            Self::Response(answer) => {
                Self::Response(RenderedResponse { message: clean(answer.message), ..answer })
            }
            other => other,
        }
    }
}

/// Refuses a request whose id another one has.
#[cold]
pub(crate) fn id_in_use() -> Refusal {
    Refusal::INVALID_REQUEST.with_message("a request with this id is still running")
}

/// A final answer.
pub(crate) struct RenderedResponse {
    pub(crate) message: String,
    /// The HTTP status, for carriers that have one and have not committed to it yet.
    pub(crate) status: u16,
}

impl RenderedResponse {
    /// Takes a refusal for the answer of a handler, which is for whoever called it and not for what carries it: a session
    /// that a handler does not know is not the one of the request. Only what the protocol gives a status, and what asks the
    /// client to come back later, keeps its own.
    pub(crate) fn with_handler_status(self, refusal: &Refusal) -> Self {
        let telling = [Refusal::MISSING_CAPABILITY, Refusal::METHOD_NOT_FOUND, Refusal::TOO_MANY];
        let status = if telling.iter().any(|row| refusal.is_same_kind(row)) { self.status } else { 200 };
        Self { status, ..self }
    }
}
