use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use trunkline_protocol::{RawJson, Refusal, RequestId};
use trunkline_session::{EventId, EventStore, StreamId};

use super::lost_call;
use crate::edge::legacy::{self, EventRecord, LiveSession, ResumableStream};
use crate::edge::modern;
use crate::edge::{CallEvent, EraExchange, RenderedResponse};
use crate::revocation::RevocationSignal;

/// A call of either era with an HTTP response.
pub(super) enum CallExchange {
    Modern(EraExchange),
    Legacy(DetachableCall),
}

impl CallExchange {
    /// Polls for what the response must do next.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        match self {
            Self::Modern(call) => call.poll_event(cx),
            Self::Legacy(call) => call.poll_event(cx),
        }
    }

    /// Begins an event stream; returns the id of an opening event, where the revision has one.
    pub(super) fn open_stream(&mut self) -> EventRecord {
        match self {
            Self::Modern(_) => EventRecord::Ready(None),
            Self::Legacy(call) => call.open_stream(),
        }
    }

    /// Records an event that is about to be written; returns its id, where the stream has ids.
    pub(super) fn record(&mut self, message: &str) -> EventRecord {
        match self {
            Self::Modern(_) => EventRecord::Ready(None),
            Self::Legacy(call) => call.log.append(message),
        }
    }

    /// Returns the response about a cancelled call for a client that accepts no stream.
    pub(super) fn cancelled_response(&self) -> RenderedResponse {
        match self {
            Self::Modern(call) => modern::refuse(call.modern_id(), &Refusal::CANCELLED),
            Self::Legacy(call) => {
                legacy::refuse(call.id.as_ref(), &Refusal::CANCELLED, call.log.session.revision())
            }
        }
    }
}

/// A legacy exchange and its response stream.
///
/// A legacy client that disconnects has not cancelled: when the response is dropped, the exchange continues by
/// itself, and its messages are stored for the client to resume the stream.
pub(super) struct DetachableCall {
    exchange: Option<EraExchange>,
    /// The id of the request; a batch has none.
    id: Option<RequestId>,
    log: StreamLog,
    /// How long an input request may stay open after the client has disconnected.
    input_timeout: Duration,
    /// The signal that the credential of the request was revoked.
    revocation: Option<RevocationSignal>,
}

impl DetachableCall {
    pub(super) fn new(
        exchange: EraExchange,
        id: Option<RequestId>,
        session: Arc<LiveSession>,
        events: Arc<dyn EventStore>,
        ask_for: Duration,
    ) -> Self {
        Self {
            exchange: Some(exchange),
            id,
            log: StreamLog::new(session, events),
            input_timeout: ask_for,
            revocation: None,
        }
    }

    /// Ends the call, detached or not, when the credential of its request is revoked.
    pub(super) fn revoked_by(mut self, revocation: Option<RevocationSignal>) -> Self {
        self.revocation = revocation;
        self
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(CallEvent::NoResponse) };
        let event = std::task::ready!(exchange.poll_event(cx));
        if matches!(event, CallEvent::Response(_) | CallEvent::NoResponse) {
            self.exchange = None;
        }
        Poll::Ready(event)
    }

    fn open_stream(&mut self) -> EventRecord {
        self.log.open();
        if let Some(id) = self.id.as_ref().filter(|_| self.log.events.outlives_process()) {
            // The store takes events in their order, so that no id is sent before the note is stored. It is found by the
            // position in front of it.
            drop(self.log.append(""));
            drop(self.log.append(&lost_call::note(id, self.log.session.process())));
        }
        match self.log.session.revision().primes_streams() {
            true => self.log.append(""),
            false => EventRecord::Ready(None),
        }
    }
}

impl Drop for DetachableCall {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        if self.revocation.as_ref().is_some_and(RevocationSignal::is_revoked) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let stand_in = StreamLog::new(self.log.session.clone(), self.log.events.clone());
        let log = std::mem::replace(&mut self.log, stand_in);
        let (revocation, running) = (self.revocation.take(), run_detached(exchange, log, self.input_timeout));
        runtime.spawn(async move {
            match revocation {
                None => running.await,
                Some(signal) => tokio::select! {
                    () = signal.revoked() => {}
                    () = running => {}
                },
            }
        });
    }
}

