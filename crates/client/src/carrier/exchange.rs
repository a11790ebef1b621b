use std::fmt;
use std::task::{Context, Poll, ready};

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Notification, Raw};

use super::asked::Asked;
use super::channel::Waiting;
use super::http::Replies;
use crate::error::Error;

/// One request that is on its way, as a stream of what the server says within it.
///
/// Dropping it cancels the request.
pub(crate) struct Exchange {
    arrivals: Arrivals,
}

enum Arrivals {
    /// Over a channel, where a box for each request would be felt.
    Channel(Waiting),
    /// Over HTTP.
    Http(Replies),
    Over,
}

/// Something that the server said within a request.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Progress, a log message, or a change on a standing stream.
    Notice(Notification),
    /// A question, to be answered under its id by [`Carrier::post`](super::Carrier::post).
    Question(Asked),
    /// Notices came faster than they were taken, and the oldest of them are gone.
    Skipped,
    /// The response, result or error as the server wrote it; nothing comes after it.
    Response(Result<RawResult, Raw>),
    /// There will be no response; nothing comes after it.
    Lost(Loss),
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Whether the server may have seen the request.
    pub(crate) reach: Reach,
    /// What happened.
    pub(crate) kind: LossKind,
}

/// How far a request got. Only one that certainly did not reach the server may ever be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The server certainly did not act on the request: no byte left, or it said so itself.
    NotReached,
    /// The server may have acted on it.
    MayHaveReached,
}

/// What happened to a request without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
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

impl Exchange {
    pub(super) fn over_http(replies: Replies) -> Self {
        Self { arrivals: Arrivals::Http(replies) }
    }

    pub(super) fn over_channel(waiting: Waiting) -> Self {
        Self { arrivals: Arrivals::Channel(waiting) }
    }

    /// Polls for what the server says next; `None` after the last word.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        let arrived = match &mut self.arrivals {
            Arrivals::Channel(waiting) => ready!(waiting.poll_next(cx)),
            Arrivals::Http(replies) => ready!(replies.poll_next(cx)),
            Arrivals::Over => return Poll::Ready(None),
        };
        let arrived = arrived.unwrap_or_else(|| {
            Arrived::Lost(Loss::may_have_reached("the response ended before it was complete"))
        });
        if matches!(arrived, Arrived::Response(_) | Arrived::Lost(_)) {
            self.arrivals = Arrivals::Over;
        }
        Poll::Ready(Some(arrived))
    }

    /// Waits for what the server says next; `None` after the last word. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Arrived> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("over", &matches!(self.arrivals, Arrivals::Over)).finish()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for Loss {}

impl Loss {
    /// Says that the connection is gone, and the server may have seen the request.
    pub(crate) fn may_have_reached(how: impl Into<String>) -> Self {
        Self { reach: Reach::MayHaveReached, kind: LossKind::Closed(how.into()) }
    }

    /// Says that the connection is gone, and nothing of the request left.
    pub(crate) fn not_reached(how: impl Into<String>) -> Self {
        Self { reach: Reach::NotReached, kind: LossKind::Closed(how.into()) }
    }
}
