use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a server, within TLS or not.
pub struct Stream {
    kind: Kind,
}

enum Kind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self { kind: Kind::Plain(stream) }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { kind: Kind::Tls(Box::new(stream)) }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Plain(_) => "plain",
            Kind::Tls(_) => "TLS",
        };
        write!(f, "Stream({kind})")
    }
}

/// Does the same with either kind.
macro_rules! on_either {
    ($stream:expr, $inner:ident => $action:expr) => {
        match &mut $stream.get_mut().kind {
            Kind::Plain($inner) => {
                let $inner = Pin::new($inner);
                $action
            }
            Kind::Tls($inner) => {
                let $inner = Pin::new(&mut **$inner);
                $action
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
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
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => inner.poll_shutdown(cx))
    }
}
