use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream::{self, Stream};
use http::Response;
use trunkline_protocol::{Refusal, sse};
use trunkline_session::{EventId, StreamEvent as StoredEvent, StreamId};

use super::body::McpResponseBody;
use super::endpoint::{HttpServiceInner, event_stream_response};
use super::legacy::render_events;
use super::stream::{ChunkStreamBody, millis, write_message};
use crate::edge::legacy::{EventRecord, LiveSession, StandaloneConnection};
use crate::server_core::now;

/// The SSE `retry` time of a standalone stream, in milliseconds.
const RETRY_MS: u64 = 1000;

impl HttpServiceInner {
    /// Opens a standalone stream, for messages that belong to no call.
    pub(super) async fn open_standalone(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
    ) -> Result<Response<McpResponseBody>, Refusal> {
        let stream = standalone_id(session.new_stream());
        self.claim_outbox(session, stream).await?;
        let standalone = self.attach_standalone(session, stream, 0)?;
        let mut opening = Vec::new();
        if session.revision().primes_streams() {
            let primed = standalone.connection.poll_event(|| Poll::Ready(String::new()));
            if let Poll::Ready(Some((record, _))) = primed
                && let Some(id) = record.wait().await
            {
                sse::write_priming(&mut opening, &id.to_string(), Some(RETRY_MS));
                return Ok(event_stream_response(ChunkStreamBody(standalone.chunks(opening))));
            }
        }
        Ok(standalone.into_response(opening))
    }

    /// Resumes a stream from an event on, with the events stored since. The previous connection, which may not have
    /// noticed yet that its client has disconnected, sends no more of them.
    pub(super) async fn resume_standalone(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
        last: EventId,
        kept: Vec<StoredEvent>,
    ) -> Result<Response<McpResponseBody>, Refusal> {
        self.claim_outbox(session, last.stream).await?;
        // Once it has the claim, no other process stores events any more.
        let kept = if session.process().is_some() { self.replay(session, last).await? } else { kept };
        let next = kept.last().map_or(last.seq, |event| event.id.seq) + 1;
        let standalone = self.attach_standalone(session, last.stream, next)?;
        // A second replay finds the events that the previous connection stored since the first; from here on it
        // stores none.
        let kept = if standalone.connection.took_over() { self.replay(session, last).await? } else { kept };
        Ok(standalone.into_response(render_events(&kept)))
    }

    /// Makes this process the one that sends the messages of a session that belong to no call, where several share it, and takes
    /// over what the one before it has not sent.
    async fn claim_outbox(&self, session: &LiveSession, stream: StreamId) -> Result<(), Refusal> {
        let (Some(link), Some(process)) = (&self.core.bus, session.process()) else { return Ok(()) };
        let claim = self.sessions.events().claim(session.id(), process, now()).await.map_err(|error| {
            tracing::error!(%error, "a standalone stream could not be claimed");
            Refusal::STORE_UNAVAILABLE
        })?;
        let left = match claim.previous.filter(|previous| *previous != process) {
            Some(previous) => link.take_over(session.id(), stream, previous).await,
            None => None,
        };
        session.own_outbox(&*self.core.handler, claim.fence, left);
        Ok(())
    }

    fn attach_standalone(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
        stream: StreamId,
        next: u64,
    ) -> Result<StandaloneSseStream, Refusal> {
        let (most, events) = (self.core.limits.streams_per_session, self.sessions.events());
        let connection = session.attach_standalone(stream, next, most, events)?;
        // The subscription begins before the client can know that it is connected, so that no change is lost in
        // between.
        session.subscription(&*self.core.handler);
        Ok(StandaloneSseStream { inner: self.clone(), connection })
    }
}

/// Marks the ids of standalone streams, so that a client's `Last-Event-ID` reveals the kind of its stream.
fn standalone_id(stream: StreamId) -> StreamId {
    StreamId(stream.0 | STANDALONE_BIT)
}

