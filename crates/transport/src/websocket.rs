use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::sink::Sink;
use futures_util::stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use trunkline_protocol::envelope::OversizedMessage;

use crate::channel::{Channel, ReceiveError};
use crate::counting_stream::CountingStream;
use crate::frame_split::SPLIT_BYTES;

/// The time between two pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// The number of missed pongs in a row after which the peer counts as dead.
const MAX_MISSED_PONGS: u32 = 2;

/// The buffer of an idle connection in each direction; larger messages are collected in a separate buffer.
const BUFFER_BYTES: usize = 8 * 1024;

/// The most bytes of a message in one frame. A frame is copied into the write buffer, which never shrinks, so a
/// longer message is sent in fragments (RFC 6455 §5.4).
const FRAGMENT_BYTES: usize = 64 * 1024;

/// The most bytes of queued pongs. Beyond this, a peer that pings and does not read is not read from.
const MAX_PONG_BYTES: usize = 8 * 1024;

/// The limit of the write buffer: batched bytes, one frame, pongs, and a few control frames of ours.
const WRITE_BUFFER_BYTES: usize = 2 * BUFFER_BYTES + FRAGMENT_BYTES + MAX_PONG_BYTES;

/// Returns the `Sec-WebSocket-Accept` of a server for the `Sec-WebSocket-Key` of a client (RFC 6455 §4.2.2).
pub fn accept_key(key: &[u8]) -> String {
    tokio_tungstenite::tungstenite::handshake::derive_accept_key(key)
}

/// The most header bytes of a ping or pong.
const MAX_CONTROL_HEADER: usize = 6;

/// The role of this end of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketRole {
    /// The end that accepted the connection.
    Server,
    /// The end that opened the connection.
    Client,
}

/// The reason why this end closes a WebSocket (RFC 6455 §7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The connection has served its purpose (1000).
    Normal,
    /// This end is shutting down (1001).
    GoingAway,
    /// The peer violated the WebSocket protocol (1002).
    ProtocolError,
    /// The peer sent something that is not text (1003).
    NotText,
    /// The peer sent text that is not UTF-8 (1007).
    NotUtf8,
    /// The peer may not use the connection any more (1008).
    PolicyViolation,
    /// The peer sent a message above the limit (1009).
    TooLong,
    /// This end is overloaded (1013).
    TryAgainLater,
}

impl CloseReason {
    fn frame(self) -> CloseFrame {
        let (code, reason) = match self {
            Self::Normal => (CloseCode::Normal, ""),
            Self::GoingAway => (CloseCode::Away, "going away"),
            Self::ProtocolError => (CloseCode::Protocol, "not a legal frame"),
            Self::NotText => (CloseCode::Unsupported, "messages are text"),
            Self::NotUtf8 => (CloseCode::Invalid, "text is UTF-8"),
            Self::PolicyViolation => (CloseCode::Policy, "the credential is no longer valid"),
            Self::TooLong => (CloseCode::Size, "the message is too long"),
            Self::TryAgainLater => (CloseCode::Again, "no room; try again later"),
        };
        CloseFrame { code, reason: Utf8Bytes::from_static(reason) }
    }
}

