use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream::{self, Stream};
use http::Response;
use trunkline_protocol::{Refusal, sse};
use trunkline_session::{Event as StoredEvent, EventId, StreamId};

use super::body::ResponseBody;
use super::endpoint::{Inner, streamed};
use super::legacy::render;
use super::stream::{Chunks, millis, write_message};
use crate::edge::legacy::{Carrier, LiveSession};

/// The time after which a client that lost a standing stream may come back, in milliseconds.
const RETRY_MS: u64 = 1000;

impl Inner {
    /// Opens a stream for what belongs to no call.
    pub(super) fn standing(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let standing = self.stand(session, standing_id(session.new_stream()), 0)?;
        let mut opening = Vec::new();
        if session.revision().primes_streams() {
            let primed = standing.carrier.poll_say(|| Poll::Ready(String::new()));
            if let Poll::Ready(Some((id, _))) = primed {
                sse::write_priming(&mut opening, &id.to_string(), Some(RETRY_MS));
                return Ok(streamed(Chunks(standing.chunks(opening))));
            }
        }
        Ok(standing.opened(opening))
    }

    /// Opens a stream again from an event on, with those that were kept since. Whatever carried it until now, and may not
    /// know yet that nobody listens, carries it no more.
    pub(super) async fn standing_again(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
        last: EventId,
        kept: Vec<StoredEvent>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let next = kept.last().map_or(last.seq, |event| event.id.seq) + 1;
        let standing = self.stand(session, last.stream, next)?;
        // What the carrier before has kept since it was looked is found by looking again; from here on it keeps nothing.
        let kept = if standing.carrier.took_over() { self.replay(session, last).await? } else { kept };
        Ok(standing.opened(render(&kept)))
    }

    fn stand(
        self: &Arc<Self>,
        session: &Arc<LiveSession>,
        stream: StreamId,
        next: u64,
    ) -> Result<Standing, Refusal> {
        let (most, events) = (self.core.limits.streams_per_session, self.sessions.events());
        let carrier = session.stand(stream, next, most, events)?;
        // The watch begins before the client can know that it is connected, so that no change is lost in between.
        session.watch(&*self.core.handler);
        Ok(Standing { inner: self.clone(), carrier })
    }
}

/// Marks the numbers of standing streams, so that a client's `Last-Event-ID` tells which kind it was.
fn standing_id(stream: StreamId) -> StreamId {
    StreamId(stream.0 | STANDING)
}

pub(super) fn is_standing(stream: StreamId) -> bool {
    stream.0 & STANDING != 0
}

const STANDING: u64 = 1 << 63;

/// A standing stream of a session.
struct Standing {
    inner: Arc<Inner>,
    carrier: Carrier,
}

/// What a standing stream does next.
enum Next {
    Say(EventId, String),
    /// Look again.
    Again,
    End,
}

impl Standing {
    fn opened(self, mut opening: Vec<u8>) -> Response<ResponseBody> {
        // A comment sends the head of the response at once, so that the client knows that it is connected.
        sse::write_comment(&mut opening, "");
        streamed(Chunks(self.chunks(opening)))
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
        if self.carrier.session().is_ended() {
            return None;
        }
        let core = self.inner.core.clone();
        let mut out = Vec::new();
        let next = tokio::select! {
            biased;
            () = core.shutdown.draining() => {
                // Told to come back in a while, clients do not all return at once.
                sse::write_retry(&mut out, millis(core.limits.keep_alive));
                return Some((out, None));
            }
            () = self.carrier.taken_over() => Next::End,
            () = self.carrier.session().keep().roots.wants_to_ask() => self.ask_roots(),
            next = self.change_or_end() => next,
            () = tokio::time::sleep(core.limits.keep_alive) => {
                sse::write_comment(&mut out, "");
                Next::Again
            }
        };
        match next {
            Next::Say(id, message) => write_message(&mut out, Some(id), &message),
            Next::Again => {}
            Next::End => return None,
        }
        Some((out, Some(self)))
    }

    fn ask_roots(&self) -> Next {
        let session = self.carrier.session();
        // Another stream of the session may have been quicker.
        match self.carrier.poll_say(|| session.ask_roots().map_or(Poll::Pending, Poll::Ready)) {
            Poll::Ready(Some((id, request))) => Next::Say(id, request),
            Poll::Ready(None) => Next::End,
            Poll::Pending => Next::Again,
        }
    }

    /// Waits for a change, or for the session to end, which wakes whoever waits here.
    async fn change_or_end(&self) -> Next {
        let session = self.carrier.session();
        let watch = session.watch(&*self.inner.core.handler);
        std::future::poll_fn(|cx| {
            // Asked first, because that is what makes sure of being woken.
            let said = self.carrier.poll_say(|| watch.poll_message(cx));
            if session.is_ended() {
                return Poll::Ready(Next::End);
            }
            said.map(|said| said.map_or(Next::End, |(id, message)| Next::Say(id, message)))
        })
        .await
    }
}
