use std::fmt;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::response;
use tokio::io::AsyncWrite as _;
use trunkline_transport::http1::{COPIED_BYTES, Framing, Intake, Taken};

use super::head::{self, Head, Wrong};
use super::reply::{self, Ending, Length};
use super::socket::Socket;
use crate::http::body::MOST_SPARE;

/// What waits to be written is let grow to this before more of a response is asked for.
const ENOUGH: usize = 64 * 1024;

/// What is read ahead of a request while another is answered. Of a peer that sends more nobody knows whether it is still there
/// before it is answered.
const MOST_AHEAD: usize = 8 * 1024;

/// What is read of a body that nobody wants, since the connection is worth that much.
const MOST_SKIPPED: usize = 64 * 1024;

/// One connection as bytes: the request that is read, and the response that is written.
pub(super) struct Wire {
    socket: Socket,
    incoming: Intake,
    looked_at: usize,
    /// What is left of the body of the request that is being answered.
    body: Framing,
    /// Whether the peer waits to be asked for the body.
    expects_continue: bool,
    outgoing: Vec<u8>,
    /// How much of what is outgoing was written.
    sent: usize,
    /// What is written behind it, from its own place, and what ends that.
    apart: Bytes,
    /// The memory of that, which is held until its last byte is written.
    held_apart: usize,
    end_of_apart: &'static [u8],
    /// Whether nothing that was written is held back.
    is_flushed: bool,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            incoming: Intake::default(),
            looked_at: 0,
            body: Framing::Length(0),
            expects_continue: false,
            outgoing: Vec::new(),
            sent: 0,
            apart: Bytes::new(),
            held_apart: 0,
            end_of_apart: &[],
            is_flushed: true,
        }
    }

    /// Polls for the head of the next request; `None` if none will come.
    ///
    /// # Errors
    /// What is read is not the head of a request.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Head>, Wrong>> {
        loop {
            // Most of the time there is nothing before something is read.
            if !self.incoming.is_empty()
                && let Some(head) = head::take(self.incoming.buffer(), &mut self.looked_at)?
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
        matches!(self.incoming.buffer().as_ref(), [] | [b'\r'])
    }

    /// Takes the body of the request if it is here to its end; it is one piece then.
    pub(super) fn take_whole_body(&mut self) -> Option<Bytes> {
        if self.body.is_over() {
            return Some(Bytes::new());
        }
        match &mut self.body {
            Framing::Length(left) if *left <= self.incoming.buffer().len() as u64 => {
                let length = usize::try_from(std::mem::take(left)).unwrap_or_default();
                Some(self.incoming.buffer().split_to(length).freeze())
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
            match self.body.take(self.incoming.buffer()) {
                Ok(Taken::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Taken::End) => return Poll::Ready(None),
                Ok(Taken::More) => {}
                Err(problem) => {
                    return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::InvalidData, problem))));
                }
            }
            if self.expects_continue {
                self.outgoing.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                self.expects_continue = false;
            }
            if !self.outgoing.is_empty() || !self.is_flushed {
                ready!(self.poll_flush(cx))?;
            }
            if ready!(self.incoming.poll_fill(&mut self.socket, cx, self.body.at_least()))? == 0 {
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }

    /// Returns what is still to come of the body.
    pub(super) fn body(&self) -> &Framing {
        &self.body
    }

    /// Skips a body that nobody reads, as far as it is here and not too long; reports whether that was all of it.
    pub(super) fn skip_body(&mut self, cx: &mut Context<'_>) -> bool {
        let mut skipped = 0;
        while !self.body.is_over() && skipped < MOST_SKIPPED {
            match self.body.take(self.incoming.buffer()) {
                Ok(Taken::Data(data)) => skipped += data.len(),
                Ok(Taken::More) if self.poll_read(cx) == Poll::Ready(true) => {}
                _ => break,
            }
        }
        self.body.is_over()
    }

    /// Reads more; false if nothing will come any more.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.incoming.poll_fill(&mut self.socket, cx, 0).map(|read| matches!(read, Ok(1..)))
    }

    /// Polls for the end of the peer, while a request is answered whose body is read. What comes meanwhile is kept.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.body.is_over() && self.incoming.buffer().len() < MOST_AHEAD {
            if !ready!(self.poll_read(cx)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Begins a response.
    pub(super) fn begin(&mut self, parts: &response::Parts, length: Length, ending: Ending) {
        self.expects_continue = false;
        reply::write(&mut self.outgoing, parts, length, ending);
    }

    /// Adds a text to what is to be written.
    pub(super) fn say(&mut self, text: fmt::Arguments<'_>) {
        // Nothing that is written to memory fails.
        let _ = self.outgoing.write_fmt(text);
    }

    /// Adds a piece of a body to what is to be written, and what ends the piece.
    pub(super) fn add(&mut self, piece: Bytes, end: &'static [u8]) {
        if piece.len() <= COPIED_BYTES {
            self.outgoing.extend_from_slice(&piece);
            self.outgoing.extend_from_slice(end);
        } else {
            self.held_apart = piece.len() + MOST_SPARE;
            self.apart = piece;
            self.end_of_apart = end;
        }
    }

    /// Reports whether more may be added before what is there is written.
    pub(super) fn has_room(&self) -> bool {
        self.outgoing.len() < ENOUGH && self.end_of_apart.is_empty() && self.apart.is_empty()
    }

    /// Writes all there is.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.holds(self.outgoing.capacity() + self.held_apart);
        loop {
            let first = self.outgoing.get(self.sent..).unwrap_or_default();
            let (first, second, third) = (first, &self.apart[..], self.end_of_apart);
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
            self.wrote(count);
        }
        self.outgoing.clear();
        self.outgoing.shrink_to(2 * COPIED_BYTES);
        self.sent = 0;
        // Of what was written nothing is left to see, and all of it is still kept.
        self.apart = Bytes::new();
        self.held_apart = 0;
        // Nothing is held back but within TLS, where this is what lets it go.
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.is_flushed = flushed.is_ready();
        flushed
    }

    fn wrote(&mut self, mut count: usize) {
        let of_first = count.min(self.outgoing.len() - self.sent);
        self.sent += of_first;
        count -= of_first;
        let of_second = count.min(self.apart.len());
        self.apart.advance(of_second);
        self.end_of_apart = self.end_of_apart.get(count - of_second..).unwrap_or_default();
    }

    /// Tells the peer that nothing more will be written.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    /// Reads whatever still comes, for nobody; ready once the peer has ended.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.incoming.buffer().clear();
            if !ready!(self.poll_read(cx)) {
                return Poll::Ready(());
            }
        }
    }

    /// Gives back the room that a large request needed, since the next may be long in coming.
    pub(super) fn rest(&mut self) {
        self.incoming.begin();
        self.incoming.rest();
    }

    /// Gives back the room for the next request, since none is expected before a stream ends.
    pub(super) fn stand_by(&mut self) {
        self.incoming.stand_by();
    }

    /// Says that whatever comes belongs to no request.
    pub(super) fn expect_anything(&mut self) {
        self.body = Framing::UntilClose;
    }

    /// Takes the connection out, with what was read ahead.
    pub(super) fn into_socket(mut self) -> (Socket, Bytes) {
        self.socket.holds(0);
        (self.socket, self.incoming.into_bytes())
    }
}
