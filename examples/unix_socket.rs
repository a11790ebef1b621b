//! A transport of one's own: a server on a Unix socket, one line of text for each message.
//!
//! `cargo run --example unix_socket -- /tmp/demo.sock`, then `nc -U /tmp/demo.sock` and a line such as
//! `{"jsonrpc":"2.0","id":1,"method":"ping"}`. `docs/write-a-transport.md` explains the design.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use trunkline::session::Principal;
use trunkline::transport::{Channel, ReceiveError};
use trunkline::{Host, HostOptions, Server, Tool};

/// The longest line that is taken.
const LIMIT: usize = 1 << 20;

struct UnixChannel {
    socket: UnixStream,
    incoming: BytesMut,
    outgoing: BytesMut,
}

impl UnixChannel {
    fn new(socket: UnixStream) -> Self {
        Self { socket, incoming: BytesMut::new(), outgoing: BytesMut::new() }
    }

    /// Takes one line out of what was read, without its end.
    fn next_line(&mut self) -> Option<Bytes> {
        let end = self.incoming.iter().position(|byte| *byte == b'\n')?;
        let line = self.incoming.split_to(end).freeze();
        self.incoming.advance(1);
        Some(line)
    }

    /// Reads what is there; false at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut scratch = [0; 8192];
        let mut read = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
        self.incoming.extend_from_slice(read.filled());
        Poll::Ready(Ok(!read.filled().is_empty()))
    }
}

impl Channel for UnixChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        loop {
            if let Some(line) = self.next_line() {
                return Poll::Ready(Some(Ok(line)));
            }
            if self.incoming.len() > LIMIT {
                let too_long = io::Error::other("a line is longer than the limit");
                return Poll::Ready(Some(Err(ReceiveError::Broken(too_long))));
            }
            match ready!(self.poll_fill(cx)) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(ReceiveError::Broken(error)))),
            }
        }
    }

    fn send(&mut self, message: &str) {
        self.outgoing.extend_from_slice(message.as_bytes());
        self.outgoing.extend_from_slice(b"\n");
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.outgoing))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.advance(written);
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn queued(&self) -> usize {
        self.outgoing.len()
    }
}

pub(crate) async fn serve(host: Host, path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let mut channels = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            () = host.shutdown().draining() => break,
            Some(_) = channels.join_next() => {}
            accepted = listener.accept() => {
                let (channel, host) = (UnixChannel::new(accepted?.0), host.clone());
                channels.spawn(async move { host.serve_channel(channel, Principal::Anonymous).await });
            }
        }
    }
    while channels.join_next().await.is_some() {}
    std::fs::remove_file(path)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let path = std::env::args_os().nth(1).ok_or("the path of a socket is needed")?;
    let server = Server::new("unix").with(Tool::new("hello").run(async || "hello"));
    let host = server.host(HostOptions::default())?;
    let shutdown = host.shutdown().clone();
    tokio::spawn(async move { tokio::signal::ctrl_c().await.map(|()| shutdown.drain()) });
    Ok(serve(host, Path::new(&path)).await?)
}
