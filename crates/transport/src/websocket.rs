use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::sink::Sink;
use futures_util::stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::channel::{Channel, ReceiveError};
use crate::counted::Counted;

/// The time between two pings.
const PING_EVERY: Duration = Duration::from_secs(30);

/// Pings in a row that a living peer cannot leave unanswered.
const MOST_UNANSWERED: u32 = 2;

/// What one idle connection costs in each direction; larger messages are gathered beside it.
const BUFFER_BYTES: usize = 8 * 1024;

/// Returns what a server answers to the `Sec-WebSocket-Key` of a client.
pub fn accept_key(key: &[u8]) -> String {
    tokio_tungstenite::tungstenite::handshake::derive_accept_key(key)
}

/// Which party of a WebSocket this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The one that was connected to.
    Server,
    /// The one that connected.
    Client,
}

/// Why a WebSocket is closed by this party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closing {
    /// There is nothing more to say (1000).
    Done,
    /// This party goes away (1001).
    GoingAway,
    /// The peer broke the rules of WebSocket (1002).
    Malformed,
    /// The peer sent something that is not text (1003).
    NotText,
    /// The peer sent text that is not UTF-8 (1007).
    NotUtf8,
    /// The peer sent a message above the limit (1009).
    TooLong,
    /// This party has no room for the peer now (1013).
    Busy,
}

impl Closing {
    fn frame(self) -> CloseFrame {
        let (code, reason) = match self {
            Self::Done => (CloseCode::Normal, ""),
            Self::GoingAway => (CloseCode::Away, "going away"),
            Self::Malformed => (CloseCode::Protocol, "not a legal frame"),
            Self::NotText => (CloseCode::Unsupported, "messages are text"),
            Self::NotUtf8 => (CloseCode::Invalid, "text is UTF-8"),
            Self::TooLong => (CloseCode::Size, "the message is too long"),
            Self::Busy => (CloseCode::Again, "no room; try again later"),
        };
        CloseFrame { code, reason: Utf8Bytes::from_static(reason) }
    }
}

/// A channel over a WebSocket whose handshake is over: each message is one text message.
///
/// It pings a silent peer every 30 s and breaks when two pings in a row were left unanswered. A peer that closes is gone
/// in both directions, so that flushing fails from then on.
#[derive(Debug)]
pub struct WebSocketChannel<S> {
    socket: WebSocketStream<Counted<S>>,
    outgoing: VecDeque<Utf8Bytes>,
    queued: usize,
    /// A message that was read before anybody asked for it. Pongs are looked for even while the driver does not receive,
    /// and this is what may stand before them.
    ahead: Option<Result<Bytes, ReceiveError>>,
    closed: bool,
    /// What the peer did that it may not do.
    offence: Option<Closing>,
    pings: Interval,
    unanswered: u32,
    /// What a ping or pong of the peer has beside its payload.
    control_bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketChannel<S> {
    /// Makes a channel whose messages have at most `limit` bytes.
    pub async fn new(stream: S, party: Party, limit: usize) -> Self {
        Self::with_bytes(stream, Bytes::new(), party, limit).await
    }

    /// Makes a channel of which some bytes were read already, together with the handshake.
    pub async fn with_bytes(stream: S, ahead: Bytes, party: Party, limit: usize) -> Self {
        // What a client sends is masked, with four bytes.
        let (role, control_bytes) = match party {
            Party::Server => (Role::Server, 6),
            Party::Client => (Role::Client, 2),
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let mut pings = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket: {
                let counted = Counted { read: ahead.len(), stream };
                WebSocketStream::from_partially_read(counted, ahead.into(), role, Some(config)).await
            },
            outgoing: VecDeque::new(),
            queued: 0,
            ahead: None,
            closed: false,
            offence: None,
            pings,
            unanswered: 0,
            control_bytes,
        }
    }

    /// Tells the peer that this party closes, and waits until the peer has closed too.
    ///
    /// Where the peer broke a rule, that is what it is told instead. A peer may never close, so the caller sets a time.
    pub async fn close(&mut self, closing: Closing) {
        let frame = self.offence.unwrap_or(closing).frame();
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        while let Some(read) = std::future::poll_fn(|cx| Pin::new(&mut self.socket).poll_next(cx)).await {
            if read.is_err() {
                break;
            }
        }
        // Closing a socket with unread bytes would take back what was just written.
        let mut scratch = [0; 1024];
        while matches!(self.socket.get_mut().read(&mut scratch).await, Ok(count) if count > 0) {}
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        while !self.closed {
            let read = ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.unanswered = 0;
            match read {
                Some(Ok(Message::Text(text))) => {
                    // What was read with it of the next one is little.
                    self.socket.get_mut().read = 0;
                    return Poll::Ready(Some(Ok(text.into())));
                }
                Some(Ok(Message::Binary(_))) => self.offend(Closing::NotText),
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    // It may have come in the middle of a message, and is no part of it.
                    let control = self.control_bytes + payload.len();
                    let counted = self.socket.get_mut();
                    counted.read = counted.read.saturating_sub(control);
                }
                Some(Ok(Message::Close(_) | Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => self.offend(Closing::TooLong),
                Some(Err(Error::Utf8(_))) => self.offend(Closing::NotUtf8),
                Some(Err(Error::Io(error))) => {
                    self.closed = true;
                    return Poll::Ready(Some(Err(ReceiveError::Broken(error))));
                }
                Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) | None => self.closed = true,
                Some(Err(_)) => self.offend(Closing::Malformed),
            }
        }
        Poll::Ready(None)
    }

    fn offend(&mut self, offence: Closing) {
        self.offence = Some(offence);
        self.closed = true;
    }

    /// Reads ahead, so that a peer's pongs and its leaving are seen while nobody receives.
    fn look_ahead(&mut self, cx: &mut Context<'_>) {
        if self.ahead.is_none()
            && let Poll::Ready(Some(message)) = self.poll_message(cx)
        {
            self.ahead = Some(message);
            cx.waker().wake_by_ref();
        }
    }

    fn poll_pings(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.pings.poll_tick(cx).is_ready() {
            if self.ahead.is_some() {
                // It is this party that does not read, and the pong may be behind what waits.
                continue;
            }
            if self.unanswered >= MOST_UNANSWERED {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.unanswered += 1;
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
        match self.ahead.take() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.poll_message(cx),
        }
    }

    fn send(&mut self, message: &str) {
        self.queued += message.len();
        self.outgoing.push_back(message.into());
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_ahead(cx);
        if self.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.poll_pings(cx)?;
        while !self.outgoing.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(broken)?;
            let Some(message) = self.outgoing.pop_front() else { break };
            self.queued -= message.len();
            Pin::new(&mut self.socket).start_send(Message::Text(message)).map_err(broken)?;
        }
        Pin::new(&mut self.socket).poll_flush(cx).map_err(broken)
    }

    fn queued(&self) -> usize {
        self.queued
    }

    fn unreceived(&self) -> usize {
        let ahead = self.ahead.as_ref().and_then(|message| message.as_ref().ok());
        self.socket.get_ref().read + ahead.map_or(0, Bytes::len)
    }
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
        let server = WebSocketChannel::new(ours, Party::Server, 4096).await;
        (server, WebSocketChannel::new(theirs, Party::Client, 4096).await)
    }

