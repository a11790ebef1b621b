use std::fmt;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::{BodyFraming, BodyRead, MAX_COPIED_BODY, ReadBuffer};
use bytes::{Buf as _, Bytes};
use http::response;

use super::request_head::{self, ParsedRequestHead, RequestHeadError};
use super::response_head::{self, ConnectionPersistence, ResponseLength};
use super::server_stream::ServerStream;

/// What a buffer of a response may have allocated beyond its length. It may wait long to be read, and is counted by its length
/// and this.
pub const MAX_SPARE_CAPACITY: usize = 16 * 1024;

/// The body of a response is polled for more until the write buffer holds this much.
const WRITE_BUFFER_TARGET: usize = 64 * 1024;

/// What is read ahead of a request while another is answered. Of a peer that sends more, a disconnect
/// is detected only after the response.
const MAX_READ_AHEAD: usize = 8 * 1024;

/// How much of an unread body is skipped to keep the connection.
const MAX_SKIPPED: usize = 64 * 1024;

/// How the peer ended its side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerEnd {
    /// It sends nothing more. It may still read, or be gone.
    HalfClosed,
    /// The connection is broken.
    Broken,
}

/// One connection as bytes: the request that is read, and the response that is written.
pub(super) struct ConnectionIo<K> {
    socket: K,
    read_buffer: ReadBuffer,
    scanned: usize,
    /// What is left of the body of the request that is being answered.
    body: BodyFraming,
    /// Whether the peer waits for `100 Continue` before it sends the body.
    expects_continue: bool,
    write_buffer: Vec<u8>,
    /// How much of what is outgoing was written.
    written: usize,
    /// What is written behind it, from its own place, and what ends that.
    body_chunk: Bytes,
    /// The memory of that, which is held until its last byte is written.
    chunk_memory: usize,
    chunk_suffix: &'static [u8],
    /// Whether nothing that was written is held back.
    is_flushed: bool,
}

impl<K: ServerStream> ConnectionIo<K> {
    pub(super) fn new(socket: K) -> Self {
        Self {
            socket,
            read_buffer: ReadBuffer::default(),
            scanned: 0,
            body: BodyFraming::Length(0),
            expects_continue: false,
            write_buffer: Vec::new(),
            written: 0,
            body_chunk: Bytes::new(),
            chunk_memory: 0,
            chunk_suffix: &[],
            is_flushed: true,
        }
    }

