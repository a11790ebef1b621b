//! Backpressure of a channel: the limit of running calls, and the bytes that its peer has not read.

use std::collections::VecDeque;
use std::io;
use std::task::Context;

use trunkline_protocol::envelope::MessageOrBatch;
use trunkline_protocol::{Message, Method, Refusal, Request, RequestId};
use trunkline_transport::Channel;

use super::{ChannelServer, UNCOUNTED_BACKLOG};
use crate::admission::BytePermit;
use crate::admission::SlowReaderEvicted;
use crate::edge::legacy;

/// Calls that were read at the limit of running calls; they begin, in order, as others end.
///
/// Other messages are never queued: a response, a cancellation or the end must reach the running calls.
#[derive(Debug, Default)]
pub(super) struct QueuedCalls {
    messages: VecDeque<QueuedMessage>,
    bytes: usize,
}

#[derive(Debug)]
struct QueuedMessage {
    incoming: MessageOrBatch,
    bytes: usize,
    memory_permit: Option<BytePermit>,
}

/// The most calls that wait to begin; further ones are refused.
const MAX_QUEUED_CALLS: usize = 1024;

impl QueuedCalls {
    /// Takes the next queued call.
    pub(super) fn pop(&mut self) -> Option<(MessageOrBatch, Option<BytePermit>)> {
        let QueuedMessage { incoming, bytes, memory_permit: reserved } = self.messages.pop_front()?;
        self.bytes -= bytes;
        Some((incoming, reserved))
    }

    /// Removes a queued call that its caller has cancelled, alone or in a batch.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        let at =
            self.messages.iter().position(|waiting| requests(&waiting.incoming).any(|call| call.id == *id));
        let Some(at) = at else { return };
        if let Some(QueuedMessage { incoming: MessageOrBatch::Batch(messages), .. }) =
            self.messages.get_mut(at)
        {
            messages.retain(|message| !matches!(message, Ok(Message::Request(call)) if call.id == *id));
        } else if let Some(withdrawn) = self.messages.remove(at) {
            self.bytes -= withdrawn.bytes;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns how many calls wait.
    pub(super) fn calls(&self) -> usize {
        self.messages.iter().map(|waiting| requests(&waiting.incoming).count()).sum()
    }
}

impl<C: Channel> ChannelServer<C> {
    /// Reports whether the limit of running calls is reached. A call that waits for input does not count.
    pub(super) fn is_at_call_limit(&self) -> bool {
        let most = self.core.limits.calls_per_channel;
        self.calls.len() >= most && {
            let asks = self.session.as_ref().is_some_and(|session| session.is_waiting_for_input());
            let waiting =
                if asks { self.calls.iter().filter(|call| call.is_waiting_for_input()).count() } else { 0 };
            self.calls.len() >= most + waiting
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.channel.queued() < self.core.limits.queued_bytes
    }

    /// Counts the bytes that wait for the peer to read them against the write budget of all peers.
    ///
    /// # Errors
    /// The peer is evicted.
    pub(super) fn account_backlog(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(backlog) = &mut self.backlog else { return Ok(()) };
        let queued = self.channel.queued();
        if queued >= UNCOUNTED_BACKLOG {
            return backlog
                .record_unwritten(queued, self.channel.queued_memory(), cx.waker())
                .map_err(SlowReaderEvicted::into_io_error);
        }
        if !backlog.is_empty() {
            backlog.clear();
        }
        Ok(())
    }

    /// Reports whether a message is a call that cannot begin yet.
    pub(super) fn must_wait(&self, incoming: &MessageOrBatch) -> bool {
        (!self.queued_calls.is_empty() || self.is_at_call_limit()) && is_call(incoming)
    }

    /// Queues a call, or refuses it if the queue is full. One message of any legal size always fits.
    pub(super) fn enqueue(&mut self, incoming: MessageOrBatch, bytes: usize, reserved: Option<BytePermit>) {
        let held = &mut self.queued_calls;
        let full = held.messages.len() >= MAX_QUEUED_CALLS || held.bytes >= self.core.limits.message_bytes;
        if !full {
            held.bytes += bytes;
            held.messages.push_back(QueuedMessage { incoming, bytes, memory_permit: reserved });
            return;
        }
        self.refuse_calls(&incoming, &Refusal::TOO_MANY);
    }

    /// Refuses every call of a message that cannot begin.
    pub(super) fn refuse_calls(&mut self, incoming: &MessageOrBatch, refusal: &Refusal) {
        match (incoming, &self.session) {
            (MessageOrBatch::One(Message::Request(request)), _) => {
                self.send_error(Some(&request.id), refusal);
            }
            (MessageOrBatch::One(_), _) => {}
            (MessageOrBatch::Batch(messages), Some(session)) => {
                let answer = legacy::refuse_batch(session, messages, refusal);
                self.channel.send(&answer.message);
            }
            (MessageOrBatch::Batch(_), None) => self.send_error(None, &legacy::batch_not_allowed()),
        }
    }
}

/// Reports whether a message begins a call, and so counts against the limits of calls.
pub(super) fn is_call(incoming: &MessageOrBatch) -> bool {
    match incoming {
        MessageOrBatch::One(Message::Request(request)) => request.method != Method::Ping.as_str(),
        MessageOrBatch::One(_) => false,
        MessageOrBatch::Batch(_) => requests(incoming).next().is_some(),
    }
}

/// Returns the requests that a message is, or contains.
fn requests(incoming: &MessageOrBatch) -> impl Iterator<Item = &Request> {
    let (one, batch) = match incoming {
        MessageOrBatch::One(message) => (Some(message), &[][..]),
        MessageOrBatch::Batch(messages) => (None, messages.as_slice()),
    };
    one.into_iter().chain(batch.iter().flatten()).filter_map(|message| match message {
        Message::Request(request) => Some(request),
        _ => None,
    })
}