/// A channel over a WebSocket after its handshake: each message is one text message.
///
/// It pings a silent peer every 30 s and breaks after two missed pongs in a row. A close by the peer ends both
/// directions, so flushing fails from then on. A message that violates the protocol or is above the limit ends it too; a
/// client receives that as its last error.
#[derive(Debug)]
pub struct WebSocketChannel<S> {
    socket: WebSocketStream<CountingStream<S>>,
    /// Messages with fragments that are not in the write buffer yet.
    outgoing: VecDeque<Bytes>,
    /// The bytes of the first message that are in the write buffer, or written.
    fragmented: usize,
    queued: usize,
    /// The bytes of pongs since the write buffer was last empty.
    pongs: usize,
    /// A message that was read ahead. Pongs must be seen even while the driver does not receive, and a message may
    /// come before them.
    read_ahead: Option<Result<Bytes, ReceiveError>>,
    closed: bool,
    /// The most bytes of a message.
    limit: usize,
    /// The protocol violation of the peer.
    violation: Option<CloseReason>,
    pings: Interval,
    missed_pongs: u32,
    /// The header bytes of a ping or pong of the peer.
    control_bytes: usize,
    role: WebSocketRole,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketChannel<S> {
    /// Creates a channel with messages of at most `limit` bytes.
    pub async fn new(stream: S, role: WebSocketRole, limit: usize) -> Self {
        Self::with_bytes(stream, Bytes::new(), role, limit).await
    }

    /// Creates a channel of which some bytes were read already, together with the handshake.
    pub async fn with_bytes(stream: S, ahead: Bytes, role: WebSocketRole, limit: usize) -> Self {
        // Frames of a client have a mask of four bytes (RFC 6455 §5.3).
        let (socket_role, control_bytes) = match role {
            WebSocketRole::Server => (Role::Server, 6),
            WebSocketRole::Client => (Role::Client, 2),
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES)
            .max_write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let mut pings = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket: {
                let counted = CountingStream::new(stream, &ahead, limit);
                WebSocketStream::from_raw_socket(counted, socket_role, Some(config)).await
            },
            outgoing: VecDeque::new(),
            fragmented: 0,
            queued: 0,
            pongs: 0,
            read_ahead: None,
            closed: false,
            limit,
            violation: None,
            pings,
            missed_pongs: 0,
            control_bytes,
            role,
        }
    }

