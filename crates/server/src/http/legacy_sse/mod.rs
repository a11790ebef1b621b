//! HTTP+SSE, the transport of revision 2024-11-05: one stream for all messages of the server, and one path for all
//! messages of the client.
//!
//! One stream is one channel. Its response body owns the driver of the channel and polls it, so that there is no
//! separate task: when the stream ends, for whatever reason, the session ends with it and its calls are cancelled.

mod inbox;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use http::{Method, Response};
use http_body::Body;
use trunkline_http1::server::RequestHead;
use trunkline_protocol::envelope::{self, MalformedMessage};
use trunkline_protocol::{Refusal, RequestId, Revision};
use trunkline_session::{Principal, SessionId};

use self::inbox::{InboxError, SseInbox};
use self::stream::SseSessionBody;
use super::auth::Authenticated;
use super::body::{self, McpResponseBody};
use super::endpoint::{HttpResult, HttpServiceInner, accepted_with, event_stream_response};
use super::mcp_headers::McpHeaders;
use super::open_channels::OpenChannels;
use super::options::SsePaths;
use super::refusal_response::{named_revision, refusal_response};
use super::request_tracing;
use crate::channel::ChannelServer;

/// The query parameter that names the stream to which a message belongs.
const SESSION_PARAMETER: &str = "sessionId";

/// The streams of one endpoint.
pub(super) struct SseStreams {
    open: Arc<DashMap<SessionId, SseStreamEntry>>,
    channels: OpenChannels,
}

/// The destination of messages to one stream.
struct SseStreamEntry {
    principal: Principal,
    inbox: Arc<SseInbox>,
    revision: Arc<StreamRevision>,
}

/// The protocol revision of a stream, for posts to it.
struct StreamRevision(AtomicU8);

impl StreamRevision {
    /// Until the handshake, the revision that has this transport.
    const INITIAL: Revision = Revision::V2024_11_05;

    fn set(&self, revision: Revision) {
        self.0.store(revision as u8, Ordering::Relaxed);
    }

    fn get(&self) -> Revision {
        let index = usize::from(self.0.load(Ordering::Relaxed));
        Revision::ALL.get(index).copied().unwrap_or(Self::INITIAL)
    }
}

impl SseStreams {
    pub(super) fn new(channels: OpenChannels) -> Self {
        Self { open: Arc::default(), channels }
    }

    /// Returns how many streams are open.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Finds the inbox of a stream; that of another principal is not found.
    fn find(&self, id: SessionId, principal: &Principal) -> Option<Arc<SseInbox>> {
        let entry = self.open.get(&id)?;
        (entry.principal == *principal).then(|| entry.inbox.clone())
    }

    /// Returns the protocol revision of the stream to which a request belongs.
    fn revision(&self, query: &str, principal: &Principal) -> Option<Revision> {
        let entry = self.open.get(&named_session(query).ok()??)?;
        (entry.principal == *principal).then(|| entry.revision.get())
    }
}

/// Removes a stream from the table when it ends.
struct SseStreamGuard {
    open: Arc<DashMap<SessionId, SseStreamEntry>>,
    id: SessionId,
    revision: Arc<StreamRevision>,
}

impl Drop for SseStreamGuard {
    fn drop(&mut self) {
        self.open.remove(&self.id);
    }
}

