use std::fmt;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Notification, RawJson};

use super::channel::ChannelExchange;
use super::http::HttpExchange;
use super::server_request::ServerRequest;
use crate::error::Error;

/// One request in flight, as a stream of events.
///
/// Dropping it cancels the request.
pub(crate) struct RequestExchange {
    source: ExchangeSource,
}

enum ExchangeSource {
    /// Over a channel; not boxed, since an allocation per request would be measurable.
    Channel(ChannelExchange),
    /// Over HTTP.
    Http(HttpExchange),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportFailure {
    /// Whether the server may have seen the request.
    pub(crate) delivery: DeliveryStatus,
    /// What happened.
    pub(crate) kind: TransportFailureKind,
}

/// Whether a request was delivered. Only one that certainly did not reach the server may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryStatus {
    /// The server certainly did not act on the request: no byte was sent, or the server rejected it.
    NotDelivered,
    /// The server may have acted on it.
    MaybeDelivered,
}

/// The kind of a transport failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransportFailureKind {
    /// The connection could not be opened, or is closed; with the reason.
    Closed(String),
    /// The server has lost the session (404).
    SessionGone,
    /// The server requires other credentials (401, 403).
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The header `WWW-Authenticate`, if there was one.
        challenge: Option<String>,
    },
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
        Self { source: ExchangeSource::Http(exchange) }
    }

    pub(super) fn over_channel(exchange: ChannelExchange) -> Self {
        Self { source: ExchangeSource::Channel(exchange) }
    }

    /// Polls for the next event; `None` after the last one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        let arrived = match &mut self.source {
            ExchangeSource::Channel(exchange) => ready!(exchange.poll_next(cx)),
            ExchangeSource::Http(exchange) => ready!(exchange.poll_next(cx)),
            ExchangeSource::Finished => return Poll::Ready(None),
        };
        let arrived = arrived.unwrap_or_else(|| {
            ExchangeEvent::Failed(TransportFailure::maybe_delivered(
                "the response ended before it was complete",
            ))
        });
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

impl std::error::Error for TransportFailure {}

impl TransportFailure {
    /// Creates the failure of a closed connection, where the server may have received the request.
    pub(crate) fn maybe_delivered(how: impl Into<String>) -> Self {
        Self { delivery: DeliveryStatus::MaybeDelivered, kind: TransportFailureKind::Closed(how.into()) }
    }

    /// Creates the failure of a request without a response in time.
    pub(crate) fn timed_out(after: Duration) -> Self {
        Self { delivery: DeliveryStatus::MaybeDelivered, kind: TransportFailureKind::TimedOut { after } }
    }

    /// Creates the failure of a closed connection, where no byte of the request was sent.
    pub(crate) fn not_delivered(how: impl Into<String>) -> Self {
        Self { delivery: DeliveryStatus::NotDelivered, kind: TransportFailureKind::Closed(how.into()) }
    }
}
