//! Requests over Streamable HTTP, in both eras: each is a `POST` of its own, answered by JSON or by an event
//! stream.
//!
//! The request itself determines the era: one that mirrors its whole body in headers is stateless, and closing its
//! stream cancels it. Any other belongs to a session: its stream may be resumed, and a notification cancels it.
//!
//! # Invariants
//!
//! - A broken stream is resumed after its last event, or the call fails; the request is never sent twice:
//!   `broken_response_stream_is_resumed_after_its_last_event_id`,
//!   `http_response_truncated_at_any_byte_fails_the_call_without_retry`.
//! - A rejected HTTP+SSE `POST` fails only its own call: `rejected_sse_post_fails_only_its_own_call`.

mod authorized_http;
mod close_signal;
mod credential_echo;
mod custom_headers;
mod endpoint;
mod http_exchange;
mod http_session;
mod http_sse;
mod mcp_headers;
mod response_head;
mod resumption;
mod shared;
mod sse_messages;
mod standalone_stream;

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use trunkline_protocol::envelope::MessageLimits;
use trunkline_transport::Secret;

pub(crate) use self::authorized_http::{AuthorizedHttp, authorization_headers};
pub(crate) use self::custom_headers::CustomHeaders;
pub(super) use self::http_exchange::HttpExchange;
pub(crate) use self::http_sse::HttpSseChannel;
pub(crate) use self::response_head::status_failure;
pub(crate) use self::shared::HttpShared;
use super::{ClientTransport, OutgoingMessage, OutgoingRequest, RequestExchange, TransportFailure};

use crate::message_budget::MessageBudget;
use crate::resumable_session::ResumableSession;

/// The reason of failures after the client closed the connection.
const CLOSED_MESSAGE: &str = "the connection was closed";

/// The limits of responses over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HttpLimits {
    /// Nesting depth and batch size of messages.
    pub(crate) bounds: MessageLimits,
    /// The largest message in bytes.
    pub(crate) message_bytes: usize,
    /// Concurrent requests; beyond it they wait.
    pub(crate) in_flight: usize,
    /// Malformed messages of one stream before it is closed.
    pub(crate) malformed_messages: usize,
    /// The memory for messages that are being received.
    pub(crate) message_memory: MessageBudget,
}

/// The Streamable HTTP transport.
pub(crate) struct StreamableHttpTransport {
    shared: Arc<HttpShared>,
}

impl StreamableHttpTransport {
    /// Creates the transport, in a session that another client opened if there is one. Otherwise no connection is
    /// opened before the first request.
    pub(crate) fn new(shared: HttpShared, session: Option<&ResumableSession>) -> Self {
        let shared = Arc::new(shared);
        if let Some(session) = session {
            shared.resume(session);
            standalone_stream::start_stream(&shared);
        }
        Self { shared }
    }
}

impl ClientTransport for StreamableHttpTransport {
    fn request(&self, outgoing: OutgoingRequest) -> RequestExchange {
        RequestExchange::over_http(HttpExchange::new(self.shared.clone(), outgoing))
    }

    fn post(&self, posted: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>> {
        let shared = self.shared.clone();
        async move {
            if shared.is_closed() {
                return Err(TransportFailure::not_sent(CLOSED_MESSAGE));
            }
            if posted.is_for_channels {
                return Ok(());
            }
            shared.post(posted).await?;
            standalone_stream::start_stream(&shared);
            Ok(())
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let shared = self.shared.clone();
        async move { shared.close().await }.boxed()
    }

    fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    fn session_id(&self) -> Option<Secret> {
        self.shared.session_id()
    }

    fn keep_session(&self) {
        self.shared.keep_session();
    }

    fn is_waiting_for_user(&self) -> bool {
        self.shared.is_waiting_for_user()
    }
}

impl Drop for StreamableHttpTransport {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl fmt::Debug for StreamableHttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamableHttpTransport").field("shared", &self.shared).finish()
    }
}
