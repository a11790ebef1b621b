use std::fmt;
use std::task::{Context, Poll, ready};

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Notification, RawJson};

use super::channel::ChannelExchange;
use super::http::HttpExchange;
use super::server_request::ServerRequest;
use crate::error::Error;

/// One request that is on its way, as a stream of what the server says within it.
///
/// Dropping it cancels the request.
pub(crate) struct RequestExchange {
    source: ExchangeSource,
}

enum ExchangeSource {
    /// Over a channel, where a box for each request would be felt.
    Channel(ChannelExchange),
    /// Over HTTP.
    Http(HttpExchange),
    Finished,
}

/// Something that the server said within a request.
#[derive(Debug)]
pub(crate) enum ExchangeEvent {
    /// Progress, a log message, or a change on a standing stream.
    Notification(Notification),
    /// A question, to be answered under its id by [`ClientTransport::post`](super::ClientTransport::post).
    Request(ServerRequest),
    /// Notices came faster than they were taken, and the oldest of them are gone.
    Skipped,
    /// The response, result or error as the server wrote it; nothing comes after it.
    Response(Result<RawResult, RawJson>),
    /// There will be no response; nothing comes after it.
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

/// How far a request got. Only one that certainly did not reach the server may ever be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryStatus {
    /// The server certainly did not act on the request: no byte left, or it said so itself.
    NotDelivered,
    /// The server may have acted on it.
    MaybeDelivered,
}

/// What happened to a request without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransportFailureKind {
    /// The connection could not be made, or is gone; with a sentence that says how.
    Closed(String),
    /// The server does not know the session any more (404).
    SessionGone,
    /// The server wants credentials, or better ones (401, 403).
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The header `WWW-Authenticate`, if there was one.
        challenge: Option<String>,
    },
    /// The server answered with an HTTP status instead of a response.
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body, for people.
        excerpt: String,
    },
    /// What came is longer than the limit.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// What came is not the protocol; with a sentence that says what is wrong.
    Malformed(String),
}

impl RequestExchange {
    pub(super) fn over_http(replies: HttpExchange) -> Self {
        Self { source: ExchangeSource::Http(replies) }
    }

    pub(super) fn over_channel(waiting: ChannelExchange) -> Self {
        Self { source: ExchangeSource::Channel(waiting) }
    }

    /// Polls for what the server says next; `None` after the last word.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        let arrived = match &mut self.source {
            ExchangeSource::Channel(waiting) => ready!(waiting.poll_next(cx)),
            ExchangeSource::Http(replies) => ready!(replies.poll_next(cx)),
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

    /// Waits for what the server says next; `None` after the last word. Cancel safe.
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
    /// Says that the connection is gone, and the server may have seen the request.
    pub(crate) fn maybe_delivered(how: impl Into<String>) -> Self {
        Self { delivery: DeliveryStatus::MaybeDelivered, kind: TransportFailureKind::Closed(how.into()) }
    }

    /// Says that the connection is gone, and nothing of the request left.
    pub(crate) fn not_delivered(how: impl Into<String>) -> Self {
        Self { delivery: DeliveryStatus::NotDelivered, kind: TransportFailureKind::Closed(how.into()) }
    }
}
