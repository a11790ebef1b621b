use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a server, with or without TLS.
pub struct DialedStream {
    kind: DialedStreamKind,
}

enum DialedStreamKind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl DialedStream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self { kind: DialedStreamKind::Plain(stream) }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { kind: DialedStreamKind::Tls(Box::new(stream)) }
    }
}

impl fmt::Debug for DialedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            DialedStreamKind::Plain(_) => "plain",
            DialedStreamKind::Tls(_) => "TLS",
        };
        write!(f, "Stream({kind})")
    }
}

/// Does the same with either kind.
macro_rules! on_either {
    ($stream:expr, $inner:ident => $action:expr) => {
        match &mut $stream.get_mut().kind {
            DialedStreamKind::Plain($inner) => {
                let $inner = Pin::new($inner);
                $action
            }
            DialedStreamKind::Tls($inner) => {
                let $inner = Pin::new(&mut **$inner);
                $action
            }
        }
    };
}

impl AsyncRead for DialedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_read(cx, buffer))
    }
}

impl AsyncWrite for DialedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_either!(self, inner => inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self, inner => inner.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            DialedStreamKind::Plain(stream) => stream.is_write_vectored(),
            DialedStreamKind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_shutdown(cx))
    }
}
