use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::envelope::{self, Incoming};
use trunkline_protocol::{Id, Message, Method, Raw, Response, emit};
use trunkline_transport::http::ResponseBody;

use super::CLOSED;
use super::answer::{Answer, InSession, explain, malformed};
use super::closing::Place;
use super::events::{Events, Next};
use super::head::{Media, media};
use super::resumption::Resumption;
use super::shared::{NoStream, Shared, lost};
use crate::carrier::{Arrived, Loss, LossKind, Mirror, Outgoing, Reach};

/// How often in a row taking up a broken stream may fail.
const MOST_FAILURES: u32 = 5;

/// How often in a row a stream that was taken up again may end without a word. A server that lets its clients poll does so
/// for as long as a call runs, so that this is not few; the deadlines of the call are what ends the waiting.
const MOST_EMPTY: u32 = 1000;

/// How much of a body that is no JSON is read, for people.
const EXCERPT_BYTES: usize = 2048;

/// Everything that the server says within one request. Nothing is sent before it is polled.
pub(in crate::carrier) struct Replies {
    stage: Stage,
    shared: Arc<Shared>,
    has_begun: bool,
    /// Where the end of the connection is waited for.
    place: Place,
}

impl Replies {
    pub(super) fn new(shared: Arc<Shared>, outgoing: Outgoing) -> Self {
        let stage = Stage::Waiting(Box::pin(begin(shared.clone(), outgoing)));
        Self { stage, shared, has_begun: false, place: Place::default() }
    }

    /// Polls for what the server says next; `None` if it says nothing any more.
    pub(in crate::carrier) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        if self.shared.is_over() {
            return Poll::Ready(Some(self.closed()));
        }
        self.has_begun = true;
        if let Poll::Ready(arrived) = self.poll_stage(cx) {
            return Poll::Ready(arrived);
        }
        if self.shared.closing.wait(&mut self.place, cx.waker()) {
            return Poll::Ready(Some(self.closed()));
        }
        Poll::Pending
    }

    fn poll_stage(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        loop {
            if let Stage::Waiting(next) = &mut self.stage {
                let (arrived, stage) = ready!(next.as_mut().poll(cx));
                self.stage = stage;
                return Poll::Ready(Some(arrived));
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Streaming(reply) => Stage::Waiting(Box::pin(reply.next())),
                Stage::Waiting(_) | Stage::Over => return Poll::Ready(None),
            };
        }
    }

    fn closed(&self) -> Arrived {
        let loss = if self.has_begun { Loss::may_have_reached } else { Loss::not_reached };
        Arrived::Lost(loss(CLOSED))
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.shared.closing.leave(&mut self.place);
    }
}

/// How far a request is.
enum Stage {
    /// To be sent, or listened to: what comes next, and how far it is then.
    Waiting(Pin<Box<dyn Future<Output = (Arrived, Stage)> + Send>>),
    Streaming(Box<Reply>),
    Over,
}

