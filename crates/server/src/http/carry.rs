use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use trunkline_protocol::Raw;
use trunkline_session::{Event as StoredEvent, EventId, EventStore, StreamId};

use crate::core::now;
use crate::edge::Event;
use crate::edge::legacy::{LegacyExchange, LiveSession, StreamState};
use crate::edge::modern::ModernCall;

/// A call that an HTTP response carries.
pub(super) trait Carry: Send + Unpin + 'static {
    /// Polls for what the response must do next.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event>;

    /// Begins an event stream; returns the id of an opening event, where the revision has one.
    fn open_stream(&mut self) -> Option<EventId>;

    /// Notes an event that is about to be written; returns its id, where the stream has ids.
    fn record(&mut self, message: &str) -> Option<EventId>;
}

impl Carry for Box<ModernCall> {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        ModernCall::poll_event(self, cx)
    }

    fn open_stream(&mut self) -> Option<EventId> {
        None
    }

    fn record(&mut self, _message: &str) -> Option<EventId> {
        None
    }
}

/// A legacy exchange and the response that carries it.
///
/// A legacy client that disconnects has not cancelled: when the response is dropped, the exchange goes on by itself, and
/// what it says is kept for the client to come back for.
pub(super) struct Attached {
    exchange: Option<LegacyExchange>,
    log: StreamLog,
    /// How long a question may stay open once nobody is connected to the call.
    ask_for: Duration,
}

impl Attached {
    pub(super) fn new(
        exchange: LegacyExchange,
        session: Arc<LiveSession>,
        events: Arc<dyn EventStore>,
        ask_for: Duration,
    ) -> Self {
        Self { exchange: Some(exchange), log: StreamLog::new(session, events), ask_for }
    }
}

impl Carry for Attached {
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

    fn record(&mut self, message: &str) -> Option<EventId> {
        self.log.append(message)
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

/// Waits for the first thing that a call does, up to a time after which the response must begin.
///
/// Where no stream is acceptable, what a call says before its answer is dropped, and there is no such time.
pub(super) async fn first_event(call: &mut impl Carry, may_stream: bool, wait: Duration) -> Option<Event> {
    let mut deadline: Option<Pin<Box<tokio::time::Sleep>>> = None;
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
                Poll::Pending => {
                    let deadline = deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
                    return deadline.as_mut().poll(cx).map(|()| None);
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
