use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;

/// Carries whole messages both ways between two parties.
///
/// A channel is driven by one task. Messages may be received while sent ones still wait, and sending only queues: the
/// driver flushes once for everything that it queued in one turn, which is what makes a channel fast. The driver stops
/// receiving while [`Channel::queued`] is high, so a peer that does not read cannot make us hold ever more.
///
/// A channel around another that counts what comes:
///
/// ```
/// use std::io;
/// use std::task::{Context, Poll};
///
/// use bytes::Bytes;
/// use trunkline_transport::{Channel, ReceiveError, mock};
///
/// struct Counted<C> {
///     inner: C,
///     received: usize,
/// }
///
/// impl<C: Channel> Channel for Counted<C> {
///     fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
///         let received = self.inner.poll_receive(cx);
///         self.received += usize::from(matches!(received, Poll::Ready(Some(Ok(_)))));
///         received
///     }
///
///     fn send(&mut self, message: &str) {
///         self.inner.send(message);
///     }
///
///     fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         self.inner.poll_flush(cx)
///     }
///
///     fn queued(&self) -> usize {
///         self.inner.queued()
///     }
/// }
///
/// let (mock, inner) = mock();
/// mock.receive("{}");
/// let mut channel = Counted { inner, received: 0 };
/// let mut cx = Context::from_waker(std::task::Waker::noop());
/// assert!(channel.poll_receive(&mut cx).is_ready());
/// assert!(channel.poll_receive(&mut cx).is_pending());
/// assert_eq!(channel.received, 1);
/// ```
pub trait Channel: Send + 'static {
    /// Polls for the next message; `None` means that the peer will send no more.
    ///
    /// Cancel safe: what was read so far stays in the channel.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`] and [`ReceiveError::Rejected`] lose one message and the channel goes on;
    /// [`ReceiveError::Broken`] ends it.
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

    /// Returns how many bytes of memory are held for what waits to be flushed.
    ///
    /// That is more than [`Channel::queued`] where a buffer is kept until its last byte is written, or has room to grow. A
    /// driver that serves many channels holds the memory of all of them together to a bound by this.
    fn queued_memory(&self) -> usize {
        self.queued()
    }

    /// Returns how many bytes are held of messages that nobody has received yet, such as of one that is not whole.
    ///
    /// A driver that serves many channels holds all of them together to a bound by this. Without it, what a channel gathers
    /// is not counted before it is a message.
    fn unread_bytes(&self) -> usize {
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

    fn queued_memory(&self) -> usize {
        (**self).queued_memory()
    }

    fn unread_bytes(&self) -> usize {
        (**self).unread_bytes()
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
    /// One message of ours was not taken by the peer, and the channel goes on.
    #[error("a message was not taken: {why}")]
    Rejected {
        /// The message as it was sent.
        message: Bytes,
        /// Why it was not taken.
        why: io::Error,
    },
    /// The channel is broken.
    #[error("the channel broke: {0}")]
    Broken(#[source] io::Error),
}