    /// Sends a close frame, and waits until the peer has closed too.
    ///
    /// If the peer violated the protocol, the frame has that reason instead. A peer may never close, so the caller
    /// needs a timeout.
    pub async fn close(&mut self, closing: CloseReason) {
        let frame = self.violation.unwrap_or(closing).frame();
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        while let Some(read) = std::future::poll_fn(|cx| Pin::new(&mut self.socket).poll_next(cx)).await {
            if read.is_err() {
                break;
            }
        }
        if self.role == WebSocketRole::Server {
            // The server closes the connection first (RFC 6455 §7.1.1).
            let _ = self.socket.get_mut().shutdown().await;
        }
        // Closing a socket with unread bytes sends a reset, which can discard the close frame before the peer reads
        // it.
        let mut scratch = [0; 1024];
        while matches!(self.socket.get_mut().read(&mut scratch).await, Ok(count) if count > 0) {}
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        while !self.closed {
            if self.pongs >= MAX_PONG_BYTES
                && let Err(error) = ready!(self.poll_written(cx))
            {
                self.closed = true;
                return Poll::Ready(Some(Err(ReceiveError::Broken(error))));
            }
            let read = ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.missed_pongs = 0;
            let violation = match read {
                Some(Ok(Message::Text(text))) => {
                    // The bytes of the next message that were read with it are few.
                    self.socket.get_mut().bytes_read = 0;
                    return Poll::Ready(Some(Ok(shrink_to_message(text.into()))));
                }
                Some(Ok(Message::Binary(_))) => CloseReason::NotText,
                Some(Ok(Message::Ping(payload))) => {
                    self.pongs += MAX_CONTROL_HEADER + payload.len();
                    self.discount_control(&payload);
                    continue;
                }
                Some(Ok(Message::Pong(payload))) => {
                    self.discount_control(&payload);
                    continue;
                }
                Some(Ok(Message::Close(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(_))) => CloseReason::TooLong,
                Some(Err(Error::Utf8(_))) => CloseReason::NotUtf8,
                Some(Err(Error::Io(error))) => {
                    self.closed = true;
                    return Poll::Ready(Some(Err(ReceiveError::Broken(error))));
                }
                Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) | None => {
                    self.closed = true;
                    continue;
                }
                Some(Err(_)) => CloseReason::ProtocolError,
            };
            if let Some(error) = self.record_violation(violation) {
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(None)
    }

    /// Subtracts a ping or pong from the bytes read: it may come between the fragments of a message, and is no part
    /// of it.
    fn discount_control(&mut self, payload: &Bytes) {
        let control = self.control_bytes + payload.len();
        let counted = self.socket.get_mut();
        counted.bytes_read = counted.bytes_read.saturating_sub(control);
    }

    /// Polls until the write buffer is empty, so that no pong is queued any more.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(broken)?;
        self.pongs = 0;
        Poll::Ready(Ok(()))
    }

    /// Takes the next frame of the outgoing messages.
    fn next_frame(&mut self) -> Option<Frame> {
        let message = self.outgoing.front()?;
        let start = self.fragmented;
        let end = message.len().min(start + FRAGMENT_BYTES);
        let fragment = message.slice(start..end);
        let kind = if start == 0 { Data::Text } else { Data::Continue };
        let is_last = end == message.len();
        if is_last {
            self.queued -= end;
            self.fragmented = 0;
            self.outgoing.pop_front();
        } else {
            self.fragmented = end;
        }
        Some(Frame::message(fragment, OpCode::Data(kind), is_last))
    }

    /// Records how the peer violated the protocol. A server reports it to the peer when it closes; a client returns it as
    /// an error, the last item of the channel.
    fn record_violation(&mut self, violation: CloseReason) -> Option<ReceiveError> {
        self.violation = Some(violation);
        self.closed = true;
        let problem = match (self.role, violation) {
            (WebSocketRole::Server, _) => return None,
            (WebSocketRole::Client, CloseReason::TooLong) => {
                let message = OversizedMessage::Unknown;
                return Some(ReceiveError::TooLong { limit: self.limit, message });
            }
            (WebSocketRole::Client, CloseReason::NotUtf8) => "the server sent text that is not UTF-8",
            (WebSocketRole::Client, CloseReason::NotText) => "the server sent a binary message",
            (WebSocketRole::Client, _) => "the server sent an invalid frame",
        };
        Some(ReceiveError::Broken(io::Error::new(io::ErrorKind::InvalidData, problem)))
    }

    /// Reads ahead, so that a peer's pongs and its close are seen while the driver does not receive.
    fn poll_read_ahead(&mut self, cx: &mut Context<'_>) {
        if self.read_ahead.is_none()
            && let Poll::Ready(Some(message)) = self.poll_message(cx)
        {
            self.read_ahead = Some(message);
            cx.waker().wake_by_ref();
        }
    }

    fn poll_pings(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.pings.poll_tick(cx).is_ready() {
            if self.read_ahead.is_some() {
                // This end does not read, and the pong may be behind the message that was read ahead.
                continue;
            }
            if self.missed_pongs >= MAX_MISSED_PONGS {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.missed_pongs += 1;
            Pin::new(&mut self.socket).start_send(Message::Ping(Bytes::new())).map_err(broken)?;
        }
        Ok(())
    }
}

impl<S> Channel for WebSocketChannel<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        match self.read_ahead.take() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.poll_message(cx),
        }
    }

    fn send(&mut self, message: &str) {
        self.queued += message.len();
        self.outgoing.push_back(Bytes::copy_from_slice(message.as_bytes()));
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ahead(cx);
        if self.closed {
            if self.role == WebSocketRole::Client && matches!(self.read_ahead, Some(Err(_))) {
                // The reason of the end is received first; it has woken the task.
                return Poll::Pending;
            }
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.poll_pings(cx)?;
        while !self.outgoing.is_empty() {
            // Not ready before the last frame is completely written.
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(broken)?;
            let Some(frame) = self.next_frame() else { break };
            Pin::new(&mut self.socket).start_send(Message::Frame(frame)).map_err(broken)?;
        }
        self.poll_written(cx)
    }

    fn queued(&self) -> usize {
        self.queued
    }

    fn unread_bytes(&self) -> usize {
        let ahead = self.read_ahead.as_ref().and_then(|message| message.as_ref().ok());
        self.socket.get_ref().bytes_read + ahead.map_or(0, Bytes::len)
    }
}

/// Releases the spare capacity of a message's buffer, which lives as long as any slice of the message.
fn shrink_to_message(message: Bytes) -> Bytes {
    if message.len() <= SPLIT_BYTES {
        // A part of the read buffer.
        return message;
    }
    let mut message = Vec::from(message);
    message.shrink_to_fit();
    message.into()
}

