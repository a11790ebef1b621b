use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use http::{HeaderValue, Response, StatusCode};
use trunkline_http1::server::RequestHead;
use trunkline_protocol::envelope::MessageOrBatch;
use trunkline_protocol::era::HeaderOccurrence;
use trunkline_protocol::{Era, Refusal, Request, RequestId, Revision, RevisionSet};
use trunkline_session::{EventId, EventReplay, Principal, SessionId, StreamEvent as StoredEvent};

use super::accept::AcceptedFormats;
use super::auth::Authenticated;
use super::body::McpResponseBody;
use super::call_exchange::{CallExchange, DetachableCall};
use super::endpoint::{HttpResult, HttpServiceInner, SESSION_ID, event_stream_response, id_of, respond};
use super::lost_call;
use super::mcp_headers::McpHeaders;
use super::post_message::{PostMessage, PostStart};
use super::resumed_stream::ResumedStream;
use super::standalone::is_standalone;
use super::stream::{ChunkStreamBody, write_message};
use crate::admission::BytePermit;
use crate::edge::legacy::{self, BreakableStream as _, LiveSession, TransportCapabilities};
use crate::edge::{MessageStart, RenderedResponse};
use crate::env::Env;
use crate::revocation::RevocationSignal;
use crate::server_core::now;
use crate::shutdown::DrainPolicy;
use crate::wire_tap::ObservedClient;

