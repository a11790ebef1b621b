use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use trunkline_protocol::{Id, Raw, Refusal};
use trunkline_session::{Event as StoredEvent, EventId, EventStore, StreamId};

use crate::core::now;
use crate::edge::legacy::{self, LegacyExchange, LiveSession, StreamState};
use crate::edge::modern::{self, ModernCall};
use crate::edge::{Answer, Event};

/// A call that an HTTP response carries, of either era.
pub(super) enum Carried {
    Modern(Box<ModernCall>),
    Legacy(Attached),
}

impl Carried {
    /// Polls for what the response must do next.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        match self {
            Self::Modern(call) => call.poll_event(cx),
            Self::Legacy(call) => call.poll_event(cx),
        }
    }

    /// Begins an event stream; returns the id of an opening event, where the revision has one.
    pub(super) fn open_stream(&mut self) -> Option<EventId> {
        match self {
            Self::Modern(_) => None,
            Self::Legacy(call) => call.open_stream(),
        }
    }

    /// Notes an event that is about to be written; returns its id, where the stream has ids.
    pub(super) fn record(&mut self, message: &str) -> Option<EventId> {
        match self {
            Self::Modern(_) => None,
            Self::Legacy(call) => call.log.append(message),
        }
    }

    /// Returns what a client that takes no stream is told of a call that was cancelled.
    pub(super) fn cancelled(&self) -> Answer {
        match self {
            Self::Modern(call) => modern::refuse(Some(call.id()), &Refusal::CANCELLED),
            Self::Legacy(call) => {
                legacy::refuse(call.id.as_ref(), &Refusal::CANCELLED, call.log.session.revision())
            }
        }
    }
}

/// A legacy exchange and the response that carries it.
///
/// A legacy client that disconnects has not cancelled: when the response is dropped, the exchange goes on by itself, and
/// what it says is kept for the client to come back for.
pub(super) struct Attached {
    exchange: Option<LegacyExchange>,
    /// The id of the request; a batch has none.
    id: Option<Id>,
    log: StreamLog,
    /// How long a question may stay open once nobody is connected to the call.
    ask_for: Duration,
}

impl Attached {
    pub(super) fn new(
        exchange: LegacyExchange,
        id: Option<Id>,
        session: Arc<LiveSession>,
        events: Arc<dyn EventStore>,
        ask_for: Duration,
    ) -> Self {
        Self { exchange: Some(exchange), id, log: StreamLog::new(session, events), ask_for }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(Event::Nothing) };
        let event = std::task::ready!(exchange.poll_event(cx));
        if matches!(event, Event::Answer(_) | Event::Nothing) {
            self.exchange = None;
        }
        Poll::Ready(event)
    }

    fn open_stream(&mut self) -> Option<EventId> {
        self.log.open();
        self.log.session.revision().primes_streams().then(|| self.log.append("")).flatten()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let stand_in = StreamLog::new(self.log.session.clone(), self.log.events.clone());
        let log = std::mem::replace(&mut self.log, stand_in);
        runtime.spawn(go_on_alone(exchange, log, self.ask_for));
    }
}

/// Runs an exchange to its end without a response to carry it.
///
/// A question that stays open is given up in the end, or a client that never comes back would keep its session for ever.
async fn go_on_alone(mut exchange: LegacyExchange, mut log: StreamLog, ask_for: Duration) {
    let mut give_up = None;
    loop {
        // A time that no clock will ever show is never over.
        give_up =
            exchange.is_asking().then(|| give_up.unwrap_or_else(|| Instant::now().checked_add(ask_for)));
        let next = std::future::poll_fn(|cx| exchange.poll_event(cx));
        let event = match give_up.flatten() {
            None => next.await,
            Some(at) => match tokio::time::timeout_at(at, next).await {
                Ok(event) => event,
                Err(_) => {
                    exchange.abandon_questions();
                    give_up = None;
                    continue;
                }
            },
        };
        match event {
            Event::Message(message) => drop(log.append(&message)),
            Event::Release(_) => {}
            Event::Answer(answer) => {
                log.append(&answer.message);
                return;
            }
            Event::Nothing => return,
        }
        tokio::task::consume_budget().await;
    }
}

/// The events of one stream, kept so that a client can come back for them.
pub(super) struct StreamLog {
    session: Arc<LiveSession>,
    events: Arc<dyn EventStore>,
    stream: Option<(StreamId, Arc<StreamState>)>,
    next: u64,
}

impl StreamLog {
    fn new(session: Arc<LiveSession>, events: Arc<dyn EventStore>) -> Self {
        Self { session, events, stream: None, next: 0 }
    }

    fn open(&mut self) {
        if self.stream.is_none() {
            self.stream = Some(self.session.open_stream());
        }
    }

    /// Keeps an event and wakes whoever waits for it; does nothing for a stream that was never opened.
    fn append(&mut self, message: &str) -> Option<EventId> {
        let (stream, state) = self.stream.as_ref()?;
        let id = EventId { stream: *stream, seq: self.next };
        self.next += 1;
        let data = Bytes::copy_from_slice(message.as_bytes());
        self.events.append(self.session.id(), StoredEvent { id, data }, now());
        state.grown.notify_waiters();
        Some(id)
    }
}

impl Drop for StreamLog {
    fn drop(&mut self) {
        if let Some((stream, _)) = &self.stream {
            self.session.close_stream(*stream);
        }
    }
}

/// How many messages of a call are dropped in one turn.
const MOST_DROPPED: usize = 64;

/// Who sees to it that a call is polled when its response must begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakes {
    /// The connection that it came over, which has one timer for all of its calls.
    Connection,
    /// Nobody, so that the call needs a timer of its own.
    Nobody,
}

/// Waits for the first thing that a call does, up to a time after which the response must begin.
///
/// Where no stream is acceptable, what a call says before its answer is dropped, and there is no such time.
pub(super) async fn first_event(
    call: &mut Carried,
    may_stream: bool,
    wait: Duration,
    wakes: Wakes,
) -> Option<Event> {
    let mut deadline = None;
    let mut timer: Option<Pin<Box<tokio::time::Sleep>>> = None;
    std::future::poll_fn(|cx| {
        let mut dropped = 0;
        loop {
            match call.poll_event(cx) {
                // A call that never runs out of words must leave the others their turn.
                Poll::Ready(Event::Message(_) | Event::Release(_))
                    if !may_stream && dropped == MOST_DROPPED =>
                {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Event::Message(_) | Event::Release(_)) if !may_stream => dropped += 1,
                Poll::Ready(event) => return Poll::Ready(Some(event)),
                Poll::Pending if !may_stream => return Poll::Pending,
                Poll::Pending if wakes == Wakes::Nobody => {
                    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
                    return timer.as_mut().poll(cx).map(|()| None);
                }
                Poll::Pending => {
                    let now = Instant::now();
                    if now < *deadline.get_or_insert(now + wait) {
                        return Poll::Pending;
                    }
                    return Poll::Ready(None);
                }
            }
        }
    })
    .await
}

/// Reads the arguments of a tool call for the headers that mirror them.
pub(super) fn argument_value(arguments: Option<&Raw>) -> Option<serde_json::Value> {
    arguments.and_then(|raw| raw.decode().ok())
}
