use std::fmt;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_auth::authorizer::AuthorizationError;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Notification, RawJson};
use trunkline_transport::http::RequestDelivery;

use super::channel::ChannelExchange;
use super::http::HttpExchange;
use super::server_request::ServerRequest;
use crate::error::{Error, ErrorSource};
use crate::wire_tap::ObservedRequest;

/// One request in flight, as a stream of events.
///
/// Dropping it cancels the request.
pub(crate) struct RequestExchange {
    source: ExchangeSource,
    /// Boxed, since few requests are observed.
    observed: Option<Box<ObservedRequest>>,
}

enum ExchangeSource {
    /// Over a channel; not boxed, since an allocation per request would be measurable.
    Channel(ChannelExchange),
    /// Over HTTP.
    Http(HttpExchange),
    /// It failed before anything was sent.
    Failed(Box<TransportFailure>),
    Finished,
}

/// A response as the server wrote it: the result, or the error.
pub(crate) type RawResponse = Result<RawResult, RawJson>;

/// An event within a request.
#[derive(Debug)]
pub(crate) enum ExchangeEvent {
    /// Progress, a log message, or a change on a subscription stream.
    Notification(Notification),
    /// An input request, to be answered under its id by [`ClientTransport::post`](super::ClientTransport::post).
    Request(ServerRequest),
    /// Notifications arrived faster than they were read, and the oldest were dropped.
    Skipped,
    /// The response; the last event.
    Response(RawResponse),
    /// The request failed without a response; the last event.
    Failed(TransportFailure),
}

/// Why there is no response.
#[derive(Clone, Debug)]
pub(crate) struct TransportFailure {
    /// Whether the server may have acted on the request. It is sent again only if it certainly did not.
    pub(crate) delivery: RequestDelivery,
    /// What happened.
    pub(crate) kind: TransportFailureKind,
}

/// A cause in words, and the error that it comes from, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct FailureCause {
    pub(crate) message: String,
    pub(crate) source: Option<ErrorSource>,
}

/// The kind of a transport failure.
#[derive(Clone, Debug)]
pub(crate) enum TransportFailureKind {
    /// The connection could not be opened, or is closed.
    Closed(FailureCause),
    /// The server has lost the session (404).
    SessionGone,
    /// The server requires other credentials (401, 403).
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The header `WWW-Authenticate`, if there was one.
        challenge: Option<String>,
    },
    /// The server requires authorization, which could not be obtained.
    Authorization(AuthorizationError),
    /// The server responded with an HTTP error status instead of a JSON-RPC response.
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body, for error messages.
        excerpt: String,
    },
    /// There was no response in time; the request was cancelled.
    TimedOut {
        /// The time that was waited.
        after: Duration,
    },
    /// The response is longer than the limit.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The response violates the protocol; with the reason.
    Malformed(String),
}

impl RequestExchange {
    pub(super) fn over_http(exchange: HttpExchange) -> Self {
        Self { source: ExchangeSource::Http(exchange), observed: None }
    }

    pub(super) fn over_channel(exchange: ChannelExchange) -> Self {
        Self { source: ExchangeSource::Channel(exchange), observed: None }
    }

    /// Creates the exchange of a request that fails without being sent.
    pub(super) fn failed(failure: TransportFailure) -> Self {
        Self { source: ExchangeSource::Failed(Box::new(failure)), observed: None }
    }

    /// Lets an observer see its events.
    pub(crate) fn observed(self, observed: Option<Box<ObservedRequest>>) -> Self {
        Self { observed, ..self }
    }

    /// Polls for the next event; `None` after the last one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        let arrived = match &mut self.source {
            ExchangeSource::Channel(exchange) => ready!(exchange.poll_next(cx)),
            ExchangeSource::Http(exchange) => ready!(exchange.poll_next(cx)),
            ExchangeSource::Failed(failure) => Some(ExchangeEvent::Failed((**failure).clone())),
            ExchangeSource::Finished => return Poll::Ready(None),
        };
        let arrived = arrived.unwrap_or_else(|| {
            ExchangeEvent::Failed(TransportFailure::maybe_sent("the response ended before it was complete"))
        });
        if let Some(observed) = &self.observed {
            observed.received(&arrived);
        }
        if matches!(arrived, ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)) {
            self.source = ExchangeSource::Finished;
        }
        Poll::Ready(Some(arrived))
    }

    /// Waits for the next event; `None` after the last one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<ExchangeEvent> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl fmt::Debug for RequestExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestExchange")
            .field("over", &matches!(self.source, ExchangeSource::Finished))
            .finish()
    }
}

impl fmt::Display for TransportFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for TransportFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause_source().map(|source| &**source as _)
    }
}

impl From<&str> for FailureCause {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<String> for FailureCause {
    fn from(message: String) -> Self {
        Self { message, source: None }
    }
}

impl FailureCause {
    /// Creates the cause that an error is, in the words of the error.
    pub(crate) fn from_error(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { message: error.to_string(), source: Some(error.into()) }
    }
}

impl TransportFailure {
    /// Creates the failure of a closed connection, where the server may have received the request.
    pub(crate) fn maybe_sent(cause: impl Into<FailureCause>) -> Self {
        Self { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::Closed(cause.into()) }
    }

    /// Creates the failure of a request without a response in time.
    pub(crate) fn timed_out(after: Duration) -> Self {
        Self { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::TimedOut { after } }
    }

    /// Creates the failure of a closed connection, where no byte of the request was sent.
    pub(crate) fn not_sent(cause: impl Into<FailureCause>) -> Self {
        Self { delivery: RequestDelivery::NotSent, kind: TransportFailureKind::Closed(cause.into()) }
    }

    /// Returns the error that caused the failure.
    pub(crate) fn cause_source(&self) -> Option<&ErrorSource> {
        match &self.kind {
            TransportFailureKind::Closed(cause) => cause.source.as_ref(),
            _ => None,
        }
    }
}