impl HttpServiceInner {
    /// Answers a request to one of the two paths; `Host`, `Origin` and token were checked before.
    pub(super) async fn handle_sse<B>(
        self: &Arc<Self>,
        paths: &SsePaths,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        body: B,
        sender: &Authenticated,
    ) -> Response<McpResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let principal = &sender.principal;
        let cookie = self.cookie(head.parts(), principal);
        let answered = match (head.path() == paths.stream, head.method()) {
            (true, &Method::GET) => {
                self.open_sse_stream(paths, head, headers, sender, cookie.as_ref().map(|c| c.state_id))
            }
            (false, &Method::POST) => self.handle_sse_message(head, headers, body, principal).await,
            _ => Err((Refusal::NOT_ALLOWED, None)),
        };
        let mut response = answered.unwrap_or_else(|(refusal, id)| {
            let revision = self.sse_streams.revision(head.query().unwrap_or_default(), principal);
            let revision = revision.or_else(|| named_revision(headers)).unwrap_or(StreamRevision::INITIAL);
            refusal_response(&refusal, id.as_ref(), revision)
        });
        if let Some(cookie) = cookie {
            cookie.set(response.headers_mut());
        }
        response
    }

    fn open_sse_stream(
        self: &Arc<Self>,
        paths: &SsePaths,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        sender: &Authenticated,
        state_id: Option<SessionId>,
    ) -> HttpResult {
        let principal = &sender.principal;
        let fail = |refusal| (refusal, None);
        if !headers.accepts().stream {
            return Err(fail(
                Refusal::NOT_ACCEPTABLE.with_message("this path needs Accept: text/event-stream"),
            ));
        }
        if self.core.shutdown.is_draining() {
            return Err(fail(Refusal::SHUTTING_DOWN));
        }
        let env = self.env(head).map_err(fail)?;
        let place = self.sse_streams.channels.admit(principal, head.remote_address());
        let place = place.ok_or_else(|| fail(Refusal::TOO_MANY))?;
        let id = SessionId::random();
        let (inbox, channel) = inbox::open(self.core.limits.message_bytes);
        let revision = Arc::new(StreamRevision(AtomicU8::new(StreamRevision::INITIAL as u8)));
        self.sse_streams
            .open
            .insert(id, SseStreamEntry { principal: principal.clone(), inbox, revision: revision.clone() });
        let guard = SseStreamGuard { open: self.sse_streams.open.clone(), id, revision };
        let server = ChannelServer::new(self.core.clone(), principal.clone(), channel);
        let server = server
            .over("sse")
            .with_state_id(state_id)
            .with_remote_address(head.remote_address())
            .with_env(env)
            .with_grant(sender.grant.clone())
            .with_activity(place.activity())
            .ended_by_owner()
            .without_backlog_limit();
        let server = server.with_start_timeout(self.core.limits.first_request_timeout);
        // A path alone: the endpoint must not depend on a host name that the client sent.
        let endpoint = format!("{}?{SESSION_PARAMETER}={id}", paths.messages);
        let keep_alive = self.core.limits.keep_alive;
        Ok(event_stream_response(SseSessionBody::new(server, &endpoint, keep_alive, (guard, place))))
    }

    async fn handle_sse_message<B>(
        self: &Arc<Self>,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        body: B,
        principal: &Principal,
    ) -> HttpResult
    where
        B: Body<Data = Bytes> + Send,
    {
        let fail = |refusal| (refusal, None);
        headers.check_body().map_err(fail)?;
        let named = named_session(head.query().unwrap_or_default()).map_err(fail)?;
        let inbox = named
            .and_then(|id| self.sse_streams.find(id, principal))
            .ok_or_else(|| fail(stream_not_found()))?;
        let limits = &self.core.limits;
        let (bytes, reserved) = body::read_body(body, &self.core).await.map_err(fail)?;
        // The stream would report the error too, but not which of the messages was meant.
        let id = check_message(bytes.clone(), limits.bounds)?;
        let bytes = request_tracing::trace_posted(bytes, limits.message_bytes);
        match tokio::time::timeout(limits.body_timeout, inbox.push(bytes, reserved)).await {
            Ok(Ok(())) => Ok(accepted_with("Accepted")),
            Ok(Err(InboxError::Closed)) => Err((stream_not_found(), id)),
            Err(_) => Err((Refusal::TOO_MANY.with_message("the stream does not read its messages"), id)),
        }
    }
}

fn stream_not_found() -> Refusal {
    Refusal::SESSION_NOT_FOUND.with_message("there is no such stream: open a new one")
}

/// Reads the id in a query; `None` if it cannot be one of ours.
///
/// # Errors
/// The query names no session, or more than one.
fn named_session(query: &str) -> Result<Option<SessionId>, Refusal> {
    let mut named =
        query.split('&').filter_map(|member| member.strip_prefix(SESSION_PARAMETER)?.strip_prefix('='));
    match (named.next(), named.next()) {
        (Some(id), None) => Ok(SessionId::parse(id.as_bytes())),
        _ => Err(Refusal::INVALID_REQUEST
            .with_message("the query must have one `sessionId`, as in the event `endpoint` of the stream")),
    }
}

/// Checks that a message can be read; returns its id if it is a request.
fn check_message(
    bytes: Bytes,
    bounds: envelope::MessageLimits,
) -> Result<Option<RequestId>, (Refusal, Option<RequestId>)> {
    match envelope::read(bytes, bounds) {
        Err(MalformedMessage { refusal, id }) => Err((refusal, id)),
        Ok(envelope::MessageOrBatch::One(message)) => Ok(super::endpoint::id_of(&message).cloned()),
        Ok(envelope::MessageOrBatch::Batch(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sse_post_query_must_name_exactly_one_session() {
        let id = "0123456789abcdef0123456789abcdef";
        for (query, expected) in [
            (format!("sessionId={id}"), Ok(true)),
            (format!("a=b&sessionId={id}&c"), Ok(true)),
            ("sessionId=evil".to_owned(), Ok(false)),
            (format!("sessionId={id}0"), Ok(false)),
            (format!("sessionId={}", id.to_uppercase()), Ok(false)),
            ("sessionId=".to_owned(), Ok(false)),
            (String::new(), Err(())),
            (format!("sessionid={id}"), Err(())),
            (format!("xsessionId={id}"), Err(())),
            (format!("sessionId={id}&sessionId={id}"), Err(())),
        ] {
            let found = named_session(&query).map(|id| id.is_some()).map_err(|_| ());
            assert_eq!(found, expected, "{query}");
        }
    }
}