/// Runs an exchange to its end without a response.
///
/// An open input request times out in the end, or a client that never reconnects would keep its session for ever.
async fn run_detached(mut exchange: EraExchange, mut log: StreamLog, ask_for: Duration) {
    let mut give_up = None;
    loop {
        // A deadline beyond the range of the clock never expires.
        give_up = exchange
            .is_waiting_for_input()
            .then(|| give_up.unwrap_or_else(|| Instant::now().checked_add(ask_for)));
        let next = std::future::poll_fn(|cx| exchange.poll_event(cx));
        let event = match give_up.flatten() {
            None => next.await,
            Some(at) => match tokio::time::timeout_at(at, next).await {
                Ok(event) => event,
                Err(_) => {
                    exchange.fail_open_requests();
                    give_up = None;
                    continue;
                }
            },
        };
        match event {
            CallEvent::Message(message) => drop(log.append(&message).wait().await),
            CallEvent::ReleaseStream(_) => {}
            CallEvent::Response(answer) => {
                log.append(&answer.message).wait().await;
                return;
            }
            CallEvent::NoResponse => return,
        }
        tokio::task::consume_budget().await;
    }
}

/// The events of one stream, stored so that a client can resume it.
pub(super) struct StreamLog {
    session: Arc<LiveSession>,
    events: Arc<dyn EventStore>,
    stream: Option<(StreamId, Arc<ResumableStream>)>,
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

    /// Stores an event and notifies the tasks that wait for it; does nothing for a stream that was never opened.
    fn append(&mut self, message: &str) -> EventRecord {
        let Some((stream, state)) = &self.stream else { return EventRecord::Ready(None) };
        let id = EventId { stream: *stream, seq: self.next };
        self.next += 1;
        let record = EventRecord::store(&*self.events, self.session.id(), state, id, message);
        state.appended.notify_waiters();
        record
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
const MAX_DROPPED: usize = 64;

/// The owner of the timer that polls a call when its response must begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerOwner {
    /// The connection that it came over, which has one timer for all of its calls.
    Connection,
    /// No connection does, so that the call needs a timer of its own.
    Call,
}

/// Waits for the first event of a call, up to a time after which the response must begin.
///
/// Where no stream is acceptable, messages of the call before its response are dropped, and there is no such time.
pub(super) async fn first_event(
    call: &mut CallExchange,
    may_stream: bool,
    wait: Duration,
    wakes: TimerOwner,
) -> Option<CallEvent> {
    let mut deadline = None;
    let mut timer: Option<Pin<Box<tokio::time::Sleep>>> = None;
    std::future::poll_fn(|cx| {
        let mut dropped = 0;
        loop {
            match call.poll_event(cx) {
                // A call that sends messages without end must yield to the others.
                Poll::Ready(CallEvent::Message(_) | CallEvent::ReleaseStream(_))
                    if !may_stream && dropped == MAX_DROPPED =>
                {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(CallEvent::Message(_) | CallEvent::ReleaseStream(_)) if !may_stream => {
                    dropped += 1;
                }
                Poll::Ready(event) => return Poll::Ready(Some(event)),
                Poll::Pending if !may_stream => return Poll::Pending,
                Poll::Pending if wakes == TimerOwner::Call => {
                    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
                    return timer.as_mut().poll(cx).map(|()| None);
                }
                Poll::Pending => {
                    let now = Instant::now();
                    // A deadline beyond the range of the clock never expires.
                    let is_over = deadline.get_or_insert(now.checked_add(wait)).is_some_and(|at| now >= at);
                    return if is_over { Poll::Ready(None) } else { Poll::Pending };
                }
            }
        }
    })
    .await
}

/// Reads the arguments of a tool call for the headers that mirror them.
pub(super) fn argument_value(arguments: Option<&RawJson>) -> Option<serde_json::Value> {
    arguments.and_then(|raw| raw.decode().ok())
}