    /// Polls for the head of the next request; `None` if none will come.
    ///
    /// # Errors
    /// What is read is not the head of a request.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<ParsedRequestHead>, RequestHeadError>> {
        loop {
            // Most of the time there is nothing before something is read.
            if !self.read_buffer.is_empty()
                && let Some(head) =
                    request_head::take_request_head(self.read_buffer.buffer(), &mut self.scanned)?
            {
                self.body = head.framing.clone();
                self.expects_continue = head.expects_continue;
                return Poll::Ready(Ok(Some(head)));
            }
            if !ready!(self.poll_read(cx)) {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Reports whether nothing of a request is here; half an empty line is nothing yet.
    pub(super) fn is_idle(&mut self) -> bool {
        matches!(self.read_buffer.buffer().as_ref(), [] | [b'\r'])
    }

    /// Takes the body of the request if it is here to its end; it is one piece then.
    pub(super) fn take_whole_body(&mut self) -> Option<Bytes> {
        if self.body.is_complete() {
            return Some(Bytes::new());
        }
        match &mut self.body {
            BodyFraming::Length(left) if *left <= self.read_buffer.buffer().len() as u64 => {
                let length = usize::try_from(std::mem::take(left)).unwrap_or_default();
                Some(self.read_buffer.buffer().split_to(length).freeze())
            }
            _ => None,
        }
    }

    /// Polls for the next piece of the body of a request; `None` is its end.
    ///
    /// # Errors
    /// It breaks off, or is malformed.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match self.body.read(self.read_buffer.buffer()) {
                Ok(BodyRead::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(BodyRead::End) => return Poll::Ready(None),
                Ok(BodyRead::NeedMore) => {}
                Err(problem) => {
                    return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::InvalidData, problem))));
                }
            }
            if self.expects_continue {
                self.write_buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                self.expects_continue = false;
            }
            if !self.write_buffer.is_empty() || !self.is_flushed {
                ready!(self.poll_flush(cx))?;
            }
            if ready!(self.read_buffer.poll_fill(&mut self.socket, cx, self.body.min_remaining()))? == 0 {
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }

    /// Returns what is still to come of the body.
    pub(super) fn body(&self) -> &BodyFraming {
        &self.body
    }

    /// Skips a body that the service did not read, as far as it is here and not too long; reports whether that was all of it.
    pub(super) fn skip_body(&mut self, cx: &mut Context<'_>) -> bool {
        let mut skipped = 0;
        while !self.body.is_complete() && skipped < MAX_SKIPPED {
            match self.body.read(self.read_buffer.buffer()) {
                Ok(BodyRead::Data(data)) => skipped += data.len(),
                Ok(BodyRead::NeedMore) if self.poll_read(cx) == Poll::Ready(true) => {}
                _ => break,
            }
        }
        self.body.is_complete()
    }

    /// Reads more; false if nothing will come any more.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.read_buffer.poll_fill(&mut self.socket, cx, 0).map(|read| matches!(read, Ok(1..)))
    }

    /// Polls for the end of the peer's side, while a request with a complete body is answered. What arrives meanwhile is
    /// kept.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<PeerEnd> {
        while self.body.is_complete() && self.read_buffer.buffer().len() < MAX_READ_AHEAD {
            match ready!(self.read_buffer.poll_fill(&mut self.socket, cx, 0)) {
                Ok(0) => return Poll::Ready(PeerEnd::HalfClosed),
                Ok(_) => {}
                Err(_) => return Poll::Ready(PeerEnd::Broken),
            }
        }
        Poll::Pending
    }

    /// Writes bytes that show whether the peer is still there, unless something waits to be written; reports whether the
    /// connection is broken.
    pub(super) fn probe(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> bool {
        if self.write_buffer.is_empty() && self.body_chunk.is_empty() && self.chunk_suffix.is_empty() {
            self.write_buffer.extend_from_slice(bytes);
        }
        self.socket.is_reset() || matches!(self.poll_flush(cx), Poll::Ready(Err(_)))
    }

    /// Begins a response.
    pub(super) fn begin_response(
        &mut self,
        parts: &response::Parts,
        length: ResponseLength,
        ending: ConnectionPersistence,
    ) {
        self.expects_continue = false;
        response_head::write_head(&mut self.write_buffer, parts, length, ending);
    }

    /// Adds a text to what is to be written.
    pub(super) fn write_text(&mut self, text: fmt::Arguments<'_>) {
        // Nothing that is written to memory fails.
        let _ = self.write_buffer.write_fmt(text);
    }

    /// Adds a piece of a body to what is to be written, and what ends the piece.
    pub(super) fn write_chunk(&mut self, piece: Bytes, end: &'static [u8]) {
        if piece.len() <= MAX_COPIED_BODY {
            self.write_buffer.extend_from_slice(&piece);
            self.write_buffer.extend_from_slice(end);
        } else {
            self.chunk_memory = piece.len() + MAX_SPARE_CAPACITY;
            self.body_chunk = piece;
            self.chunk_suffix = end;
        }
    }

    /// Reports whether more may be added before what is there is written.
    pub(super) fn has_room(&self) -> bool {
        self.write_buffer.len() < WRITE_BUFFER_TARGET
            && self.chunk_suffix.is_empty()
            && self.body_chunk.is_empty()
    }

    /// Writes all there is.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.set_buffered(self.write_buffer.capacity() + self.chunk_memory);
        loop {
            let first = self.write_buffer.get(self.written..).unwrap_or_default();
            let (first, second, third) = (first, &self.body_chunk[..], self.chunk_suffix);
            let socket = Pin::new(&mut self.socket);
            let count = match (first, second, third) {
                ([], [], []) => break,
                (first, [], []) => ready!(socket.poll_write(cx, first))?,
                _ => {
                    let slices = [first, second, third].map(IoSlice::new);
                    ready!(socket.poll_write_vectored(cx, &slices))?
                }
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count);
        }
        self.write_buffer.clear();
        self.write_buffer.shrink_to(2 * MAX_COPIED_BODY);
        self.written = 0;
        // Of what was written nothing is left to see, and all of it is still kept.
        self.body_chunk = Bytes::new();
        self.chunk_memory = 0;
        // Nothing is held back but within TLS, where this is what lets it go.
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.is_flushed = flushed.is_ready();
        flushed
    }

    fn advance(&mut self, mut count: usize) {
        let of_first = count.min(self.write_buffer.len() - self.written);
        self.written += of_first;
        count -= of_first;
        let of_second = count.min(self.body_chunk.len());
        self.body_chunk.advance(of_second);
        self.chunk_suffix = self.chunk_suffix.get(count - of_second..).unwrap_or_default();
    }

    /// Shuts the write side down.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    /// Reads and discards whatever still arrives; ready once the peer has closed.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.read_buffer.buffer().clear();
            if !ready!(self.poll_read(cx)) {
                return Poll::Ready(());
            }
        }
    }

    /// Gives back the room that a large request needed, since the next may be long in coming.
    pub(super) fn shrink_buffers(&mut self) {
        self.read_buffer.begin_message();
        self.read_buffer.shrink();
    }

    /// Gives back the room for the next request, since none is expected before a stream ends.
    pub(super) fn release_read_buffer(&mut self) {
        self.read_buffer.shrink_to_idle();
    }

    /// Treats whatever arrives from now on as belonging to no request.
    pub(super) fn ignore_input(&mut self) {
        self.body = BodyFraming::UntilClose;
    }

    /// Takes the connection out, with what was read ahead.
    pub(super) fn into_socket(mut self) -> (K, Bytes) {
        self.socket.set_buffered(0);
        (self.socket, self.read_buffer.into_bytes())
    }
}
