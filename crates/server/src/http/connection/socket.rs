use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

use crate::http::listener::Admission;
use crate::metrics::process::{self, CutReason};
use crate::unread::Holding;

/// The socket of one connection, with what counts it: it is counted until it is closed, even if it outlives the HTTP that
/// was spoken on it.
///
/// A write that makes no progress for long breaks the connection, so that a peer which does not read cannot keep it. What
/// such peers leave unread is held to a bound for all of them, and that may break it sooner.
pub(in crate::http) struct Socket {
    stream: Stream,
    write_within: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
    unread: Holding,
    /// The memory of the buffers that are being written.
    held: usize,
    _admission: Admission,
}

pub(in crate::http) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    pub(in crate::http) fn new(
        stream: Stream,
        write_within: Duration,
        unread: Holding,
        admission: Admission,
    ) -> Self {
        Self { stream, write_within, stuck: None, unread, held: 0, _admission: admission }
    }

    /// Says how much memory is held for what is written from now on: whole buffers, however much of them is written.
    pub(in crate::http) fn holds(&mut self, bytes: usize) {
        self.held = bytes;
    }

    /// Counts what is held for a peer that has not taken what was to be written, and passes on how the write went.
    fn counting(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        offered: impl Fn() -> usize,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => {
                if let Err(cut) = self.unread.wait(offered(), self.held, cx.waker()) {
                    return Poll::Ready(Err(cut.carry_out()));
                }
            }
            // What is written at once was never counted.
            Poll::Ready(_) if self.unread.is_empty() => {}
            Poll::Ready(Ok(count)) if *count < offered() => self.unread.moved(),
            Poll::Ready(_) => self.unread.release(),
        }
        self.noting(cx, written)
    }

    /// Passes on how a write went, and breaks the connection if none has gone anywhere for too long.
    fn noting<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // Nearly always there is nothing to drop.
            if self.stuck.is_some() {
                self.stuck = None;
            }
            return written;
        }
        let within = self.write_within;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        std::task::ready!(stuck.as_mut().poll(cx));
        process::cut_slow_reader(CutReason::Stalled);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $action:expr) => {
        match &mut $self.stream {
            Stream::Plain($stream) => $action,
            Stream::Tls($stream) => $action,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        each!(this, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = each!(this, stream => Pin::new(stream).poll_write(cx, bytes));
        this.counting(cx, written, || bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = each!(this, stream => Pin::new(stream).poll_write_vectored(cx, slices));
        this.counting(cx, written, || slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = each!(this, stream => Pin::new(stream).poll_flush(cx));
        this.noting(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = each!(this, stream => Pin::new(stream).poll_shutdown(cx));
        this.noting(cx, ended)
    }
}
