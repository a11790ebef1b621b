use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use trunkline_protocol::line::{LineFramer, encode_line};

use crate::channel::{Channel, ReceiveError};

/// A channel of newline-delimited messages over a reader and a writer.
///
/// Reads are large and yield every complete line; writes are batched until the driver flushes.
#[derive(Debug)]
pub struct LineChannel<R, W> {
    reader: R,
    writer: W,
    framer: LineFramer,
    limit: usize,
    at_end: bool,
    outgoing: Vec<u8>,
    written: usize,
}

/// The size of one read: several small messages, or a good part of a large one.
const READ_BYTES: usize = 64 * 1024;

/// The capacity that the empty write buffer retains.
const MAX_RETAINED_BYTES: usize = 256 * 1024;

impl<R, W> LineChannel<R, W> {
    /// Creates a channel with messages of at most `limit` bytes.
    pub fn new(reader: R, writer: W, limit: usize) -> Self {
        Self {
            reader,
            writer,
            framer: LineFramer::new(limit),
            limit,
            at_end: false,
            outgoing: Vec::new(),
            written: 0,
        }
    }
}

impl<R, W> LineChannel<R, W> {
    pub(crate) fn writer(&self) -> &W {
        &self.writer
    }

    pub(crate) fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Drops written bytes from the buffer and shrinks it; with a peer that never quite catches up it would otherwise
    /// grow forever. At least half is dropped at a time, so that no byte is moved more than once on average.
    fn discard_written(&mut self) {
        if self.written >= MAX_RETAINED_BYTES && self.written >= self.outgoing.len() / 2 {
            self.outgoing.drain(..self.written);
            self.outgoing.shrink_to(self.outgoing.len() + MAX_RETAINED_BYTES);
            self.written = 0;
        }
    }
}

impl<R: AsyncRead + Unpin, W> LineChannel<R, W> {
    /// Reports whether the peer has closed its end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at_end
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // A scratch buffer on the stack avoids `unsafe`; the copy is cheap compared to the system call.
        let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut scratch);
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut read))?;
        self.framer.buffer().extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }
}

impl<R, W> Channel for LineChannel<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        loop {
            let line = if self.at_end { self.framer.finish() } else { self.framer.next_line() };
            match line {
                Some(Ok(line)) => return Poll::Ready(Some(Ok(line))),
                Some(Err(_)) => {
                    let message = self.framer.take_oversized();
                    return Poll::Ready(Some(Err(ReceiveError::TooLong { limit: self.limit, message })));
                }
                None if self.at_end => return Poll::Ready(None),
                None => {}
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                // A killed peer leaves a reset socket: for a reader that is an ordinary end of file.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.at_end = true,
                Err(error) => return Poll::Ready(Some(Err(ReceiveError::Broken(error)))),
            }
        }
    }

    fn send(&mut self, message: &str) {
        encode_line(&mut self.outgoing, message.as_bytes());
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.outgoing.get(self.written..).filter(|rest| !rest.is_empty()) {
            let Poll::Ready(count) = Pin::new(&mut self.writer).poll_write(cx, rest)? else {
                self.discard_written();
                return Poll::Pending;
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
        }
        self.written = 0;
        self.outgoing.clear();
        self.outgoing.shrink_to(MAX_RETAINED_BYTES);
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn queued(&self) -> usize {
        self.outgoing.len() - self.written
    }

    fn queued_memory(&self) -> usize {
        // What an idle channel keeps is not held for anything that waits.
        if self.outgoing.is_empty() { 0 } else { self.outgoing.capacity() }
    }

    fn unread_bytes(&self) -> usize {
        self.framer.buffered()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Accepts a few bytes at a time, and is pending in between.
    struct SlowWriter {
        pause: bool,
    }

    impl AsyncWrite for SlowWriter {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.pause = !self.pause;
            if self.pause { Poll::Pending } else { Poll::Ready(Ok(bytes.len().min(64 * 1024))) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn write_buffer_stays_bounded_for_a_slow_reader() {
        let mut channel = LineChannel::new(tokio::io::empty(), SlowWriter { pause: false }, 1024);
        let mut cx = Context::from_waker(Waker::noop());
        let message = "7".repeat(32 * 1024);
        channel.send(&message);
        for _ in 0..1_000 {
            // What was taken is replaced, so that the queue is never empty.
            while channel.queued() < 64 * 1024 {
                channel.send(&message);
            }
            assert!(channel.poll_flush(&mut cx).is_pending());
        }
        assert!(channel.outgoing.capacity() <= 4 * MAX_RETAINED_BYTES, "{}", channel.outgoing.capacity());
    }

    #[test]
    fn queued_memory_shrinks_while_a_long_message_is_written() {
        let mut channel = LineChannel::new(tokio::io::empty(), SlowWriter { pause: false }, 1024);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!((channel.queued(), channel.queued_memory()), (0, 0));
        let message = "7".repeat(4 << 20);
        channel.send(&message);
        assert!(channel.poll_flush(&mut cx).is_pending());
        assert!(channel.poll_flush(&mut cx).is_pending(), "64 KiB are taken");
        assert!(
            channel.queued() < message.len() && channel.queued_memory() > message.len(),
            "{}",
            channel.queued_memory()
        );
        while channel.queued() > 0 {
            let _ = channel.poll_flush(&mut cx);
            let most = 2 * channel.queued() + 2 * MAX_RETAINED_BYTES;
            assert!(channel.queued_memory() <= most, "{} for {}", channel.queued_memory(), channel.queued());
        }
        assert_eq!(channel.queued_memory(), 0);
    }
}