pub(super) fn is_standalone(stream: StreamId) -> bool {
    stream.0 & STANDALONE_BIT != 0
}

const STANDALONE_BIT: u64 = 1 << 63;

/// A standalone stream of a session.
struct StandaloneSseStream {
    inner: Arc<HttpServiceInner>,
    connection: StandaloneConnection,
}

/// The next event of a standalone stream.
enum StandaloneEvent {
    Message(EventRecord, String),
    /// Poll again.
    Poll,
    End,
}

impl StandaloneSseStream {
    fn into_response(self, mut opening: Vec<u8>) -> Response<McpResponseBody> {
        // A comment sends the head of the response at once, so that the client knows that it is connected.
        sse::write_comment(&mut opening, "");
        event_stream_response(ChunkStreamBody(self.chunks(opening)))
    }

    fn chunks(self, opening: Vec<u8>) -> Pin<Box<dyn Stream<Item = Vec<u8>> + Send>> {
        Box::pin(stream::unfold((Some(self), Some(opening)), |(standalone, opening)| async move {
            let standalone = standalone?;
            match opening {
                Some(opening) => Some((opening, (Some(standalone), None))),
                None => standalone.next_chunk().await.map(|(chunk, standalone)| (chunk, (standalone, None))),
            }
        }))
    }

    /// Waits for the next chunk; `None` after the last.
    async fn next_chunk(self) -> Option<(Vec<u8>, Option<Self>)> {
        // The session may have ended while the last chunk was being written, when no task waited here to be woken.
        if self.connection.session().is_ended() {
            return None;
        }
        let core = self.inner.core.clone();
        let mut out = Vec::new();
        let next = tokio::select! {
            biased;
            () = core.shutdown.draining() => {
                // With a longer `retry` time, clients do not all reconnect at once.
                sse::write_retry(&mut out, millis(core.limits.keep_alive));
                return Some((out, None));
            }
            () = self.connection.taken_over() => StandaloneEvent::End,
            () = self.connection.session().state().roots.wait_until_wanted(),
                if self.connection.session().has_outbox() => self.request_roots(),
            next = self.change_or_end() => next,
            () = tokio::time::sleep(core.limits.keep_alive) => {
                sse::write_comment(&mut out, "");
                StandaloneEvent::Poll
            }
        };
        match next {
            StandaloneEvent::Message(record, message) => {
                let (id, message) = self.connection.stored(record, message).await?;
                core.observe_sent(|| self.connection.session().observed(), &message);
                write_message(&mut out, id, &message);
            }
            StandaloneEvent::Poll => {}
            StandaloneEvent::End => return None,
        }
        Some((out, Some(self)))
    }

    fn request_roots(&self) -> StandaloneEvent {
        let session = self.connection.session();
        // Another stream of the session may have taken it first.
        match self.connection.poll_event(|| session.request_roots().map_or(Poll::Pending, Poll::Ready)) {
            Poll::Ready(Some((record, request))) => StandaloneEvent::Message(record, request),
            Poll::Ready(None) => StandaloneEvent::End,
            Poll::Pending => StandaloneEvent::Poll,
        }
    }

    /// Waits for a change, or for the session to end, which wakes this task too.
    async fn change_or_end(&self) -> StandaloneEvent {
        let session = self.connection.session();
        let subscription = session.subscription(&*self.inner.core.handler);
        std::future::poll_fn(|cx| {
            // Another process may send the messages until this one takes over.
            if !session.has_outbox() {
                subscription.register(cx.waker());
            }
            // Polled first, because that registers the waker.
            let event = self.connection.poll_event(|| subscription.poll_message(cx));
            if session.is_ended() {
                return Poll::Ready(StandaloneEvent::End);
            }
            event.map(|event| {
                event.map_or(StandaloneEvent::End, |(record, message)| {
                    StandaloneEvent::Message(record, message)
                })
            })
        })
        .await
    }
}
