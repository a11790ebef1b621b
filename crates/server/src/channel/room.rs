//! Whether a channel has room for more: for calls, and for what its peer has still to read.

use std::collections::VecDeque;
use std::io;
use std::task::Context;

use trunkline_protocol::envelope::Incoming;
use trunkline_protocol::{Id, Message, Method, Refusal, Request};
use trunkline_transport::Channel;

use super::{ChannelServer, LITTLE};
use crate::edge::legacy;
use crate::unanswered::Reserved;
use crate::unread::Cut;

/// Calls that were read while as many ran as may; they begin, in order, as others end.
///
/// What is not a call is never held: an answer, a cancellation or the end must reach the calls that run.
#[derive(Debug, Default)]
pub(super) struct Held {
    messages: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    incoming: Incoming,
    bytes: usize,
    reserved: Option<Reserved>,
}

/// The most calls that wait to begin; further ones are refused.
const MOST_HELD: usize = 1024;

impl Held {
    /// Takes the next call that may begin.
    pub(super) fn next(&mut self) -> Option<(Incoming, Option<Reserved>)> {
        let Waiting { incoming, bytes, reserved } = self.messages.pop_front()?;
        self.bytes -= bytes;
        Some((incoming, reserved))
    }

    /// Forgets a call that its caller has cancelled before it began, alone or in a batch.
    pub(super) fn withdraw(&mut self, id: &Id) {
        let at =
            self.messages.iter().position(|waiting| requests(&waiting.incoming).any(|call| call.id == *id));
        let Some(at) = at else { return };
        if let Some(Waiting { incoming: Incoming::Batch(messages), .. }) = self.messages.get_mut(at) {
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
    /// Reports whether as many calls run as may. One that waits for an answer of the client does not count.
    pub(super) fn is_full(&self) -> bool {
        let most = self.core.limits.calls_per_channel;
        self.carried.len() >= most && {
            let asks = self.session.as_ref().is_some_and(|session| session.is_asking());
            let waiting = if asks { self.carried.iter().filter(|call| call.is_asking()).count() } else { 0 };
            self.carried.len() >= most + waiting
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.channel.queued() < self.core.limits.queued_bytes
    }

    /// Counts what is held for the peer, which has not read it, with what is held for all the others.
    ///
    /// # Errors
    /// The peer is cut.
    pub(super) fn count_unread(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(unread) = &mut self.unread else { return Ok(()) };
        let queued = self.channel.queued();
        if queued >= LITTLE {
            return unread.wait(queued, self.channel.held(), cx.waker()).map_err(Cut::carry_out);
        }
        if !unread.is_empty() {
            unread.release();
        }
        Ok(())
    }

    /// Reports whether a message is a call that cannot begin yet.
    pub(super) fn must_wait(&self, incoming: &Incoming) -> bool {
        (!self.held.is_empty() || self.is_full()) && begins_a_call(incoming)
    }

    /// Keeps a call for later, or refuses it if too much waits already. One message of any legal size is always kept.
    pub(super) fn hold(&mut self, incoming: Incoming, bytes: usize, reserved: Option<Reserved>) {
        let held = &mut self.held;
        let full = held.messages.len() >= MOST_HELD || held.bytes >= self.core.limits.message_bytes;
        if !full {
            held.bytes += bytes;
            held.messages.push_back(Waiting { incoming, bytes, reserved });
            return;
        }
        self.refuse_unbegun(&incoming, &Refusal::TOO_MANY);
    }

    /// Refuses every call of a message that cannot begin.
    pub(super) fn refuse_unbegun(&mut self, incoming: &Incoming, refusal: &Refusal) {
        match (incoming, &self.session) {
            (Incoming::One(Message::Request(request)), _) => self.send_error(Some(&request.id), refusal),
            (Incoming::One(_), _) => {}
            (Incoming::Batch(messages), Some(session)) => {
                let answer = legacy::refuse_batch(session, messages, refusal);
                self.channel.send(&answer.message);
            }
            (Incoming::Batch(_), None) => self.send_error(None, &legacy::no_batches()),
        }
    }
}

/// Reports whether a message begins a call, and so needs room.
pub(super) fn begins_a_call(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(Message::Request(request)) => request.method != Method::Ping.as_str(),
        Incoming::One(_) => false,
        Incoming::Batch(_) => requests(incoming).next().is_some(),
    }
}

/// Returns the requests that a message is, or has in it.
fn requests(incoming: &Incoming) -> impl Iterator<Item = &Request> {
    let (one, batch) = match incoming {
        Incoming::One(message) => (Some(message), &[][..]),
        Incoming::Batch(messages) => (None, messages.as_slice()),
    };
    one.into_iter().chain(batch.iter().flatten()).filter_map(|message| match message {
        Message::Request(request) => Some(request),
        _ => None,
    })
}
