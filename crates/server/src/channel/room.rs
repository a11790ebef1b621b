//! Whether a channel has room for more: for calls, and for what its peer has still to read.

use trunkline_protocol::envelope::Incoming;
use trunkline_protocol::{Message, Refusal};
use trunkline_transport::Channel;

use super::ChannelServer;

impl<C: Channel> ChannelServer<C> {
    /// Reports whether as many calls run as may. One that waits for an answer of the client does not count: were it to,
    /// the answer might never be read.
    pub(super) fn is_full(&self) -> bool {
        let most = self.core.limits.calls_per_channel;
        self.carried.len() >= most && {
            let waiting = self.session.as_ref().map_or(0, |session| session.open_questions());
            self.carried.len() >= most + waiting
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.channel.queued() < self.core.limits.queued_bytes
    }

    /// Reports whether a call waits for an answer that the peer has still to send.
    pub(super) fn awaits_answers(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_questions())
    }

    /// Refuses a call that would keep the answers behind it from being read, for which other calls wait.
    pub(super) fn refuse_held(&mut self, held: &Incoming) {
        let id = match held {
            Incoming::One(Message::Request(request)) => Some(&request.id),
            _ => None,
        };
        self.send_error(id, &Refusal::TOO_MANY);
    }
}

/// Reports whether a message begins a call, and so needs room.
pub(super) fn begins_a_call(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(message) => matches!(message, Message::Request(_)),
        Incoming::Batch(messages) => {
            messages.iter().any(|message| matches!(message, Ok(Message::Request(_))))
        }
    }
}
