use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;
use trunkline_protocol::sse;
use trunkline_session::EventId;

use super::body::shrink_to_bytes;
use super::call_exchange::CallExchange;
use crate::edge::CallEvent;
use crate::edge::legacy::EventRecord;
use crate::edge::modern::SubscriptionStream;
use crate::server_core::ServerCore;

/// The SSE `retry` time: when a client that lost its stream may reconnect.
const RETRY: Duration = Duration::from_secs(1);

/// A frame of this length is sent before more is collected.
const FRAME_TARGET: usize = 64 * 1024;

pub(super) type PolledFrame = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// Sends comments on an otherwise idle stream, so that no proxy in between closes it.
pub(super) struct SseKeepAlive {
    every: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl SseKeepAlive {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, sleep: None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.every)));
        std::task::ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(())
    }

    pub(super) fn reset(&mut self) {
        self.sleep = None;
    }
}

/// The event stream of one call; it owns the call and drives it from its own polls.
pub(super) struct CallEventStream {
    call: Option<CallExchange>,
    first: Option<CallEvent>,
    opened: bool,
    keep_alive: SseKeepAlive,
    /// What is written once the events in front of it are stored; always empty with a store that does not wait.
    unstored: VecDeque<(EventRecord, SseContent)>,
    /// The length of the messages in `unstored`.
    unstored_bytes: usize,
}

/// What an event stream of a call writes.
enum SseContent {
    /// The event that gives the client a position to resume from.
    Opening,
    Message(String),
    Retry(Duration),
}

impl SseContent {
    fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.len(),
            Self::Opening | Self::Retry(_) => 0,
        }
    }

    fn write(&self, id: Option<EventId>, out: &mut Vec<u8>) {
        match self {
            Self::Opening => {
                if let Some(id) = id {
                    sse::write_priming(out, &id.to_string(), Some(millis(RETRY)));
                }
            }
            Self::Message(message) => write_message(out, id, message),
            Self::Retry(retry) => sse::write_retry(out, millis(*retry)),
        }
    }
}

impl CallEventStream {
    pub(super) fn new(call: CallExchange, first: Option<CallEvent>, keep_alive: Duration) -> Self {
        Self {
            call: Some(call),
            first,
            opened: false,
            keep_alive: SseKeepAlive::new(keep_alive),
            unstored: VecDeque::new(),
            unstored_bytes: 0,
        }
    }

    /// Writes one event, or queues it until it is stored.
    fn handle(&mut self, event: CallEvent, out: &mut Vec<u8>) {
        let Some(call) = &mut self.call else { return };
        let (record, content) = match event {
            CallEvent::Message(message) => {
                let record = call.record(&message);
                return self.write(record, SseContent::Message(message), out);
            }
            CallEvent::Response(answer) => {
                (call.record(&answer.message), SseContent::Message(answer.message))
            }
            CallEvent::ReleaseStream(retry) => (EventRecord::Ready(None), SseContent::Retry(retry)),
            CallEvent::NoResponse => {
                self.call = None;
                return;
            }
        };
        // Dropping a legacy call that is not over detaches it; the client resumes the stream for the rest.
        self.call = None;
        self.write(record, content, out);
    }

    fn write(&mut self, record: EventRecord, content: SseContent, out: &mut Vec<u8>) {
        match record {
            EventRecord::Ready(id) if self.unstored.is_empty() => content.write(id, out),
            record => {
                self.unstored_bytes += content.len();
                self.unstored.push_back((record, content));
            }
        }
    }

    /// Writes what is stored by now, in its order.
    fn write_stored(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        while let Some((record, content)) = self.unstored.front_mut() {
            let id = match record {
                EventRecord::Ready(id) => *id,
                EventRecord::ClaimLost => None,
                EventRecord::Pending(event) => match event.poll_id(cx) {
                    Poll::Ready(id) => id,
                    Poll::Pending => return,
                },
            };
            content.write(id, out);
            self.unstored_bytes -= content.len();
            self.unstored.pop_front();
        }
    }

    /// Polls for the next event of the call; `None` after the last one is written.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        if self.unstored_bytes >= FRAME_TARGET {
            return Poll::Pending;
        }
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        match &mut self.call {
            Some(call) => call.poll_event(cx).map(Some),
            None if self.unstored.is_empty() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        if let Some(call) = &mut self.call {
            let record = call.open_stream();
            self.write(record, SseContent::Opening, out);
        }
    }
}

impl Body for CallEventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        let mut out = Vec::new();
        this.open(&mut out);
        loop {
            this.write_stored(cx, &mut out);
            match this.poll_event(cx) {
                Poll::Ready(Some(event)) => {
                    this.keep_alive.reset();
                    this.handle(event, &mut out);
                    if out.len() >= FRAME_TARGET {
                        break;
                    }
                }
                Poll::Ready(None) => break,
                Poll::Pending if !out.is_empty() => break,
                Poll::Pending => {
                    std::task::ready!(this.keep_alive.poll(cx));
                    sse::write_comment(&mut out, "");
                    break;
                }
            }
        }
        frame(out)
    }
}

/// The event stream of a modern subscription.
pub(super) struct SubscriptionEventStream {
    core: Arc<ServerCore>,
    subscription: Option<Box<SubscriptionStream>>,
    acknowledged: bool,
    draining: Pin<Box<OwnedNotified>>,
    keep_alive: SseKeepAlive,
}

impl SubscriptionEventStream {
    pub(super) fn new(core: Arc<ServerCore>, listen: Box<SubscriptionStream>) -> Self {
        let draining = Box::pin(core.shutdown.watch_draining());
        let keep_alive = SseKeepAlive::new(core.limits.keep_alive);
        Self { core, subscription: Some(listen), acknowledged: false, draining, keep_alive }
    }
}

impl Body for SubscriptionEventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        let mut out = Vec::new();
        let Some(listen) = &this.subscription else { return Poll::Ready(None) };
        if !std::mem::replace(&mut this.acknowledged, true) {
            write_message(&mut out, None, &listen.acknowledgement());
            return frame(out);
        }
        while let Poll::Ready(message) = listen.poll_message(cx) {
            write_message(&mut out, None, &message);
            if out.len() >= FRAME_TARGET {
                break;
            }
        }
        if this.core.shutdown.is_draining() || this.draining.as_mut().poll(cx).is_ready() {
            write_message(&mut out, None, &listen.final_response());
            this.subscription = None;
        }
        if out.is_empty() {
            std::task::ready!(this.keep_alive.poll(cx));
            sse::write_comment(&mut out, "");
        } else {
            this.keep_alive.reset();
        }
        frame(out)
    }
}

/// A body made of a stream of chunks.
pub(super) struct ChunkStreamBody<S>(pub(super) S);

impl<S> Body for ChunkStreamBody<S>
where
    S: futures_util::Stream<Item = Vec<u8>> + Unpin,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let chunk = std::task::ready!(Pin::new(&mut self.0).poll_next(cx));
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(shrink_to_bytes(chunk)))))
    }
}

/// Writes one message as an event.
pub(super) fn write_message(out: &mut Vec<u8>, id: Option<EventId>, message: &str) {
    let id = id.map(|id| id.to_string());
    sse::write_event(out, Some("message"), id.as_deref(), message.as_bytes());
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Makes a frame of the collected bytes; the end of the body, if there are none.
pub(super) fn frame(out: Vec<u8>) -> PolledFrame {
    Poll::Ready((!out.is_empty()).then(|| Ok(Frame::data(shrink_to_bytes(out)))))
}
