use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream::{self, Stream};
use http::{HeaderValue, Response, StatusCode};
use trunkline_protocol::envelope::Malformed;
use trunkline_protocol::era::{Mirrored, SUPPORTED};
use trunkline_protocol::{Era, Message, Refusal, Request, Revision, sse};
use trunkline_session::{Event as StoredEvent, EventId, Principal, Replay, SessionId, StreamId};

use super::accept::Accepts;
use super::body::ResponseBody;
use super::carry::{Attached, first_event};
use super::endpoint::{Answered, Inner, SESSION_ID, accepted, respond, streamed};
use super::heads::Heads;
use super::stream::{CallStream, Chunks, millis, write_message};
use crate::change::{Change, Subscription};
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
                let answer = legacy::refuse(Some(&request.id), &refusal, Revision::NEWEST_LEGACY);
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
        let session = self.session(heads, principal).await.map_err(|refusal| (refusal, id))?;
        let sets_level =
            matches!(&message, Message::Request(request) if request.method == "logging/setLevel");
        let carriage = Carriage { may_ask: accepts.stream, env };
        let begun = legacy::begin(&self.core, &session, message, &carriage).keep(reserved);
        if sets_level {
            self.sessions.save(&session).await.map_err(|refusal| (refusal, None))?;
        }
        Ok(self.legacy_respond(begun, session, accepts).await)
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
        let begun = legacy::begin_batch(&self.core, &session, messages, &carriage).keep(reserved);
        Ok(self.legacy_respond(begun, session, accepts).await)
    }

    async fn legacy_respond(
        self: &Arc<Self>,
        begun: Begun,
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
        let mut call = Attached::new(exchange, session, events, limits.parked_for);
        match first_event(&mut call, accepts.stream, limits.stream_after).await {
            Some(Event::Answer(answer)) => respond(answer, as_stream),
            Some(Event::Nothing) => accepted(),
            first => streamed(CallStream::new(call, first, limits.keep_alive)),
        }
    }

    /// Opens a standing stream, or one that the client comes back to.
    pub(super) async fn get(self: &Arc<Self>, heads: &Heads<'_>, principal: &Principal) -> Answered {
        let fail = |refusal| (refusal, None);
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
            None => {
                let stream = standing_id(session.new_stream());
                self.standing(session, stream, 0, &[]).map_err(fail)
            }
            Some(last) => {
                let last = last.ok_or_else(|| fail(Refusal::NOT_RESUMABLE))?;
                let events = self.replay(&session, last).await.map_err(fail)?;
                let next = events.last().map_or(last.seq, |event| event.id.seq) + 1;
                if is_standing(last.stream) {
                    return self.standing(session, last.stream, next, &events).map_err(fail);
                }
                Ok(streamed(Chunks(self.clone().resumed(session, last, events))))
            }
        }
    }

    /// Ends a session.
    pub(super) async fn delete(self: &Arc<Self>, heads: &Heads<'_>, principal: &Principal) -> Answered {
        let fail = |refusal| (refusal, None);
        let id = session_id(heads).map_err(fail)?;
        self.sessions.close(id, principal).await.map_err(fail)?;
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    async fn replay(&self, session: &LiveSession, last: EventId) -> Result<Vec<StoredEvent>, Refusal> {
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

    /// Makes a stream for what belongs to no call.
    fn standing(
        self: &Arc<Self>,
        session: Arc<LiveSession>,
        stream: StreamId,
        next: u64,
        replayed: &[StoredEvent],
    ) -> Result<Response<ResponseBody>, Refusal> {
        session.stand(self.core.limits.streams_per_session)?;
        // The watch begins before the client can know that it is connected, so that no change is lost in between.
        session.watch(&*self.core.handler);
        let standing = Standing { inner: self.clone(), session, stream, next };
        let mut opening = render(replayed);
        if standing.session.revision().primes_streams() && next == 0 {
            let (id, mut standing) = standing.record("");
            sse::write_priming(&mut opening, &id.to_string(), Some(1000));
            standing.next = 1;
            return Ok(streamed(Chunks(standing.chunks(opening))));
        }
        // A comment sends the head of the response at once, so that the client knows that it is connected.
        sse::write_comment(&mut opening, "");
        Ok(streamed(Chunks(standing.chunks(opening))))
    }

    /// Finds the session that a request names, and checks the version that it names.
    async fn session(&self, heads: &Heads<'_>, principal: &Principal) -> Result<Arc<LiveSession>, Refusal> {
        let id = session_id(heads)?;
        match heads.version {
            Mirrored::Absent => {}
            Mirrored::Once(version) => check_version(version)?,
            Mirrored::Repeated => return Err(repeated("MCP-Protocol-Version")),
        }
        self.sessions.find(id, principal).await
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

fn check_version(header: &[u8]) -> Result<(), Refusal> {
    let name = String::from_utf8_lossy(header.trim_ascii());
    match Revision::parse(&name) {
        Some(revision) if revision.era() == Era::Legacy => Ok(()),
        _ => Err(Refusal::unsupported_version(&name, &SUPPORTED)),
    }
}

fn repeated(header: &str) -> Refusal {
    Refusal::INVALID_REQUEST.because(format!("the header {header} is repeated"))
}

/// Marks the numbers of standing streams, so that a client's `Last-Event-ID` tells which kind it was.
fn standing_id(stream: StreamId) -> StreamId {
    StreamId(stream.0 | STANDING)
}

fn is_standing(stream: StreamId) -> bool {
    stream.0 & STANDING != 0
}

const STANDING: u64 = 1 << 63;

fn render(events: &[StoredEvent]) -> Vec<u8> {
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

/// A standing stream of a session.
struct Standing {
    inner: Arc<Inner>,
    session: Arc<LiveSession>,
    stream: StreamId,
    next: u64,
}

impl Standing {
    fn record(mut self, message: &str) -> (EventId, Self) {
        let id = EventId { stream: self.stream, seq: self.next };
        self.next += 1;
        let data = bytes::Bytes::copy_from_slice(message.as_bytes());
        self.inner.sessions.events().append(self.session.id(), StoredEvent { id, data }, now());
        (id, self)
    }

    fn chunks(self, opening: Vec<u8>) -> Pin<Box<dyn Stream<Item = Vec<u8>> + Send>> {
        Box::pin(stream::unfold((Some(self), Some(opening)), |(standing, opening)| async move {
            let standing = standing?;
            match opening {
                Some(opening) => Some((opening, (Some(standing), None))),
                None => standing.next_chunk().await.map(|(chunk, standing)| (chunk, (standing, None))),
            }
        }))
    }

    /// Waits for what there is to say next; `None` after the last word.
    async fn next_chunk(self) -> Option<(Vec<u8>, Option<Self>)> {
        // Ended while the last chunk was being written: whoever ended it has woken nobody here.
        if self.session.is_ended() {
            return None;
        }
        let core = self.inner.core.clone();
        let watch = self.session.watch(&*core.handler);
        let mut out = Vec::new();
        tokio::select! {
            biased;
            () = core.shutdown.draining() => {
                // Told to come back in a while, clients do not all return at once.
                sse::write_retry(&mut out, millis(core.limits.keep_alive));
                Some((out, None))
            }
            () = self.session.keep().roots.wants_to_ask() => {
                // Another stream of the session may have been quicker.
                let Some(request) = self.session.ask_roots() else { return Some((out, Some(self))) };
                let (id, standing) = self.record(&request);
                write_message(&mut out, Some(id), &request);
                Some((out, Some(standing)))
            }
            change = self.change_or_end(&watch) => {
                let message = change?.legacy_message();
                let (id, standing) = self.record(&message);
                write_message(&mut out, Some(id), &message);
                Some((out, Some(standing)))
            }
            () = tokio::time::sleep(core.limits.keep_alive) => {
                sse::write_comment(&mut out, "");
                Some((out, Some(self)))
            }
        }
    }

    /// Waits for a change; `None` when the session ends, which wakes whoever waits here.
    async fn change_or_end(&self, watch: &Subscription) -> Option<Change> {
        std::future::poll_fn(|cx| {
            // Asked first, because that is what makes sure of being woken.
            let change = watch.poll_change(cx);
            if self.session.is_ended() { Poll::Ready(None) } else { change.map(Some) }
        })
        .await
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.session.sit();
    }
}
