//! The two eras, each as a translator between the wire and the core.
//!
//! An incoming request becomes an [`IncomingCall`](crate::IncomingCall); what a call does becomes [`CallEvent`]s,
//! which are complete messages for the transport. No code beyond this module depends on the era.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_protocol::Refusal;

use crate::call::{CallState, ExecutingCall};
use crate::env::redact;
use crate::server_core::ServerCore;

/// What the transport of a call must do next.
pub(crate) enum CallEvent {
    /// Send this message; the call continues.
    Message(String),
    /// Let the client disconnect for a while; the call continues.
    ReleaseStream(Duration),
    /// Send this response; the call is over.
    Response(RenderedResponse),
    /// The call is over, and its caller wants no response.
    NoResponse,
}

/// A call in progress, of either era.
pub(crate) trait EraCall {
    fn core(&self) -> &ServerCore;

    fn executing(&self) -> Option<&ExecutingCall>;

    /// Polls for what the transport must do next, before secrets are redacted.
    fn poll_unredacted(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent>;

    /// Polls for what the transport must do next.
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
    /// Redacts the caller's secrets from the message, wherever they came from.
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

/// Refuses a request with the id of another that still runs.
#[cold]
pub(crate) fn id_in_use() -> Refusal {
    Refusal::INVALID_REQUEST.with_message("a request with this id is still running")
}

/// A final response.
pub(crate) struct RenderedResponse {
    pub(crate) message: String,
    /// The HTTP status, for transports that have one and have not sent it yet.
    pub(crate) status: u16,
}

impl RenderedResponse {
    /// Sets the status of a refusal that a handler returned. It is for the caller and not for the transport: a
    /// session that a handler does not find is not the session of the request. Only a refusal with a status in the
    /// protocol, or one that lets the client retry later, keeps its own.
    pub(crate) fn with_handler_status(self, refusal: &Refusal) -> Self {
        let with_own_status = [
            Refusal::MISSING_CAPABILITY,
            Refusal::METHOD_NOT_FOUND,
            Refusal::INSUFFICIENT_SCOPE,
            Refusal::TOO_MANY,
        ];
        let status =
            if with_own_status.iter().any(|row| refusal.is_same_kind(row)) { self.status } else { 200 };
        Self { status, ..self }
    }
}
