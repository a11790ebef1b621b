use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Sleep;
use trunkline_protocol::Refusal;
use trunkline_session::Principal;
use trunkline_transport::Channel;

use super::ChannelServer;
use crate::unanswered::{LITTLE, Reserved};

/// A large message that is not whole yet: the room that it takes, and the time that it may take.
#[derive(Debug)]
pub(super) struct Reading {
    reserved: Option<Reserved>,
    deadline: Pin<Box<Sleep>>,
}

impl<C: Channel> ChannelServer<C> {
    /// Holds a message that is not whole to the room and the time that there is for it.
    ///
    /// # Errors
    /// There is no more of one of them, which the peer is told. Nothing else is to be done about a part of a message.
    pub(super) fn count_unreceived(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let bytes = self.channel.unreceived();
        // Whoever started this process has one pair of pipes with it, and one message on them.
        if bytes <= LITTLE || self.principal == Principal::Process {
            self.reading = None;
            return Ok(());
        }
        let within = self.core.limits.body_within;
        let reading = self.reading.get_or_insert_with(|| Reading {
            reserved: None,
            deadline: Box::pin(tokio::time::sleep(within)),
        });
        let (refusal, kind) = match self.core.cover(&mut reading.reserved, bytes) {
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
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Option<Reserved>, Refusal> {
        let mut reserved = self.reading.take().and_then(|reading| reading.reserved);
        if bytes <= LITTLE {
            return Ok(None);
        }
        self.core.cover(&mut reserved, bytes)?;
        if let Some(reserved) = &mut reserved {
            reserved.settle(bytes);
        }
        Ok(reserved)
    }
}