fn broken(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        _ => io::ErrorKind::BrokenPipe.into(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    async fn pair() -> (WebSocketChannel<DuplexStream>, WebSocketChannel<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(1024);
        let server = WebSocketChannel::new(ours, WebSocketRole::Server, 4096).await;
        (server, WebSocketChannel::new(theirs, WebSocketRole::Client, 4096).await)
    }

    /// Drives a channel until it breaks; returns the elapsed time and the error.
    async fn drive(mut channel: WebSocketChannel<DuplexStream>) -> (Duration, io::ErrorKind) {
        let begun = Instant::now();
        let error = std::future::poll_fn(|cx| match channel.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            _ => Poll::Pending,
        })
        .await;
        (begun.elapsed(), error.kind())
    }

    #[tokio::test(start_paused = true)]
    async fn websocket_breaks_after_two_missed_pongs() {
        let (server, _silent) = pair().await;
        assert_eq!(drive(server).await, (3 * PING_INTERVAL, io::ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_only_sends_pongs_stays_connected() {
        let (mut server, mut client) = pair().await;
        let driven = std::future::poll_fn(|cx| {
            for channel in [&mut server, &mut client] {
                assert!(!matches!(channel.poll_flush(cx), Poll::Ready(Err(_))), "neither is given up");
            }
            Poll::<()>::Pending
        });
        assert!(tokio::time::timeout(100 * PING_INTERVAL, driven).await.is_err());
        assert_eq!((server.unread_bytes(), client.unread_bytes()), (0, 0), "pongs are no part of a message");
    }

    #[tokio::test(start_paused = true)]
    async fn unread_websocket_messages_do_not_count_as_missed_pongs() {
        let (server, mut client) = pair().await;
        client.send("{}");
        std::future::poll_fn(|cx| client.poll_flush(cx)).await.unwrap();
        // The driver does not receive the message, so a pong behind it cannot be seen.
        assert!(tokio::time::timeout(100 * PING_INTERVAL, drive(server)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn unread_bytes_counts_a_message_until_it_is_received() {
        let (mut server, mut client) = pair().await;
        let mut cx = Context::from_waker(std::task::Waker::noop());
        client.send(&"x".repeat(4000));
        assert!(client.poll_flush(&mut cx).is_pending(), "the pipe between is small");
        assert!(server.poll_receive(&mut cx).is_pending());
        assert_eq!(server.unread_bytes(), 1024);
        while client.poll_flush(&mut cx).is_pending() {
            server.poll_read_ahead(&mut cx);
        }
        server.poll_read_ahead(&mut cx);
        assert_eq!(server.unread_bytes(), 4000, "whole, and not received yet");
        assert!(server.poll_receive(&mut cx).is_ready());
        assert_eq!(server.unread_bytes(), 0);
    }

    /// A connection to a peer that pings on every read, and accepts writes only while it `reads`.
    #[derive(Default)]
    struct PingingPeer {
        masked: bool,
        reads: bool,
        /// The bytes of pings that were read.
        sent: usize,
        /// The largest single write.
        buffered: usize,
        taken: Vec<u8>,
    }

    /// The most bytes that the peer sends, so that a channel that reads without end fails a test and does not hang
    /// it.
    const MAX_SENT: usize = 4 << 20;

    impl AsyncRead for PingingPeer {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let mask = if self.masked { &[0x80 | 125, 0, 0, 0, 0][..] } else { &[125] };
            let ping = [&[0x89][..], mask, &[b'p'; 125]].concat();
            if self.sent >= MAX_SENT || buffer.remaining() < ping.len() {
                return Poll::Pending;
            }
            while buffer.remaining() >= ping.len() {
                buffer.put_slice(&ping);
                self.sent += ping.len();
            }
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for PingingPeer {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.buffered = self.buffered.max(bytes.len());
            if !self.reads {
                return Poll::Pending;
            }
            let count = bytes.len().min(1000);
            self.taken.extend(bytes.get(..count).unwrap_or_default());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pongs_for_a_peer_that_does_not_read_are_bounded() {
        for (role, masked) in [(WebSocketRole::Server, true), (WebSocketRole::Client, false)] {
            let stream = PingingPeer { masked, ..PingingPeer::default() };
            let mut channel = WebSocketChannel::new(stream, role, 4096).await;
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for message in [None, Some("x".repeat(10 * FRAGMENT_BYTES))] {
                if let Some(message) = message {
                    channel.send(&message);
                }
                for _ in 0..100 {
                    assert!(channel.poll_receive(&mut cx).is_pending(), "{role:?}");
                    assert!(channel.poll_flush(&mut cx).is_pending(), "{role:?}");
                }
                let peer = &channel.socket.get_ref().stream;
                assert!(peer.sent <= 4 * MAX_PONG_BYTES, "{role:?}: {} bytes of pings were read", peer.sent);
                assert!(peer.buffered <= WRITE_BUFFER_BYTES, "{role:?}: {} are buffered", peer.buffered);
            }
            assert_eq!(channel.queued(), 10 * FRAGMENT_BYTES, "{role:?}: it counts until it is written");
            // Once the peer reads, the channel reads from it again, until all of its bytes are sent.
            channel.socket.get_mut().stream.reads = true;
            while channel.socket.get_ref().stream.sent < MAX_SENT || channel.queued() > 0 {
                let _ = (channel.poll_receive(&mut cx), channel.poll_flush(&mut cx));
            }
            let peer = &channel.socket.get_ref().stream;
            assert!(peer.buffered <= WRITE_BUFFER_BYTES, "{role:?}: {} are buffered", peer.buffered);
            assert!(peer.taken.len() >= MAX_SENT, "{role:?}: pongs and message are written");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_message_is_sent_in_fragments_and_read_whole() {
        let (ours, theirs) = tokio::io::duplex(10_000);
        let long = "\u{e9}".repeat(3 * FRAGMENT_BYTES);
        let mut server = WebSocketChannel::new(ours, WebSocketRole::Server, long.len()).await;
        let mut client = WebSocketChannel::new(theirs, WebSocketRole::Client, long.len()).await;
        for _ in 0..2 {
            for message in [&long, "{}", &long] {
                server.send(message);
            }
            let flushed = std::future::poll_fn(|cx| server.poll_flush(cx));
            let received = async {
                for message in [&long, "{}", &long] {
                    let read = std::future::poll_fn(|cx| client.poll_receive(cx)).await.unwrap().unwrap();
                    assert!(read == message, "it is whole");
                }
            };
            let (flushed, ()) = tokio::join!(flushed, received);
            flushed.unwrap();
            assert_eq!(server.queued(), 0);
            std::mem::swap(&mut server, &mut client);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn websocket_close_by_the_peer_ends_both_directions() {
        let (mut server, mut client) = pair().await;
        let long = "x".repeat(4096);
        for _ in 0..2 {
            let (from, to) = (&mut server, &mut client);
            from.send("{}");
            from.send(&long);
            assert_eq!(from.queued(), 4098);
            let flushed = std::future::poll_fn(|cx| from.poll_flush(cx));
            let received = async {
                let mut texts = Vec::new();
                for _ in 0..2 {
                    texts.push(std::future::poll_fn(|cx| to.poll_receive(cx)).await.unwrap().unwrap());
                }
                texts
            };
            let (flushed, received) = tokio::join!(flushed, received);
            flushed.unwrap();
            assert_eq!(received, ["{}", &long]);
            std::mem::swap(&mut server, &mut client);
        }
        let leaving = client.close(CloseReason::Normal);
        let left = async move {
            assert!(std::future::poll_fn(|cx| server.poll_receive(cx)).await.is_none());
            std::future::poll_fn(|cx| server.poll_flush(cx)).await.unwrap_err().kind()
        };
        assert_eq!(tokio::join!(left, leaving), (io::ErrorKind::BrokenPipe, ()));
    }

    #[tokio::test(start_paused = true)]
    async fn server_ends_the_connection_as_soon_as_the_close_is_answered() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let mut server = WebSocketChannel::new(ours, WebSocketRole::Server, 1024).await;
        let closing = server.close(CloseReason::Normal);
        let peer = async move {
            let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
            while let Some(Ok(_)) = std::future::poll_fn(|cx| Pin::new(&mut client).poll_next(cx)).await {}
            // The peer keeps its own side open until it reads the end of the server's.
            let mut stream = client.into_inner();
            assert_eq!(stream.read(&mut [0; 16]).await.unwrap(), 0);
        };
        tokio::join!(closing, peer);
    }
}
