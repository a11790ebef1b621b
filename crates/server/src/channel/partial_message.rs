use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Sleep;
use trunkline_protocol::Refusal;
use trunkline_session::Principal;
use trunkline_transport::Channel;

use super::ChannelServer;
use crate::request_memory::{RequestMemoryPermit, UNCOUNTED_BYTES};

/// A large message that is not whole yet: the room that it takes, and the time that it may take.
#[derive(Debug)]
pub(super) struct PartialMessage {
    memory_permit: Option<RequestMemoryPermit>,
    deadline: Pin<Box<Sleep>>,
}

impl<C: Channel> ChannelServer<C> {
    /// Holds a message that is not whole to the room and the time that there is for it.
    ///
    /// # Errors
    /// There is no more of one of them, which the peer is told. Nothing else is to be done about a part of a message.
    pub(super) fn check_partial_message(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let bytes = self.channel.unread_bytes();
        // Whoever started this process has one pair of pipes with it, and one message on them.
        if bytes <= UNCOUNTED_BYTES || self.principal == Principal::Process {
            self.partial_message = None;
            return Ok(());
        }
        let within = self.core.limits.body_timeout;
        let reading = self.partial_message.get_or_insert_with(|| PartialMessage {
            memory_permit: None,
            deadline: Box::pin(tokio::time::sleep(within)),
        });
        let (refusal, kind) = match self.core.reserve_memory(&mut reading.memory_permit, bytes) {
            Err(refusal) => (refusal, io::ErrorKind::QuotaExceeded),
            Ok(()) => match reading.deadline.as_mut().poll(cx) {
                Poll::Ready(()) => (Refusal::TOO_SLOW, io::ErrorKind::TimedOut),
                Poll::Pending => return Ok(()),
            },
        };
        self.send_error(None, &refusal);
        // As far as that is possible at once; the channel breaks in any case.
        let _ = self.channel.poll_flush(cx);
        Err(io::Error::new(kind, refusal.message().to_owned()))
    }

    /// Reserves room for a message that is whole, where it is large.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`].
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Option<RequestMemoryPermit>, Refusal> {
        let mut reserved = self.partial_message.take().and_then(|reading| reading.memory_permit);
        if bytes <= UNCOUNTED_BYTES {
            return Ok(None);
        }
        self.core.reserve_memory(&mut reserved, bytes)?;
        if let Some(reserved) = &mut reserved {
            reserved.shrink_to(bytes);
        }
        Ok(reserved)
    }
}
