use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frame_split::FrameSplitter;

/// The size of one read.
const READ_BYTES: usize = 8 * 1024;

/// The connection of a WebSocket. It counts the bytes read since the count was last reset, and splits long frames for
/// its reader.
#[derive(Debug)]
pub(crate) struct CountingStream<S> {
    pub(crate) stream: S,
    pub(crate) bytes_read: usize,
    splitter: FrameSplitter,
    /// Bytes that did not fit into the caller's buffer: those read with the handshake, and the rest of a read that
    /// grew by fragment headers.
    pending: BytesMut,
}

impl<S> CountingStream<S> {
    /// Wraps a connection of which some bytes were read already, for messages of at most `limit` bytes.
    pub(crate) fn new(stream: S, ahead: &[u8], limit: usize) -> Self {
        let (mut splitter, mut pending) = (FrameSplitter::new(limit), BytesMut::new());
        splitter.feed(ahead, |bytes| pending.extend_from_slice(bytes));
        Self { stream, bytes_read: ahead.len(), splitter, pending }
    }

    fn copy_pending(&mut self, buffer: &mut ReadBuf<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let count = self.pending.len().min(buffer.remaining());
        buffer.put_slice(self.pending.get(..count).unwrap_or_default());
        self.pending.advance(count);
        if self.pending.is_empty() {
            self.pending = BytesMut::new();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
        // Nearly all bytes of a read fit: only the headers of fragments are added.
        let most = buffer.remaining().min(READ_BYTES);
        let before = buffer.filled().len();
        this.copy_pending(buffer);
        // A partial header yields no bytes, so the loop reads more.
        while buffer.filled().len() == before {
            let mut read = ReadBuf::uninit(scratch.get_mut(..most).unwrap_or_default());
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.bytes_read += read.filled().len();
            let pending = &mut this.pending;
            this.splitter.feed(read.filled(), |bytes| {
                let capacity = if pending.is_empty() { buffer.remaining() } else { 0 };
                let (now, later) = bytes.split_at_checked(capacity).unwrap_or((bytes, &[]));
                buffer.put_slice(now);
                pending.extend_from_slice(later);
            });
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::frame_split::SPLIT_BYTES;

    #[tokio::test]
    async fn long_frame_is_split_for_any_number_of_preread_bytes() {
        let payload = vec![b'x'; 3 * SPLIT_BYTES];
        let length = u64::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&[0x81, 127][..], &length, &payload].concat();
        let short = u16::try_from(SPLIT_BYTES).unwrap().to_be_bytes();
        let part = |first: u8| [&[first, 126][..], &short, &payload[..SPLIT_BYTES]].concat();
        let expected = [part(0x01), part(0x00), part(0x80)].concat();
        for ahead in [0, 1, 9, 10, 11, SPLIT_BYTES + 10, frame.len()] {
            let (first, rest) = frame.split_at(ahead);
            let mut counted = CountingStream::new(rest, first, payload.len());
            let mut read = Vec::new();
            // Buffers of many sizes, as a decoder has them.
            for capacity in (1..5000).cycle() {
                let mut piece = vec![0; capacity];
                let count = counted.read(&mut piece).await.unwrap();
                read.extend_from_slice(&piece[..count]);
                if count == 0 {
                    break;
                }
            }
            assert!(read == expected, "with {ahead} bytes ahead");
            assert_eq!(counted.bytes_read, frame.len(), "what was added is not counted");
        }
    }
}
