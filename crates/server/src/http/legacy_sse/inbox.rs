use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use trunkline_transport::{Channel, ReceiveError};

use super::super::stream::write_message;
use crate::admission::BytePermit;

/// How many small messages an inbox holds.
const MAX_MESSAGES: u32 = 64;

/// How many bytes they may have together. A large message takes the permits of several small ones, and one that is
/// larger than this takes all of them: such a one counts against the memory budget of large requests, and smaller
/// ones do not.
const MAX_BYTES: usize = 256 * 1024;

/// Makes an inbox and the channel that reads from it.
pub(super) fn open(message_bytes: usize) -> (Arc<SseInbox>, SseChannel) {
    let (sender, receiver) = mpsc::channel(MAX_MESSAGES as usize);
    let permits = Arc::new(Semaphore::new(MAX_MESSAGES as usize));
    let inbox = SseInbox {
        sender,
        permits: permits.clone(),
        unit: (message_bytes.min(MAX_BYTES) / MAX_MESSAGES as usize).max(1),
    };
    (Arc::new(inbox), SseChannel { receiver, permits, outgoing: Vec::new() })
}

/// Receives the messages that are posted to one stream.
#[derive(Debug)]
pub(super) struct SseInbox {
    sender: mpsc::Sender<PostedMessage>,
    permits: Arc<Semaphore>,
    unit: usize,
}

#[derive(Debug)]
struct PostedMessage {
    message: Bytes,
    /// Released when the message is taken out.
    _permit: OwnedSemaphorePermit,
    /// Also released then: the channel reserves memory for the message itself.
    _memory_permit: Option<BytePermit>,
}

/// Why a message was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboxError {
    /// The stream is over.
    Closed,
}

impl SseInbox {
    /// Waits for permits and enqueues a message.
    ///
    /// Cancel safe: a message without its permits was not enqueued.
    pub(super) async fn push(&self, message: Bytes, reserved: Option<BytePermit>) -> Result<(), InboxError> {
        let units =
            u32::try_from(message.len().div_ceil(self.unit)).unwrap_or(MAX_MESSAGES).clamp(1, MAX_MESSAGES);
        let permit = self.permits.clone().acquire_many_owned(units).await.map_err(|_| InboxError::Closed)?;
        // With its permits a message always fits: the queue is as long as there are permits.
        self.sender
            .try_send(PostedMessage { message, _permit: permit, _memory_permit: reserved })
            .map_err(|_| InboxError::Closed)
    }
}

/// The channel of one stream: it reads the posted messages, and the response body takes its outgoing ones.
#[derive(Debug)]
pub(super) struct SseChannel {
    receiver: mpsc::Receiver<PostedMessage>,
    permits: Arc<Semaphore>,
    outgoing: Vec<u8>,
}

impl SseChannel {
    /// Takes all outgoing messages since the last time, as events.
    pub(super) fn take_events(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }
}

impl Channel for SseChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        self.receiver.poll_recv(cx).map(|waiting| waiting.map(|waiting| Ok(waiting.message)))
    }

    fn send(&mut self, message: &str) {
        write_message(&mut self.outgoing, None, message);
    }

    /// Reports whether all output was taken. The body takes it right after every poll of the driver, and polls again
    /// as soon as the connection can write more, so that no task needs to be woken from here.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.outgoing.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn queued(&self) -> usize {
        self.outgoing.len()
    }
}

impl Drop for SseChannel {
    fn drop(&mut self) {
        // Posts that wait for permits fail at once.
        self.permits.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn receive(channel: &mut SseChannel) -> Option<usize> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match channel.poll_receive(&mut cx) {
            Poll::Ready(Some(Ok(message))) => Some(message.len()),
            _ => None,
        }
    }

    #[test]
    fn sse_inbox_holds_64_messages_and_256_kib_or_one_larger_message() {
        const KIB: usize = 1024;
        for (limit, size, fits) in [
            (4 * KIB, 1, 64),
            (4 * KIB, 64, 64),
            (4 * KIB, 65, 32),
            (4 * KIB, 640, 6),
            (4 * KIB, 4 * KIB, 1),
            (4096 * KIB, 1, 64),
            (4096 * KIB, 4 * KIB, 64),
            (4096 * KIB, 60 * KIB, 4),
            (4096 * KIB, 64 * KIB, 4),
            (4096 * KIB, 4096 * KIB, 1),
        ] {
            let (inbox, mut channel) = open(limit);
            for _ in 0..fits {
                assert_eq!(
                    inbox.push(Bytes::from(vec![b'x'; size]), None).now_or_never(),
                    Some(Ok(())),
                    "{size}"
                );
            }
            assert_eq!(inbox.push(Bytes::from(vec![b'x'; size]), None).now_or_never(), None, "{size}");
            assert_eq!(receive(&mut channel), Some(size));
            assert_eq!(
                inbox.push(Bytes::from(vec![b'x'; size]), None).now_or_never(),
                Some(Ok(())),
                "{size}"
            );
        }
    }

    #[tokio::test]
    async fn pending_sse_posts_fail_when_the_stream_ends() {
        let (inbox, channel) = open(4096);
        inbox.push(Bytes::from(vec![b'x'; 4096]), None).await.unwrap();
        let (late, ()) = tokio::join!(inbox.push(Bytes::from_static(b"x"), None), async { drop(channel) });
        assert_eq!(late, Err(InboxError::Closed));
    }
}