    /// Drives a channel until it breaks; returns the time that it took, and why.
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
    async fn a_peer_that_answers_no_ping_is_given_up_after_two() {
        let (server, _silent) = pair().await;
        assert_eq!(drive(server).await, (3 * PING_EVERY, io::ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_only_answers_pings_is_kept() {
        let (mut server, mut client) = pair().await;
        let driven = std::future::poll_fn(|cx| {
            for channel in [&mut server, &mut client] {
                assert!(!matches!(channel.poll_flush(cx), Poll::Ready(Err(_))), "neither is given up");
            }
            Poll::<()>::Pending
        });
        assert!(tokio::time::timeout(100 * PING_EVERY, driven).await.is_err());
        assert_eq!((server.unreceived(), client.unreceived()), (0, 0), "pongs are no part of a message");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_is_not_given_up_for_what_we_do_not_read() {
        let (server, mut client) = pair().await;
        client.send("{}");
        std::future::poll_fn(|cx| client.poll_flush(cx)).await.unwrap();
        // Nobody receives the message, so that no pong behind it can be seen.
        assert!(tokio::time::timeout(100 * PING_EVERY, drive(server)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_of_a_message_is_told_until_it_is_received() {
        let (mut server, mut client) = pair().await;
        let mut cx = Context::from_waker(std::task::Waker::noop());
        client.send(&"x".repeat(4000));
        assert!(client.poll_flush(&mut cx).is_pending(), "the pipe between is small");
        assert!(server.poll_receive(&mut cx).is_pending());
        assert_eq!(server.unreceived(), 1024);
        while client.poll_flush(&mut cx).is_pending() {
            server.look_ahead(&mut cx);
        }
        server.look_ahead(&mut cx);
        assert_eq!(server.unreceived(), 4000, "whole, and not received yet");
        assert!(server.poll_receive(&mut cx).is_ready());
        assert_eq!(server.unreceived(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_go_both_ways_and_a_peer_that_leaves_is_gone_both_ways() {
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
        let leaving = client.close(Closing::Done);
        let left = async move {
            assert!(std::future::poll_fn(|cx| server.poll_receive(cx)).await.is_none());
            std::future::poll_fn(|cx| server.poll_flush(cx)).await.unwrap_err().kind()
        };
        assert_eq!(tokio::join!(left, leaving), (io::ErrorKind::BrokenPipe, ()));
    }
}
