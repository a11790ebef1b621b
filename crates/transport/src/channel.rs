use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;

/// Carries whole messages both ways between two parties.
///
/// A channel is driven by one task. Messages may be received while sent ones still wait, and sending only queues: the
/// driver flushes once for everything that it queued in one turn, which is what makes a channel fast. The driver stops
/// receiving while [`Channel::queued`] is high, so a peer that does not read cannot make us hold ever more.
pub trait Channel: Send + 'static {
    /// Polls for the next message; `None` means that the peer will send no more.
    ///
    /// Cancel safe: what was read so far stays in the channel.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`] loses one message and the channel goes on; [`ReceiveError::Broken`] ends it.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>>;

    /// Queues one message, complete JSON text.
    fn send(&mut self, message: &str);

    /// Polls until everything queued has been handed to the operating system.
    ///
    /// # Errors
    /// The peer is gone.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns how many bytes wait to be flushed.
    fn queued(&self) -> usize;

    /// Returns how many bytes are held of messages that nobody has received yet, such as of one that is not whole.
    ///
    /// A driver that serves many channels holds all of them together to a bound by this. Without it, what a channel gathers
    /// is not counted before it is a message.
    fn unreceived(&self) -> usize {
        0
    }
}

impl<C: Channel + ?Sized> Channel for Box<C> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        (**self).poll_receive(cx)
    }

    fn send(&mut self, message: &str) {
        (**self).send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn queued(&self) -> usize {
        (**self).queued()
    }

    fn unreceived(&self) -> usize {
        (**self).unreceived()
    }
}

/// Why a message could not be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// One message was longer than the limit and was skipped.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The channel is broken.
    #[error("the channel broke: {0}")]
    Broken(#[source] io::Error),
}
