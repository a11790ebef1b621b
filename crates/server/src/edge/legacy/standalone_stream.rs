use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, ready};

use parking_lot::Mutex;
use tokio::sync::Notify;
use trunkline_session::{EventId, EventStore, StreamId};

use super::event_record::{BreakableStream, ClaimLost, EventRecord};
use super::live::LiveSession;
use crate::bus::OutboxMessages;

/// The state of a standalone SSE stream: its current connection, and the number of its next event.
///
/// A client may resume a stream long before the server notices that its previous connection is dead. From then on
/// only the new connection sends events of the stream.
///
/// See [Listening for Messages from the Server](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).
#[derive(Debug)]
pub(super) struct StandaloneStreamState {
    connection: AtomicU64,
    /// Held while an event is made and given to the store, so that a connection that takes over finds either both
    /// done or neither.
    next: Mutex<u64>,
    taken_over: Notify,
    broken: AtomicBool,
}

impl StandaloneStreamState {
    pub(super) fn new(next: u64) -> Self {
        Self {
            connection: AtomicU64::new(0),
            next: Mutex::new(next),
            taken_over: Notify::new(),
            broken: AtomicBool::new(false),
        }
    }

    /// Makes a new connection the current one.
    pub(super) fn take_over(&self) -> u64 {
        let number = self.connection.fetch_add(1, Ordering::SeqCst) + 1;
        self.taken_over.notify_waiters();
        number
    }

    pub(super) fn is_current(&self, number: u64) -> bool {
        self.connection.load(Ordering::SeqCst) == number
    }
}

impl BreakableStream for StandaloneStreamState {
    fn mark_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// A connection of a session's standalone stream, until it is dropped or another one takes the stream over.
pub(crate) struct StandaloneConnection {
    session: Arc<LiveSession>,
    events: Arc<dyn EventStore>,
    stream: StreamId,
    state: Arc<StandaloneStreamState>,
    number: u64,
}

impl StandaloneConnection {
    pub(super) fn new(
        session: Arc<LiveSession>,
        events: Arc<dyn EventStore>,
        stream: StreamId,
        state: Arc<StandaloneStreamState>,
        number: u64,
        next: u64,
    ) -> Self {
        if number > 0 {
            // The previous connection may be storing an event; once the lock is released, a replay has the event. Another process
            // may have sent later ones.
            let mut known = state.next.lock();
            *known = next.max(*known);
        }
        Self { session, events, stream, state, number }
    }

    pub(crate) fn session(&self) -> &Arc<LiveSession> {
        &self.session
    }

    /// Reports whether this connection took the stream over from another.
    pub(crate) fn took_over(&self) -> bool {
        self.number > 0
    }

    /// Takes the next message, gives it to the store as the stream's next event and returns it; `None` if another
    /// connection has taken over, in which case nothing was taken.
    pub(crate) fn poll_event(
        &self,
        take: impl FnOnce() -> Poll<String>,
    ) -> Poll<Option<(EventRecord, String)>> {
        let mut next = self.state.next.lock();
        if !self.state.is_current(self.number) {
            return Poll::Ready(None);
        }
        if !self.session.has_outbox() {
            return Poll::Pending;
        }
        let message = ready!(take());
        let id = EventId { stream: self.stream, seq: *next };
        *next += 1;
        let (session, fence) = (self.session.id(), self.session.fence());
        let record = EventRecord::store_under(&*self.events, session, &self.state, id, &message, fence);
        Poll::Ready(Some((record, message)))
    }

    /// Waits until an event is stored, and returns its id and message; `None` if another process sends it.
    pub(crate) async fn stored(
        &self,
        record: EventRecord,
        message: String,
    ) -> Option<(Option<EventId>, String)> {
        if self.session.fence().is_none() {
            return Some((record.wait().await, message));
        }
        let session = self.session.clone();
        // In a task of its own, so that no message is lost with a connection that ends meanwhile.
        let storing = tokio::spawn(async move {
            match record.wait_claimed().await {
                Ok(id) => Some((id, message)),
                Err(ClaimLost) => {
                    session.return_messages(OutboxMessages { changes: Vec::new(), messages: vec![message] });
                    None
                }
            }
        });
        storing.await.ok().flatten()
    }

    /// Waits until another connection has taken over.
    pub(crate) async fn taken_over(&self) {
        let taken_over = self.state.taken_over.notified();
        if self.state.is_current(self.number) {
            taken_over.await;
        }
    }
}

impl Drop for StandaloneConnection {
    fn drop(&mut self) {
        self.session.detach_standalone(self.stream, self.number);
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::Revision;
    use trunkline_session::{EventLimits, EventReplay, MemoryEvents};

    use super::*;
    use crate::server::Server;
    use crate::server_core::now;
    use crate::testing;

    /// Sends numbers while the connection is current, and signals the first.
    fn send_numbers(connection: &StandaloneConnection, numbers: &AtomicU64, begun: &Notify) {
        for sent in 0.. {
            // Not more than the store retains, however slow the others are.
            let take = || match sent {
                0..200 => Poll::Ready(numbers.fetch_add(1, Ordering::SeqCst).to_string()),
                _ => Poll::Pending,
            };
            match connection.poll_event(take) {
                Poll::Ready(Some((EventRecord::Ready(Some(id)), number))) => {
                    assert_eq!(id.seq.to_string(), number);
                }
                Poll::Ready(Some(_)) => panic!("a store in memory never waits"),
                Poll::Ready(None) => return,
                Poll::Pending => std::thread::yield_now(),
            }
            begun.notify_one();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn resuming_a_standalone_stream_replays_every_event_once() {
        let core = testing::core(&Server::new("s"));
        let session = testing::session(&core, Revision::NEWEST_LEGACY);
        let limits = EventLimits { events: 10_000, ..EventLimits::default() };
        let events: Arc<dyn EventStore> = Arc::new(MemoryEvents::new(limits));
        let stream = StreamId(1);
        // Each number is a change: a connection that takes one must have stored it.
        let numbers = Arc::new(AtomicU64::new(0));
        let mut connections = Vec::new();
        for _ in 0..16 {
            let connection = session.attach_standalone(stream, 0, 1, &events).unwrap();
            if connection.took_over() {
                let first = EventId { stream, seq: 0 };
                let Ok(EventReplay::Events(kept)) = events.replay(session.id(), first, now()).await else {
                    panic!("everything is kept");
                };
                let found = kept.last().map_or(0, |event| event.id.seq);
                assert_eq!(found + 1, numbers.load(Ordering::SeqCst), "nothing is under way any more");
            }
            let (numbers, begun) = (numbers.clone(), Arc::new(Notify::new()));
            let first = begun.clone();
            connections
                .push(tokio::task::spawn_blocking(move || send_numbers(&connection, &numbers, &first)));
            begun.notified().await;
        }
        drop(session.attach_standalone(stream, 0, 1, &events).unwrap());
        for connection in connections {
            connection.await.unwrap();
        }
        assert!(!session.is_busy(), "no carrier is left");
    }
}