impl HttpServiceInner {
    /// Opens a session.
    pub(super) async fn legacy_initialize(
        &self,
        request: &Request,
        accepts: AcceptedFormats,
        sender: &Authenticated,
        env: Env,
        address: Option<IpAddr>,
    ) -> HttpResult {
        if self.core.shutdown.refuses_calls(DrainPolicy::Serve) {
            return Err((Refusal::SHUTTING_DOWN, Some(request.id.clone())));
        }
        let opened = match legacy::accept_handshake(&self.core, request, sender.identity()) {
            Ok(handshake) => {
                let client = ObservedClient::of_record(&handshake.record, "http");
                self.core.observe_answered(|| client, request, &handshake.response);
                self.sessions.open(handshake.record, env, address).await.map(|id| (id, handshake.response))
            }
            Err(refusal) => Err(refusal),
        };
        // In this era a refusal that concerns only the parameters is an ordinary JSON-RPC error response.
        let (id, message) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                // A server without the legacy era refuses in a revision of the modern one.
                let revision = self.core.revisions.newest_of(Era::Legacy).unwrap_or(Revision::NEWEST);
                let answer = legacy::refuse(Some(&request.id), &refusal, revision);
                return Ok(respond(answer, false));
            }
        };
        let mut response = respond(RenderedResponse { message, status: 200 }, self.prefers_stream(accepts));
        if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
            response.headers_mut().insert(SESSION_ID, value);
        }
        Ok(response)
    }

    /// Handles the messages of a session: one, or those of a batch.
    pub(super) fn handle_legacy<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        sent: MessageOrBatch,
        transport: TransportCapabilities,
        reserved: Option<BytePermit>,
    ) -> PostStart<'a> {
        let session = match self.named_session(post.headers) {
            Ok(session) => session,
            Err(refusal) => return self.refuse_post(post, &refusal, request_id(&sent)),
        };
        let principal = &post.sender.principal;
        if let Some(session) = self.sessions.find_local(session, principal) {
            return self.begin_legacy(post, session, sent, &transport, reserved);
        }
        self.defer(post, async move {
            let found = match (self.sessions.find(session, principal).await, &self.core.bus) {
                (Ok(session), Some(bus)) => bus.forward(&session, &sent).await.map(|()| session),
                (found, _) => found,
            };
            match found {
                Ok(session) => self.begin_legacy(post, session, sent, &transport, reserved),
                Err(refusal) => self.refuse_post(post, &refusal, request_id(&sent)),
            }
        })
    }

    fn begin_legacy<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        session: Arc<LiveSession>,
        sent: MessageOrBatch,
        transport: &TransportCapabilities,
        reserved: Option<BytePermit>,
    ) -> PostStart<'a> {
        let (id, changes) = (request_id(&sent).cloned(), session.record_changes());
        let begun = match sent {
            MessageOrBatch::One(message) => legacy::begin(&self.core, &session, message, transport),
            MessageOrBatch::Batch(messages) => legacy::begin_batch(&self.core, &session, messages, transport),
        };
        let begun = begun.hold_permit(reserved);
        let revocation = transport.grant.as_ref().and_then(|grant| grant.revocation.clone());
        if session.record_changes() == changes {
            return self.follow_legacy_start(post, begun, id, session, revocation);
        }
        self.defer(post, async move {
            match session.save().await {
                Ok(()) => self.follow_legacy_start(post, begun, id, session, revocation),
                Err(refusal) => self.refuse_post(post, &refusal, id.as_ref()),
            }
        })
    }

    fn follow_legacy_start<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        begun: MessageStart,
        id: Option<RequestId>,
        session: Arc<LiveSession>,
        revocation: Option<RevocationSignal>,
    ) -> PostStart<'a> {
        match begun {
            MessageStart::Call(exchange) => {
                let (events, ask_for) = (self.sessions.events().clone(), self.core.limits.suspended_for);
                let call = DetachableCall::new(exchange, id, session, events, ask_for);
                Ok(CallExchange::Legacy(call.revoked_by(revocation)))
            }
            begun => self.follow_start(post, begun),
        }
    }

    /// Opens a standalone stream, or resumes an earlier stream. Variables that the request carries are those of the
    /// session from here on.
    pub(super) async fn handle_get(
        self: &Arc<Self>,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        principal: &Principal,
    ) -> HttpResult {
        let fail = |refusal| (refusal, None);
        self.require_sessions().map_err(fail)?;
        if !headers.accepts().stream {
            return Err(fail(Refusal::NOT_ACCEPTABLE.with_message("a GET needs Accept: text/event-stream")));
        }
        let env = self.env(head).map_err(fail)?;
        let session = self.session(headers, principal).await.map_err(fail)?;
        let last = match headers.last_event_id {
            HeaderOccurrence::Absent => None,
            HeaderOccurrence::Once(value) => Some(std::str::from_utf8(value).ok().and_then(EventId::parse)),
            HeaderOccurrence::Repeated => Some(None),
        };
        // The stream of a call ends with it, so it may still be resumed; a standalone stream would end at once.
        let policy = match &last {
            Some(Some(last)) if !is_standalone(last.stream) => DrainPolicy::Serve,
            _ => DrainPolicy::Refuse,
        };
        if self.core.shutdown.refuses_calls(policy) {
            return Err(fail(Refusal::SHUTTING_DOWN));
        }
        session.state().replace_env(env);
        match last {
            None => self.open_standalone(&session).await.map_err(fail),
            Some(last) => {
                let last = last.ok_or_else(|| fail(Refusal::NOT_RESUMABLE))?;
                if session.stream(last.stream).is_some_and(|stream| stream.is_broken()) {
                    return Err(fail(Refusal::NOT_RESUMABLE));
                }
                let events = self.replay(&session, last).await.map_err(fail)?;
                if is_standalone(last.stream) {
                    return self.resume_standalone(&session, last, events).await.map_err(fail);
                }
                Ok(event_stream_response(ChunkStreamBody(self.clone().resume_stream(session, last, events))))
            }
        }
    }

    /// Ends a session.
    pub(super) async fn handle_delete(
        self: &Arc<Self>,
        headers: &McpHeaders<'_>,
        principal: &Principal,
    ) -> HttpResult {
        let fail = |refusal| (refusal, None);
        self.require_sessions().map_err(fail)?;
        let id = session_id(headers).map_err(fail)?;
        self.sessions.close(id, principal).await.map_err(fail)?;
        let mut response = Response::new(McpResponseBody::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    pub(super) async fn replay(
        &self,
        session: &LiveSession,
        last: EventId,
    ) -> Result<Vec<StoredEvent>, Refusal> {
        match self.sessions.events().replay(session.id(), last, now()).await {
            Ok(EventReplay::Events(events)) => Ok(events),
            Ok(EventReplay::Gone) => Err(Refusal::NOT_RESUMABLE),
            Err(error) => {
                tracing::error!(%error, "the event store failed");
                Err(Refusal::INTERNAL)
            }
        }
    }

    /// Resumes a stream from its stored events; its call may still run.
    fn resume_stream(
        self: Arc<Self>,
        session: Arc<LiveSession>,
        last: EventId,
        events: Vec<StoredEvent>,
    ) -> Pin<Box<dyn Stream<Item = Vec<u8>> + Send>> {
        let resumed = ResumedStream::new(self, session, last, events);
        Box::pin(stream::unfold(resumed, ResumedStream::next_chunk))
    }

    /// Finds the session that a request names, and checks the version that it names.
    async fn session(
        &self,
        headers: &McpHeaders<'_>,
        principal: &Principal,
    ) -> Result<Arc<LiveSession>, Refusal> {
        self.sessions.find(self.named_session(headers)?, principal).await
    }

    /// Returns the session that a request names, and checks the version that it names.
    fn named_session(&self, headers: &McpHeaders<'_>) -> Result<SessionId, Refusal> {
        let id = session_id(headers)?;
        match headers.version {
            HeaderOccurrence::Absent => Ok(id),
            HeaderOccurrence::Once(version) => check_version(version, self.core.revisions).map(|()| id),
            HeaderOccurrence::Repeated => Err(repeated_header("MCP-Protocol-Version")),
        }
    }

    /// Refuses the request if no legacy revision, and so no session, is served.
    fn require_sessions(&self) -> Result<(), Refusal> {
        self.core.revisions.newest_of(Era::Legacy).map(drop).ok_or(Refusal::NOT_ALLOWED)
    }
}

/// Returns the id of a message that is a single request.
fn request_id(sent: &MessageOrBatch) -> Option<&RequestId> {
    match sent {
        MessageOrBatch::One(message) => id_of(message),
        MessageOrBatch::Batch(_) => None,
    }
}

fn session_id(headers: &McpHeaders<'_>) -> Result<SessionId, Refusal> {
    match headers.session {
        HeaderOccurrence::Absent => Err(Refusal::SESSION_REQUIRED),
        HeaderOccurrence::Once(value) => SessionId::parse(value).ok_or(Refusal::SESSION_NOT_FOUND),
        HeaderOccurrence::Repeated => Err(repeated_header("Mcp-Session-Id")),
    }
}

fn check_version(header: &[u8], supported: RevisionSet) -> Result<(), Refusal> {
    let revision = std::str::from_utf8(header.trim_ascii()).ok().and_then(Revision::parse);
    match revision {
        Some(revision) if revision.era() == Era::Legacy => Ok(()),
        _ => Err(Refusal::unsupported_version(&String::from_utf8_lossy(header.trim_ascii()), supported)),
    }
}

#[cold]
fn repeated_header(header: &str) -> Refusal {
    Refusal::INVALID_REQUEST.with_message(format!("the header {header} is repeated"))
}

/// Renders stored events as they were.
pub(super) fn render_events(events: &[StoredEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        let message = String::from_utf8_lossy(&event.data);
        // The opening event has no message, and a note is for this server alone.
        if !message.is_empty() && !lost_call::is_note(&message) {
            write_message(&mut out, Some(event.id), &message);
        }
    }
    out
}
