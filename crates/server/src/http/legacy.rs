use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use http::{HeaderValue, Response, StatusCode};
use trunkline_protocol::envelope::Malformed;
use trunkline_protocol::era::Mirrored;
use trunkline_protocol::{Era, Id, Message, Refusal, Request, Revision, Revisions, sse};
use trunkline_session::{Event as StoredEvent, EventId, Principal, Replay, SessionId};

use super::accept::Accepts;
use super::body::ResponseBody;
use super::carry::{Attached, first_event};
use super::endpoint::{Answered, Inner, SESSION_ID, accepted, respond, respond_nothing, streamed};
use super::heads::Heads;
use super::standing::is_standing;
use super::stream::{CallStream, Chunks, write_message};
use crate::core::now;
use crate::edge::legacy::{self, Begun, Carriage, LiveSession};
use crate::edge::{Answer, Event};
use crate::env::Env;
use crate::unanswered::Reserved;

impl Inner {
    /// Opens a session.
    pub(super) async fn legacy_initialize(
        self: &Arc<Self>,
        request: &Request,
        accepts: Accepts,
        principal: Principal,
        env: Env,
    ) -> Answered {
        if self.core.shutdown.is_draining() {
            return Err((Refusal::SHUTTING_DOWN, Some(request.id.clone())));
        }
        let opened = match legacy::handshake(&self.core, request, principal) {
            Ok(handshake) => self.sessions.open(handshake.record, env).await.map(|id| (id, handshake.answer)),
            Err(refusal) => Err(refusal),
        };
        // In this era a refusal that concerns only the parameters travels as an ordinary answer.
        let (id, message) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                // A server without an era of sessions says so in the words of the other.
                let spoken = self.core.revisions.newest_of(Era::Legacy).unwrap_or(Revision::NEWEST);
                let answer = legacy::refuse(Some(&request.id), &refusal, spoken);
                return Ok(respond(answer, false));
            }
        };
        let mut response = respond(Answer { message, status: 200 }, self.as_stream(accepts));
        if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
            response.headers_mut().insert(SESSION_ID, value);
        }
        Ok(response)
    }

    /// Takes one message of a session.
    pub(super) async fn legacy_message(
        self: &Arc<Self>,
        heads: &Heads<'_>,
        message: Message,
        principal: &Principal,
        env: Env,
        reserved: Option<Reserved>,
    ) -> Answered {
        let accepts = heads.accepts();
        let id = match &message {
            Message::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let session = match self.session(heads, principal).await {
            Ok(session) => session,
            Err(refusal) => return Err((refusal, id)),
        };
        let carriage = Carriage { may_ask: accepts.stream, env };
        let level = session.level();
        let begun = legacy::begin(&self.core, &session, message, &carriage).keep(reserved);
        if session.level() != level {
            self.sessions.save(&session).await.map_err(|refusal| (refusal, id.clone()))?;
        }
        Ok(self.legacy_respond(begun, id, session, accepts).await)
    }

    /// Takes the messages of a batch.
    pub(super) async fn legacy_batch(
        self: &Arc<Self>,
        heads: &Heads<'_>,
        messages: Vec<Result<Message, Malformed>>,
        principal: &Principal,
        env: Env,
        reserved: Option<Reserved>,
    ) -> Answered {
        let accepts = heads.accepts();
        if matches!(heads.session, Mirrored::Absent) {
            let refusal = Refusal::INVALID_REQUEST.because("batches are part of revision 2025-03-26 only");
            return Err((refusal, None));
        }
        let session = self.session(heads, principal).await.map_err(|refusal| (refusal, None))?;
        let carriage = Carriage { may_ask: accepts.stream, env };
        let level = session.level();
        let begun = legacy::begin_batch(&self.core, &session, messages, &carriage).keep(reserved);
        if session.level() != level {
            self.sessions.save(&session).await.map_err(|refusal| (refusal, None))?;
        }
        Ok(self.legacy_respond(begun, None, session, accepts).await)
    }

    async fn legacy_respond(
        self: &Arc<Self>,
        begun: Begun,
        id: Option<Id>,
        session: Arc<LiveSession>,
        accepts: Accepts,
    ) -> Response<ResponseBody> {
        let as_stream = self.as_stream(accepts);
        let exchange = match begun {
            Begun::Accepted => return accepted(),
            Begun::Answer(answer) => return respond(answer, as_stream),
            Begun::Exchange(exchange) => exchange,
        };
        let limits = &self.core.limits;
        let events = self.sessions.events().clone();
        let revision = session.revision();
        let mut call = Attached::new(exchange, session, events, limits.parked_for);
        match first_event(&mut call, accepts.stream, limits.stream_after).await {
            Some(Event::Answer(answer)) => respond(answer, as_stream),
            // A call that was cancelled is not answered: its stream ends without a word. A client that takes no stream is told,
            // since HTTP has to answer a request with one or the other.
            Some(Event::Nothing) if accepts.stream => respond_nothing(),
            Some(Event::Nothing) => {
                respond(legacy::refuse(id.as_ref(), &Refusal::CANCELLED, revision), false)
            }
            first => streamed(CallStream::new(call, first, limits.keep_alive)),
        }
    }

    /// Opens a standing stream, or one that the client comes back to.
    pub(super) async fn get(self: &Arc<Self>, heads: &Heads<'_>, principal: &Principal) -> Answered {
        let fail = |refusal| (refusal, None);
        self.keeps_sessions().map_err(fail)?;
        if !heads.accepts().stream {
            return Err(fail(Refusal::NOT_ACCEPTABLE.because("a GET needs Accept: text/event-stream")));
        }
        let session = self.session(heads, principal).await.map_err(fail)?;
        if self.core.shutdown.is_draining() {
            return Err(fail(Refusal::SHUTTING_DOWN));
        }
        let last = match heads.last_event_id {
            Mirrored::Absent => None,
            Mirrored::Once(value) => Some(std::str::from_utf8(value).ok().and_then(EventId::parse)),
            Mirrored::Repeated => Some(None),
        };
        match last {
            None => self.standing(&session).map_err(fail),
            Some(last) => {
                let last = last.ok_or_else(|| fail(Refusal::NOT_RESUMABLE))?;
                let events = self.replay(&session, last).await.map_err(fail)?;
                if is_standing(last.stream) {
                    return self.standing_again(&session, last, events).await.map_err(fail);
                }
                Ok(streamed(Chunks(self.clone().resumed(session, last, events))))
            }
        }
    }

    /// Ends a session.
    pub(super) async fn delete(self: &Arc<Self>, heads: &Heads<'_>, principal: &Principal) -> Answered {
        let fail = |refusal| (refusal, None);
        self.keeps_sessions().map_err(fail)?;
        let id = session_id(heads).map_err(fail)?;
        self.sessions.close(id, principal).await.map_err(fail)?;
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    pub(super) async fn replay(
        &self,
        session: &LiveSession,
        last: EventId,
    ) -> Result<Vec<StoredEvent>, Refusal> {
        match self.sessions.events().replay(session.id(), last, now()).await {
            Ok(Replay::Events(events)) => Ok(events),
            Ok(Replay::Gone) => Err(Refusal::NOT_RESUMABLE),
            Err(error) => {
                tracing::error!(%error, "the event store failed");
                Err(Refusal::INTERNAL)
            }
        }
    }

    /// Goes on with a stream whose call may still run, from the events that were kept.
    fn resumed(
        self: Arc<Self>,
        session: Arc<LiveSession>,
        last: EventId,
        events: Vec<StoredEvent>,
    ) -> Pin<Box<dyn Stream<Item = Vec<u8>> + Send>> {
        let keep_alive = self.core.limits.keep_alive;
        Box::pin(stream::unfold((last, events), move |(last, events)| {
            let (inner, session) = (self.clone(), session.clone());
            async move {
                let (mut last, mut events) = (last, events);
                loop {
                    if let Some(newest) = events.last() {
                        last = newest.id;
                        return Some((render(&events), (last, Vec::new())));
                    }
                    let Some(state) = session.stream(last.stream) else {
                        // The call is over; what it said last may have come between the two looks.
                        events =
                            inner.replay(&session, last).await.ok().filter(|events| !events.is_empty())?;
                        continue;
                    };
                    let grown = state.grown.notified();
                    events = inner.replay(&session, last).await.ok()?;
                    if events.is_empty() && tokio::time::timeout(keep_alive, grown).await.is_err() {
                        let mut comment = Vec::new();
                        sse::write_comment(&mut comment, "");
                        return Some((comment, (last, Vec::new())));
                    }
                }
            }
        }))
    }

    /// Finds the session that a request names, and checks the version that it names.
    async fn session(&self, heads: &Heads<'_>, principal: &Principal) -> Result<Arc<LiveSession>, Refusal> {
        let id = session_id(heads)?;
        match heads.version {
            Mirrored::Absent => {}
            Mirrored::Once(version) => check_version(version, self.core.revisions)?,
            Mirrored::Repeated => return Err(repeated("MCP-Protocol-Version")),
        }
        self.sessions.find(id, principal).await
    }

    /// Refuses what there is only where sessions are.
    fn keeps_sessions(&self) -> Result<(), Refusal> {
        self.core.revisions.newest_of(Era::Legacy).map(drop).ok_or(Refusal::NOT_ALLOWED)
    }

    pub(super) fn as_stream(&self, accepts: Accepts) -> bool {
        (self.options.always_stream && accepts.stream) || !accepts.json
    }
}

fn session_id(heads: &Heads<'_>) -> Result<SessionId, Refusal> {
    match heads.session {
        Mirrored::Absent => Err(Refusal::SESSION_REQUIRED),
        Mirrored::Once(value) => SessionId::parse(value).ok_or(Refusal::SESSION_NOT_FOUND),
        Mirrored::Repeated => Err(repeated("Mcp-Session-Id")),
    }
}

fn check_version(header: &[u8], spoken: Revisions) -> Result<(), Refusal> {
    let name = String::from_utf8_lossy(header.trim_ascii());
    match Revision::parse(&name) {
        Some(revision) if revision.era() == Era::Legacy => Ok(()),
        _ => Err(Refusal::unsupported_version(&name, spoken)),
    }
}

fn repeated(header: &str) -> Refusal {
    Refusal::INVALID_REQUEST.because(format!("the header {header} is repeated"))
}

/// Writes kept events as they were.
pub(super) fn render(events: &[StoredEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        let message = String::from_utf8_lossy(&event.data);
        // The opening event has no message, and is not one to be shown again.
        if !message.is_empty() {
            write_message(&mut out, Some(event.id), &message);
        }
    }
    out
}
