use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use trunkline_transport::{Channel, ReceiveError};

use super::super::stream::write_message;
use crate::unanswered::Reserved;

/// How many small messages an inbox holds. A large one takes the room of several, so that all together hold no more bytes
/// than one message of the largest size.
const MESSAGES: u32 = 64;

/// Makes an inbox and the channel that reads from it.
pub(super) fn open(message_bytes: usize) -> (Arc<Inbox>, SseChannel) {
    let (sender, receiver) = mpsc::channel(MESSAGES as usize);
    let room = Arc::new(Semaphore::new(MESSAGES as usize));
    let inbox = Inbox { sender, room: room.clone(), unit: (message_bytes / MESSAGES as usize).max(1) };
    (Arc::new(inbox), SseChannel { receiver, room, outgoing: Vec::new() })
}

/// Takes the messages that are posted to one stream.
#[derive(Debug)]
pub(super) struct Inbox {
    sender: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    unit: usize,
}

#[derive(Debug)]
struct Waiting {
    message: Bytes,
    /// Given back when the message is taken out.
    _room: OwnedSemaphorePermit,
    /// The same: whoever takes it out reserves its own.
    _reserved: Option<Reserved>,
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The stream is over.
    Closed,
}

impl Inbox {
    /// Waits for room and puts a message in.
    ///
    /// Cancel safe: a message that found no room was not put in.
    pub(super) async fn put(&self, message: Bytes, reserved: Option<Reserved>) -> Result<(), Full> {
        let units = u32::try_from(message.len().div_ceil(self.unit)).unwrap_or(MESSAGES).clamp(1, MESSAGES);
        let room = self.room.clone().acquire_many_owned(units).await.map_err(|_| Full::Closed)?;
        // Whoever has room finds a place in the queue, which is as long as there are units.
        self.sender.try_send(Waiting { message, _room: room, _reserved: reserved }).map_err(|_| Full::Closed)
    }
}

/// The channel of one stream: it hears what is posted, and what it says is taken from it by the response body.
#[derive(Debug)]
pub(super) struct SseChannel {
    receiver: mpsc::Receiver<Waiting>,
    room: Arc<Semaphore>,
    outgoing: Vec<u8>,
}

impl SseChannel {
    /// Takes everything that was said since the last time, as events.
    pub(super) fn take(&mut self) -> Vec<u8> {
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

    /// Reports whether everything was taken. The body takes it right after every poll of the driver, and polls again as
    /// soon as the connection has room, so that nobody needs to be woken from here.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.outgoing.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn queued(&self) -> usize {
        self.outgoing.len()
    }
}

impl Drop for SseChannel {
    fn drop(&mut self) {
        // Those who wait for room learn that there will be none.
        self.room.close();
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
    fn an_inbox_holds_64_small_messages_or_as_many_bytes_as_one_large_one() {
        for (size, fits) in [(1, 64), (64, 64), (65, 32), (640, 6), (4096, 1)] {
            let (inbox, mut channel) = open(4096);
            for _ in 0..fits {
                assert_eq!(
                    inbox.put(Bytes::from(vec![b'x'; size]), None).now_or_never(),
                    Some(Ok(())),
                    "{size}"
                );
            }
            assert_eq!(inbox.put(Bytes::from(vec![b'x'; size]), None).now_or_never(), None, "{size}");
            assert_eq!(receive(&mut channel), Some(size));
            assert_eq!(inbox.put(Bytes::from(vec![b'x'; size]), None).now_or_never(), Some(Ok(())), "{size}");
        }
    }

    #[tokio::test]
    async fn those_who_wait_for_room_learn_that_the_stream_is_over() {
        let (inbox, channel) = open(4096);
        inbox.put(Bytes::from(vec![b'x'; 4096]), None).await.unwrap();
        let (late, ()) = tokio::join!(inbox.put(Bytes::from_static(b"x"), None), async { drop(channel) });
        assert_eq!(late, Err(Full::Closed));
    }
}