/// Sends a request, and waits for the first thing that is said. The arguments of an `async fn` would be kept twice, by every
/// call.
fn begin(shared: Arc<Shared>, mut outgoing: Outgoing) -> impl Future<Output = (Arrived, Stage)> + Send {
    let id = outgoing.id;
    async move {
        let permit = match shared.places.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            // Nobody closes the semaphore.
            Err(_) => Box::pin(shared.places.clone().acquire_owned()).await.ok(),
        };
        if outgoing.needs_listener()
            && let Some(listening) = shared.until_listening()
        {
            Box::pin(listening).await;
        }
        let mut guard = Guard::new(&shared, &outgoing);
        let session = shared.session_number();
        let (answer, mut response) = match shared.send(&mut outgoing).await {
            Ok(answered) => answered,
            Err(loss) => return guard.last(Arrived::Lost(loss)),
        };
        match answer {
            Answer::Json => match response.body.read_all(shared.limits.message_bytes).await {
                Ok(body) => guard.last(read_response(body, id, &shared)),
                Err(error) => guard.last(Arrived::Lost(lost(&error))),
            },
            Answer::Events => {
                let events = Events::new(response.body, &shared.limits);
                let resumption = Resumption::default();
                let reply =
                    Reply { shared, id, session, guard, events, resumption, noise: 0, _permit: permit };
                Box::new(reply).next().await
            }
            // A server that fails at the first word has said nothing about what it speaks, whatever else it says.
            Answer::Refused(loss, session) if outgoing.finds_out() && response.status.is_server_error() => {
                let beginning = Box::pin(response.body.read_beginning(EXCERPT_BYTES)).await;
                guard.last(Arrived::Lost(explain(loss, &beginning, session)))
            }
            Answer::Refused(loss, session) => {
                let kind = media(&response.headers);
                let reading = read_refusal(kind, &mut response.body, (loss, session), id, &shared);
                let last = Box::pin(reading).await;
                guard.last(last)
            }
            Answer::Lost(loss) => guard.last(Arrived::Lost(loss)),
        }
    }
}

/// Reads a body that is the response.
fn read_response(body: Bytes, id: u64, shared: &Shared) -> Arrived {
    let problem = match envelope::read_from_server(body, shared.limits.bounds) {
        Ok(Incoming::One(message)) => match response_to(message, id, Lenient::Yes) {
            Some(outcome) => return Arrived::Response(outcome),
            None => "it does not answer the request".to_owned(),
        },
        Ok(Incoming::Batch(messages)) => {
            let mut messages = messages.into_iter().flatten();
            match messages.find_map(|message| response_to(message, id, Lenient::No)) {
                Some(outcome) => return Arrived::Response(outcome),
                None => "it does not answer the request".to_owned(),
            }
        }
        Err(unreadable) => unreadable.refusal.to_string(),
    };
    Arrived::Lost(malformed(format!("the response cannot be read: {problem}")))
}

/// Reads the body of a refusal: an error that echoes the request's id answers it.
async fn read_refusal(
    media: Media,
    body: &mut ResponseBody,
    (loss, session): (Loss, InSession),
    id: u64,
    shared: &Shared,
) -> Arrived {
    if media != Media::Json {
        return Arrived::Lost(explain(loss, &body.read_beginning(EXCERPT_BYTES).await, session));
    }
    let Ok(body) = body.read_all(shared.limits.message_bytes).await else { return Arrived::Lost(loss) };
    match envelope::read(body.clone(), shared.limits.bounds) {
        Ok(Incoming::One(message)) => match response_to(message, id, Lenient::No) {
            Some(Err(error)) => Arrived::Response(Err(error)),
            _ => Arrived::Lost(explain(loss, &body, session)),
        },
        _ => Arrived::Lost(explain(loss, &body, session)),
    }
}

/// Tells whether an error that names no request may be taken for the answer, since there is only one it can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lenient {
    Yes,
    No,
}

type Outcome = Result<RawResult, Raw>;

fn response_to(message: Message, id: u64, lenient: Lenient) -> Option<Outcome> {
    let Message::Response(Response { id: named, outcome }) = message else { return None };
    match named {
        Some(named) => (named == Id::from_number(id)).then_some(outcome),
        None => (lenient == Lenient::Yes && outcome.is_err()).then_some(outcome),
    }
}

