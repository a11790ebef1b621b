use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::channel::{Channel, ReceiveError};

/// Makes two channels, each the other's peer, within this process.
///
/// At most `capacity` messages wait in each direction; beyond that the sender's flush waits for the reader.
pub fn memory(capacity: usize) -> (MemoryChannel, MemoryChannel) {
    let (there, back) = (Arc::new(Pipe::new(capacity)), Arc::new(Pipe::new(capacity)));
    let left = MemoryChannel { incoming: back.clone(), outgoing: there.clone(), waiting: VecDeque::new() };
    let right = MemoryChannel { incoming: there, outgoing: back, waiting: VecDeque::new() };
    (left, right)
}

/// One end of a channel within this process.
#[derive(Debug)]
pub struct MemoryChannel {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    waiting: VecDeque<Bytes>,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    capacity: usize,
    state: Mutex<PipeState>,
}

#[derive(Debug, Default)]
struct PipeState {
    messages: VecDeque<Bytes>,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        while state.messages.len() < self.outgoing.capacity {
            let Some(message) = self.waiting.pop_front() else { break };
            state.messages.push_back(message);
        }
        let full = !self.waiting.is_empty();
        if full {
            state.writer = Some(cx.waker().clone());
        }
        let reader = state.reader.take();
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
