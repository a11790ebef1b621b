//! The two eras, each as a translator between the wire and the core.
//!
//! An incoming request becomes an [`IncomingCall`](crate::IncomingCall); what a call does becomes [`CallEvent`]s,
//! which are complete messages for the transport. No code beyond this module depends on the era.
//!
//! See [Versioning, Terminology](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology).

mod exchange;
pub(crate) mod legacy;
pub(crate) mod modern;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_protocol::{Refusal, RequestId};

pub(crate) use self::exchange::EraExchange;
use self::modern::SubscriptionStream;
use crate::admission::BytePermit;
use crate::call::{BoxFuture, CallState, ExecutingCall};
use crate::env::redact;
use crate::server_core::ServerCore;

/// How a message begins, in either era.
pub(crate) enum MessageStart {
    /// It was a notification or a response, and gets no response.
    Accepted,
    /// It has its response already.
    Response(RenderedResponse),
    /// It runs.
    Call(EraExchange),
    /// It begins after a wait: for a suspended call to be resumed, or for the handler to prepare a subscription.
    Deferred(RequestId, BoxFuture<'static, MessageStart>),
    /// It is a stream of change notifications.
    Subscription(Box<SubscriptionStream>),
}

impl MessageStart {
    /// Holds the memory permit of a large message for as long as what it began may hold any of it.
    pub(crate) fn hold_permit(self, reserved: Option<BytePermit>) -> Self {
        let Some(reserved) = reserved else { return self };
        match self {
            Self::Call(mut exchange) => {
                exchange.hold_permit(reserved);
                Self::Call(exchange)
            }
            Self::Deferred(id, future) => {
                Self::Deferred(id, Box::pin(async move { future.await.hold_permit(Some(reserved)) }))
            }
            Self::Accepted | Self::Response(_) | Self::Subscription(_) => self,
        }
    }
}

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
        let has_secrets = self.core().env.has_any();
        if !has_secrets && self.core().attached_observer().is_none() {
            return self.poll_unredacted(cx);
        }
        let shared = self.executing().map(|running| running.shared().clone());
        let event = ready!(self.poll_unredacted(cx));
        let Some(shared) = shared else { return Poll::Ready(event) };
        let event = if has_secrets { event.redacted(&shared) } else { event };
        self.core().observe_event(&shared, &event);
        Poll::Ready(event)
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
///
/// See [Requests](https://modelcontextprotocol.io/specification/2025-11-25/basic/index#requests).
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
            Refusal::RATE_LIMITED,
        ];
        let status =
            if with_own_status.iter().any(|row| refusal.is_same_kind(row)) { self.status } else { 200 };
        Self { status, ..self }
    }
}
