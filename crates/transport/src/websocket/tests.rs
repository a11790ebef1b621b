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
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
