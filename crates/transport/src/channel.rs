use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use trunkline_protocol::envelope::OversizedMessage;

/// A bidirectional channel of whole messages between two peers.
///
/// One task drives a channel. Messages may be received while sent ones are still queued, and sending only queues: the
/// driver flushes once per turn, which makes a channel fast. The driver stops receiving while [`Channel::queued`] is
/// high: this backpressure bounds the memory for a peer that does not read.
///
/// A wrapper that counts received messages:
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
    /// Cancel safe: a partial message stays in the channel.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`] and [`ReceiveError::Rejected`] concern one message and the channel continues;
    /// [`ReceiveError::Broken`] ends it.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>>;

    /// Queues one message, complete JSON text.
    fn send(&mut self, message: &str);

    /// Polls until everything queued has been written to the operating system.
    ///
    /// # Errors
    /// The peer is disconnected.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns the number of bytes that wait to be flushed.
    fn queued(&self) -> usize;

    /// Returns the memory of the bytes that wait to be flushed.
    ///
    /// It is more than [`Channel::queued`] if a buffer is retained until its last byte is written, or has spare
    /// capacity. A driver of many channels enforces a memory budget for all of them with it.
    fn queued_memory(&self) -> usize {
        self.queued()
    }

    /// Returns the buffered bytes of messages that the driver has not received yet, such as an incomplete one.
    ///
    /// A driver of many channels enforces a memory budget for all of them with it. With the default an incomplete
    /// message does not count.
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

/// The reason why a message could not be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// One message was longer than the limit and was skipped.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
        /// What the message was.
        message: OversizedMessage,
    },
    /// The peer rejected one sent message, and the channel continues.
    #[error("the peer rejected a message: {why}")]
    Rejected {
        /// The message as it was sent.
        message: Bytes,
        /// The reason of the rejection.
        why: io::Error,
    },
    /// The channel is broken.
    #[error("the channel failed: {0}")]
    Broken(#[source] io::Error),
}
