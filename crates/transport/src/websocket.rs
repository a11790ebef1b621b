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
mod tests;
