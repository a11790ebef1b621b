use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The least capacity of a read, which a connection keeps.
const READ_BYTES: usize = 8 * 1024;

/// The capacity of a read while nothing is expected.
const IDLE_READ_BYTES: usize = 64;

/// The most capacity of a read, however much the peer sends.
const MAX_READ_BYTES: usize = 128 * 1024;

/// Bytes that were read from a connection and not parsed yet.
#[derive(Debug)]
pub struct ReadBuffer {
    buffer: BytesMut,
    /// The capacity of the next read.
    read_bytes: usize,
    /// Whether more room was made than the next message most likely needs.
    has_grown: bool,
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self { buffer: BytesMut::new(), read_bytes: READ_BYTES, has_grown: false }
    }
}

impl ReadBuffer {
    /// Reads more; zero means that nothing will come any more. What is certainly to come is read into one place.
    ///
    /// # Errors
    /// The stream fails.
    pub fn poll_fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        expected: u64,
    ) -> Poll<io::Result<usize>> {
        let expected = usize::try_from(expected).unwrap_or(usize::MAX).saturating_sub(self.buffer.len());
        let wanted = expected.clamp(self.read_bytes, MAX_READ_BYTES);
        // What is left behind the last message is room too, and most of the time enough.
        let room = self.buffer.capacity() - self.buffer.len();
        if room < wanted / 2 || room < expected.min(MAX_READ_BYTES) {
            self.buffer.reserve(wanted);
            self.has_grown |= self.buffer.capacity() > 2 * READ_BYTES;
        }
        let room = self.buffer.capacity() - self.buffer.len();
        let count = ready!(pin!(stream.read_buf(&mut self.buffer)).poll(cx))?;
        if count == room {
            self.read_bytes = (self.read_bytes * 2).min(MAX_READ_BYTES);
        }
        Poll::Ready(Ok(count))
    }

    /// Returns what was read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reports whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns to the usual capacity, since another message begins.
    pub fn begin_message(&mut self) {
        self.read_bytes = READ_BYTES;
    }

    /// Gives back the room that a large message needed, since a connection may rest for long.
    pub fn shrink(&mut self) {
        if self.has_grown {
            self.release();
        }
    }

    /// Gives back all room if nothing is left, and takes little until another message begins: nothing is expected for long.
    pub fn shrink_to_idle(&mut self) {
        self.read_bytes = IDLE_READ_BYTES;
        if self.buffer.capacity() > 2 * IDLE_READ_BYTES {
            self.release();
        }
    }

    fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.has_grown = false;
        }
    }

    /// Returns what is left.
    pub fn into_bytes(self) -> Bytes {
        self.buffer.freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn fill(intake: &mut ReadBuffer, mut bytes: &[u8], expected: u64) {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = intake.poll_fill(&mut bytes, &mut cx, expected);
        assert!(polled.is_ready());
    }

    #[test]
    fn read_buffer_grows_with_traffic_and_shrinks_afterwards() {
        let mut intake = ReadBuffer::default();
        fill(&mut intake, b"hello", 0);
        assert!((READ_BYTES..2 * READ_BYTES).contains(&intake.buffer.capacity()));
        fill(&mut intake, &[b'x'; 300_000], 300_000);
        assert_eq!(intake.buffer.len(), 5 + MAX_READ_BYTES, "as much as one read may bring");
        intake.shrink();
        assert!(!intake.is_empty(), "what belongs to somebody stays");
        intake.buffer.clear();
        intake.shrink();
        assert_eq!(intake.buffer.capacity(), 0);
    }

    #[test]
    fn idle_read_buffer_retains_little_memory() {
        let mut intake = ReadBuffer::default();
        fill(&mut intake, &[b'x'; 300_000], 300_000);
        intake.buffer.clear();
        for _ in 0..3 {
            intake.shrink_to_idle();
            fill(&mut intake, b"", 0);
            assert!(intake.buffer.capacity() <= 2 * IDLE_READ_BYTES, "{}", intake.buffer.capacity());
        }
        intake.begin_message();
        fill(&mut intake, b"hello", 0);
        assert!(intake.buffer.capacity() >= READ_BYTES);
    }
}
