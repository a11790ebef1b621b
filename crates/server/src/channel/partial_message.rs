use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Sleep;
use trunkline_protocol::Refusal;
use trunkline_session::Principal;
use trunkline_transport::Channel;

use super::ChannelServer;
use crate::admission::BytePermit;
use crate::party::ClientParty;
use crate::request_memory::UNCOUNTED_BYTES;

/// A large message that is still incomplete: its memory permit and its deadline.
#[derive(Debug)]
pub(super) struct PartialMessage {
    memory_permit: Option<BytePermit>,
    deadline: Pin<Box<Sleep>>,
}

impl<C: Channel> ChannelServer<C> {
    /// Holds an incomplete message to the memory budget and to its deadline.
    ///
    /// # Errors
    /// One of them is exceeded, which the peer is sent as an error. The channel ends, since the rest of the message
    /// cannot be skipped.
    pub(super) fn check_partial_message(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let bytes = self.channel.unread_bytes();
        // The process that started this one has one pair of pipes with it, and one message on them.
        if bytes <= UNCOUNTED_BYTES || self.principal == Principal::Process {
            self.partial_message = None;
            return Ok(());
        }
        let party = self.party();
        let within = self.core.limits.body_timeout;
        let reading = self.partial_message.get_or_insert_with(|| PartialMessage {
            memory_permit: None,
            deadline: Box::pin(tokio::time::sleep(within)),
        });
        let (refusal, kind) = match self.core.reserve_memory(&party, &mut reading.memory_permit, bytes) {
            Err(refusal) => (refusal, io::ErrorKind::QuotaExceeded),
            Ok(()) => match reading.deadline.as_mut().poll(cx) {
                Poll::Ready(()) => (Refusal::TOO_SLOW, io::ErrorKind::TimedOut),
                Poll::Pending => return Ok(()),
            },
        };
        self.send_error(None, &refusal);
        // As far as it can be written at once; the channel ends in any case.
        let _ = self.channel.poll_flush(cx);
        Err(io::Error::new(kind, refusal.message().to_owned()))
    }

    fn party(&self) -> ClientParty {
        ClientParty::new(&self.principal, self.remote_address)
    }

    /// Reserves memory for a complete message, where it is large.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`].
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Option<BytePermit>, Refusal> {
        let mut reserved = self.partial_message.take().and_then(|reading| reading.memory_permit);
        if bytes <= UNCOUNTED_BYTES {
            return Ok(None);
        }
        self.core.reserve_memory(&self.party(), &mut reserved, bytes)?;
        if let Some(reserved) = &mut reserved {
            reserved.shrink_to(bytes);
        }
        Ok(reserved)
    }
}