/// A request whose response comes in a stream.
struct Reply {
    shared: Arc<Shared>,
    id: u64,
    /// Which session it belongs to.
    session: u64,
    guard: Guard,
    events: Events,
    resumption: Resumption,
    noise: usize,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Reply {
    async fn next(mut self: Box<Self>) -> (Arrived, Stage) {
        loop {
            match self.events.next(&mut self.resumption).await {
                Next::Message(Message::Notification(notice)) => {
                    return (Arrived::Notice(notice), Stage::Streaming(self));
                }
                Next::Message(Message::Request(request)) => {
                    if self.guard.stands_alone {
                        // It is not interrupted by questions; they would be its result.
                        tracing::debug!(method = %request.method, "dropped a request of the server");
                    } else if request.method == Method::Ping.as_str() {
                        self.shared.pong(&request.id);
                    } else {
                        return (Arrived::Question(request.into()), Stage::Streaming(self));
                    }
                }
                Next::Message(Message::Response(Response { id: Some(id), outcome }))
                    if id == Id::from_number(self.id) =>
                {
                    let Self { mut guard, events, .. } = *self;
                    events.finish();
                    return guard.last(Arrived::Response(outcome));
                }
                Next::Message(Message::Response(response)) => {
                    tracing::debug!(id = ?response.id, "dropped a response that nobody waits for");
                }
                Next::Noise(unreadable) if unreadable.id == Some(Id::from_number(self.id)) => {
                    let problem = format!("the response cannot be read: {}", unreadable.refusal);
                    return self.guard.last(Arrived::Lost(malformed(problem)));
                }
                Next::Noise(unreadable) => {
                    self.noise += 1;
                    tracing::debug!(problem = %unreadable.refusal, "skipped what is no message");
                    if self.noise > self.shared.limits.noise {
                        let problem = "the server sent too many things that are no messages".to_owned();
                        return self.guard.last(Arrived::Lost(malformed(problem)));
                    }
                }
                Next::TooLong(limit) => {
                    let kind = LossKind::TooLong { limit };
                    return self.guard.last(Arrived::Lost(Loss { reach: Reach::MayHaveReached, kind }));
                }
                Next::End(how) => {
                    if let Err(loss) = Box::pin(self.resume(how)).await {
                        return self.guard.last(Arrived::Lost(loss));
                    }
                }
            }
        }
    }

    /// Takes the stream up again where it broke; the request may have been seen, so that nothing else is left to do.
    async fn resume(&mut self, how: String) -> Result<(), Loss> {
        let mut how = how;
        if self.resumption.count_end() > MOST_EMPTY {
            return Err(Loss::may_have_reached(how));
        }
        loop {
            let Some(last) = self.resumption.last().filter(|_| !self.guard.stands_alone) else {
                return Err(Loss::may_have_reached(how));
            };
            let last = last.clone();
            tokio::time::sleep(self.resumption.delay()).await;
            match self.shared.open_stream(self.session, Some(&last)).await {
                Ok(events) => {
                    self.events = events;
                    return Ok(());
                }
                Err(NoStream::Never(loss)) => return Err(Loss { reach: Reach::MayHaveReached, ..loss }),
                Err(NoStream::Later(why)) => how = why,
            }
            if self.resumption.fail() >= MOST_FAILURES {
                return Err(Loss::may_have_reached(how));
            }
        }
    }
}

/// Cancels a request of a session that is dropped before its last word.
///
/// One that stands alone needs nothing: its connection is closed, which is the cancellation.
struct Guard {
    shared: Arc<Shared>,
    id: u64,
    /// The request belongs to no session.
    stands_alone: bool,
    is_armed: bool,
}

impl Guard {
    fn new(shared: &Arc<Shared>, outgoing: &Outgoing) -> Self {
        let stands_alone = matches!(outgoing.mirror, Mirror::Whole { .. });
        let is_armed = !stands_alone && outgoing.is_cancellable();
        Self { shared: shared.clone(), id: outgoing.id, stands_alone, is_armed }
    }

    /// Ends the request with its last word.
    fn last(&mut self, last: Arrived) -> (Arrived, Stage) {
        self.is_armed = false;
        (last, Stage::Over)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let cancelled = emit::notification("notifications/cancelled", |params| {
            params.open_object();
            params.plain_key("requestId");
            params.unsigned(self.id);
            params.close_object();
        });
        self.shared.post_beside(cancelled);
    }
}
