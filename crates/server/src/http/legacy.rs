use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use http::{HeaderValue, Response, StatusCode};
use trunkline_protocol::envelope::Incoming;
use trunkline_protocol::era::Mirrored;
use trunkline_protocol::{Era, Id, Refusal, Request, Revision, Revisions, sse};
use trunkline_session::{Event as StoredEvent, EventId, Principal, Replay, SessionId};

use super::accept::Accepts;
use super::body::ResponseBody;
use super::carry::{Attached, Carried};
use super::endpoint::{Answered, Inner, SESSION_ID, accepted, answered, id_of, respond, streamed};
use super::heads::Heads;
use super::standing::is_standing;
use super::stream::{Chunks, write_message};
use super::taken::Taken;
use crate::core::now;
use crate::edge::Answer;
use crate::edge::legacy::{self, Begun, Carriage, LiveSession};
use crate::env::Env;
use crate::unanswered::Reserved;

impl Inner {
    /// Opens a session.
    pub(super) async fn legacy_initialize(
        &self,
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

    /// Takes the messages of a session: one, or those of a batch.
    pub(super) fn legacy<'a>(
        self: &'a Arc<Self>,
        heads: &Heads<'_>,
        sent: Incoming,
        principal: &'a Principal,
        carriage: Carriage,
        reserved: Option<Reserved>,
    ) -> Taken<'a> {
        let accepts = heads.accepts();
        let session = match self.named_session(heads) {
            Ok(session) => session,
            Err(refusal) => return Taken::Refused(refusal, request_id(&sent).cloned()),
        };
        if let Some(session) = self.sessions.find_here(session, principal) {
            return self.legacy_begin(session, sent, &carriage, reserved, accepts);
        }
        Taken::Later(Box::pin(async move {
            match self.sessions.find(session, principal).await {
                Ok(session) => self.legacy_begin(session, sent, &carriage, reserved, accepts),
                Err(refusal) => Taken::Refused(refusal, request_id(&sent).cloned()),
            }
        }))
    }

    fn legacy_begin<'a>(
        self: &'a Arc<Self>,
        session: Arc<LiveSession>,
        sent: Incoming,
        carriage: &Carriage,
        reserved: Option<Reserved>,
        accepts: Accepts,
    ) -> Taken<'a> {
        let (id, level) = (request_id(&sent).cloned(), session.level());
        let begun = match sent {
            Incoming::One(message) => legacy::begin(&self.core, &session, message, carriage),
            Incoming::Batch(messages) => legacy::begin_batch(&self.core, &session, messages, carriage),
        };
        let begun = begun.keep(reserved);
        if session.level() == level {
            return self.legacy_begun(begun, id, session, accepts);
        }
        Taken::Later(Box::pin(async move {
            match self.sessions.save(&session).await {
                Ok(()) => self.legacy_begun(begun, id, session, accepts),
                Err(refusal) => Taken::Refused(refusal, id),
            }
        }))
    }

    fn legacy_begun<'a>(
        &self,
        begun: Begun,
        id: Option<Id>,
        session: Arc<LiveSession>,
        accepts: Accepts,
    ) -> Taken<'a> {
        match begun {
            Begun::Accepted => Taken::Answered(accepted()),
            Begun::Answer(answer) => answered(answer, self.as_stream(accepts)),
            Begun::Exchange(exchange) => {
                let (events, ask_for) = (self.sessions.events().clone(), self.core.limits.parked_for);
                Taken::Call(Carried::Legacy(Attached::new(exchange, id, session, events, ask_for)))
            }
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
        self.sessions.find(self.named_session(heads)?, principal).await
    }

    /// Returns the session that a request names, and checks the version that it names.
    fn named_session(&self, heads: &Heads<'_>) -> Result<SessionId, Refusal> {
        let id = session_id(heads)?;
        match heads.version {
            Mirrored::Absent => Ok(id),
            Mirrored::Once(version) => check_version(version, self.core.revisions).map(|()| id),
            Mirrored::Repeated => Err(repeated("MCP-Protocol-Version")),
        }
    }

    /// Refuses what there is only where sessions are.
    fn keeps_sessions(&self) -> Result<(), Refusal> {
        self.core.revisions.newest_of(Era::Legacy).map(drop).ok_or(Refusal::NOT_ALLOWED)
    }
}

/// Returns the id of what is one request.
fn request_id(sent: &Incoming) -> Option<&Id> {
    match sent {
        Incoming::One(message) => id_of(message),
        Incoming::Batch(_) => None,
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
    let revision = std::str::from_utf8(header.trim_ascii()).ok().and_then(Revision::parse);
    match revision {
        Some(revision) if revision.era() == Era::Legacy => Ok(()),
        _ => Err(Refusal::unsupported_version(&String::from_utf8_lossy(header.trim_ascii()), spoken)),
    }
}

#[cold]
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
