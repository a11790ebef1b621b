use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;
use trunkline_http1::server::ServerStream;

use crate::admission::PeerBacklog;
use crate::http::connection_admission::ConnectionPermit;
use crate::metrics::process::{self, EvictionReason};

/// The socket of one connection, with its permits: it is counted until it is closed, even if it outlives the HTTP
/// connection.
///
/// A write that makes no progress for long breaks the connection, so that a peer which does not read cannot keep it. What
/// such peers leave unread is held to a bound for all of them, and that may break it sooner.
pub(super) struct ConnectionSocket {
    stream: AcceptedStream,
    write_timeout: Duration,
    write_timer: Option<Pin<Box<Sleep>>>,
    backlog: PeerBacklog,
    /// The memory of the buffers that are being written.
    buffered: usize,
    _permit: ConnectionPermit,
}

pub(super) enum AcceptedStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ConnectionSocket {
    pub(super) fn new(
        stream: AcceptedStream,
        write_within: Duration,
        unread: PeerBacklog,
        admission: ConnectionPermit,
    ) -> Self {
        Self {
            stream,
            write_timeout: write_within,
            write_timer: None,
            backlog: unread,
            buffered: 0,
            _permit: admission,
        }
    }

    /// Counts what is held for a peer that has not taken what was to be written, and passes on how the write went.
    fn account_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        offered: impl Fn() -> usize,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => {
                if let Err(cut) = self.backlog.record_unwritten(offered(), self.buffered, cx.waker()) {
                    return Poll::Ready(Err(cut.into_io_error()));
                }
            }
            // What is written at once was never counted.
            Poll::Ready(_) if self.backlog.is_empty() => {}
            Poll::Ready(Ok(count)) if *count < offered() => self.backlog.record_progress(),
            Poll::Ready(_) => self.backlog.clear(),
        }
        self.track_progress(cx, written)
    }

    /// Passes on how a write went, and breaks the connection if none has gone anywhere for too long.
    fn track_progress<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // Nearly always there is nothing to drop.
            if self.write_timer.is_some() {
                self.write_timer = None;
            }
            return written;
        }
        let within = self.write_timeout;
        let stuck = self.write_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        std::task::ready!(stuck.as_mut().poll(cx));
        process::count_slow_reader(EvictionReason::Stalled);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl ServerStream for ConnectionSocket {
    fn set_buffered(&mut self, bytes: usize) {
        self.buffered = bytes;
    }

    fn is_reset(&self) -> bool {
        let stream = match &self.stream {
            AcceptedStream::Plain(stream) => stream,
            AcceptedStream::Tls(stream) => stream.get_ref().0,
        };
        !matches!(stream.take_error(), Ok(None))
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $action:expr) => {
        match &mut $self.stream {
            AcceptedStream::Plain($stream) => $action,
            AcceptedStream::Tls($stream) => $action,
        }
    };
}

impl AsyncRead for ConnectionSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        each!(this, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for ConnectionSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = each!(this, stream => Pin::new(stream).poll_write(cx, bytes));
        this.account_write(cx, written, || bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = each!(this, stream => Pin::new(stream).poll_write_vectored(cx, slices));
        this.account_write(cx, written, || slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            AcceptedStream::Plain(stream) => stream.is_write_vectored(),
            AcceptedStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = each!(this, stream => Pin::new(stream).poll_flush(cx));
        this.track_progress(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = each!(this, stream => Pin::new(stream).poll_shutdown(cx));
        this.track_progress(cx, ended)
    }
}
