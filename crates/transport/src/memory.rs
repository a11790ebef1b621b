use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::channel::{Channel, ReceiveError};

/// Creates a pair of connected channels within this process.
///
/// At most `capacity` messages are queued in each direction; beyond that the sender's flush waits for the reader.
pub fn memory(capacity: usize) -> (MemoryChannel, MemoryChannel) {
    let (there, back) = (Arc::new(MemoryPipe::new(capacity)), Arc::new(MemoryPipe::new(capacity)));
    let left = MemoryChannel { incoming: back.clone(), outgoing: there.clone(), waiting: VecDeque::new() };
    let right = MemoryChannel { incoming: there, outgoing: back, waiting: VecDeque::new() };
    (left, right)
}

/// One end of a channel within this process.
#[derive(Debug)]
pub struct MemoryChannel {
    incoming: Arc<MemoryPipe>,
    outgoing: Arc<MemoryPipe>,
    waiting: VecDeque<Bytes>,
}

/// One direction.
#[derive(Debug)]
struct MemoryPipe {
    capacity: usize,
    state: Mutex<MemoryPipeState>,
}

#[derive(Debug, Default)]
struct MemoryPipeState {
    messages: VecDeque<Bytes>,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl MemoryPipe {
    fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryPipeState> {
        self.state.lock()
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Channel for MemoryChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        let mut state = self.incoming.lock();
        if let Some(message) = state.messages.pop_front() {
            let writer = state.writer.take();
            drop(state);
            writer.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(Ok(message)));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn send(&mut self, message: &str) {
        self.waiting.push_back(Bytes::copy_from_slice(message.as_bytes()));
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.outgoing.lock();
        if state.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let before = state.messages.len();
        while state.messages.len() < self.outgoing.capacity {
            let Some(message) = self.waiting.pop_front() else { break };
            state.messages.push_back(message);
        }
        let any = state.messages.len() > before;
        let full = !self.waiting.is_empty();
        if full {
            state.writer = Some(cx.waker().clone());
        }
        // Otherwise two drivers that flush in every turn would wake each other forever.
        let reader = if any { state.reader.take() } else { None };
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        if full { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn queued(&self) -> usize {
        self.waiting.iter().map(Bytes::len).sum()
    }
}

impl Drop for MemoryChannel {
    fn drop(&mut self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

#[cfg(test)]
mod tests {
    use trunkline_testing::WakeCounter;

    use super::*;

    #[test]
    fn flush_wakes_the_reader_only_with_unread_data() {
        let (mut left, mut right) = memory(1);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        assert!(right.poll_receive(&mut cx).is_pending());
        assert!(left.poll_flush(&mut cx).is_ready());
        assert_eq!(wakes.count(), 0);
        left.send("{}");
        assert!(left.poll_flush(&mut cx).is_ready());
        assert_eq!(wakes.count(), 1);
        assert!(right.poll_receive(&mut cx).is_ready());
    }
}
