//! The in-memory event store.

mod journal;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

pub use self::journal::LoggedEvent;
use crate::session_store::BoxFuture;
use crate::{
    EventId, EventLimits, EventReplay, EventStore, OutboxClaim, ProcessId, SessionId, StoreError, StoreReply,
    StreamEvent, StreamId, Timestamp,
};

/// The bytes that an event counts for in [`EventLimits::total_bytes`] beside its data: its entry and the spare
/// capacity.
const EVENT_COST: usize = 128;

/// The bytes that a session with events counts for in [`EventLimits::total_bytes`]: its entries in two maps and its
/// first buffer.
const SESSION_COST: usize = 512;

/// The size of buffer, in events, that [`SESSION_COST`] covers and that is not worth shrinking.
const SMALL_LOG: usize = 4;

/// The most expired events that one `append` frees, so that no single call pays for a burst five minutes ago.
///
/// An `append` adds one event and frees up to this many, so expired events do not accumulate.
const MAX_FREED_PER_APPEND: usize = 16;

/// How many expired events `expire` frees before it releases the lock.
const MAX_FREED_PER_LOCK: usize = 1024;

/// Stores events in memory, for a server on one node.
///
/// A session has an entry only while it has events. One lock guards everything; an append takes it for a few map
/// operations, a replay and the end of a stream for one pass over the session's own events.
pub struct MemoryEvents {
    limits: EventLimits,
    log: Mutex<EventLog>,
}

impl MemoryEvents {
    /// Creates an empty store.
    pub fn new(limits: EventLimits) -> Self {
        Self { limits, log: Mutex::default() }
    }

    /// Returns the number of stored events, for gauges.
    pub fn count(&self) -> usize {
        self.log().sessions.values().map(|own| own.events.len()).sum()
    }

    /// Returns how much of [`EventLimits::total_bytes`] is in use.
    pub fn bytes(&self) -> usize {
        self.log().bytes
    }

    fn log(&self) -> MutexGuard<'_, EventLog> {
        // Nothing under the lock calls foreign code, so a panic elsewhere cannot have left the log half changed.
        self.log.lock()
    }

    fn is_expired(&self, logged: &EventEntry, now: Timestamp) -> bool {
        now.since(logged.appended_at) >= self.limits.age
    }

    /// Frees up to `most` expired events, and returns how many there were.
    fn free_expired(&self, log: &mut EventLog, now: Timestamp, most: usize) -> usize {
        for freed in 0..most {
            match log.oldest() {
                Some((session, kept)) if self.is_expired(kept, now) => log.drop_first(session),
                _ => return freed,
            }
        }
        most
    }

    /// Drops events until one more with this much data fits; returns whether it can fit at all.
    fn make_room(&self, log: &mut EventLog, session: SessionId, data: usize) -> bool {
        let cost = SESSION_COST + EVENT_COST + data;
        if self.limits.events == 0 || data > self.limits.bytes || cost > self.limits.total_bytes {
            return false;
        }
        let is_full =
            |own: &SessionLog| own.events.len() >= self.limits.events || own.data > self.limits.bytes - data;
        while log.sessions.get(&session).is_some_and(is_full) {
            log.drop_first(session);
        }
        while log.bytes > self.limits.total_bytes - cost {
            let Some((oldest, _)) = log.oldest() else { break };
            log.drop_first(oldest);
        }
        true
    }

    fn append_now(&self, log: &mut EventLog, session: SessionId, event: StreamEvent, now: Timestamp) {
        self.free_expired(log, now, MAX_FREED_PER_APPEND);
        if self.make_room(log, session, event.data.len()) {
            log.push(session, event, now);
        } else {
            // A replay without this event would have a gap, so the earlier positions of its stream are forgotten.
            log.forget_stream(session, event.id.stream);
        }
    }

    fn replay_now(&self, session: SessionId, after: EventId, now: Timestamp) -> EventReplay {
        let mut log = self.log();
        while log.first_of(session).is_some_and(|kept| self.is_expired(kept, now)) {
            log.drop_first(session);
        }
        let Some(own) = log.sessions.get(&session) else { return EventReplay::Gone };
        let mut events = own.events.iter().map(|kept| &kept.event);
        // Events are dropped oldest first, or a stream at a time: while one is stored, so are all later events of its
        // stream.
        if !events.any(|event| event.id == after) {
            return EventReplay::Gone;
        }
        EventReplay::Events(events.filter(|event| event.id.stream == after.stream).cloned().collect())
    }
}

impl EventStore for MemoryEvents {
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()> {
        self.append_now(&mut self.log(), session, event, now);
        StoreReply::Ready(Ok(()))
    }

    fn claim(
        &self,
        session: SessionId,
        process: ProcessId,
        _now: Timestamp,
    ) -> BoxFuture<'_, Result<OutboxClaim, StoreError>> {
        Box::pin(async move {
            let mut log = self.log();
            log.next_fence += 1;
            let fence = log.next_fence;
            let previous = log.claims.insert(session, (process, fence)).map(|(process, _)| process);
            Ok(OutboxClaim { fence, previous })
        })
    }

    fn append_claimed(
        &self,
        session: SessionId,
        event: StreamEvent,
        fence: u64,
        now: Timestamp,
    ) -> StoreReply<()> {
        let mut log = self.log();
        if log.claims.get(&session).is_some_and(|(_, current)| *current != fence) {
            return StoreReply::Ready(Err(StoreError::ClaimLost));
        }
        self.append_now(&mut log, session, event, now);
        StoreReply::Ready(Ok(()))
    }

    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>> {
        Box::pin(async move { Ok(self.replay_now(session, after, now)) })
    }

    fn forget(&self, session: SessionId) {
        let mut log = self.log();
        log.claims.remove(&session);
        log.retain(session, |_| false);
    }

    fn outlives_process(&self) -> bool {
        false
    }

    fn expire(&self, now: Timestamp) {
        loop {
            let freed = self.free_expired(&mut self.log(), now, MAX_FREED_PER_LOCK);
            if freed < MAX_FREED_PER_LOCK {
                return;
            }
        }
    }
}

/// Shows the amount of stored data, not the data.
impl fmt::Debug for MemoryEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.log();
        f.debug_struct("MemoryEvents")
            .field("sessions", &log.sessions.len())
            .field("firsts", &log.by_first.len())
            .field("bytes", &log.bytes)
            .finish_non_exhaustive()
    }
}

struct EventEntry {
    event: StreamEvent,
    appended_at: Timestamp,
    /// The event's position among the events of all sessions.
    serial: u64,
}

/// The events of one session in the order in which they were sent; never empty while in the log.
#[derive(Default)]
struct SessionLog {
    events: VecDeque<EventEntry>,
    /// The bytes of data in `events`.
    data: usize,
}

impl SessionLog {
    /// Releases the capacity of dropped events, so that a burst does not cost memory for ever.
    fn trim(&mut self) {
        let capacity = self.events.capacity();
        if capacity > SMALL_LOG && capacity > 3 * self.events.len() {
            self.events.shrink_to(2 * self.events.len());
        }
    }
}

#[derive(Default)]
struct EventLog {
    sessions: HashMap<SessionId, SessionLog>,
    /// The sessions by the serial of their first event.
    by_first: BTreeMap<u64, SessionId>,
    next_serial: u64,
    /// The bytes that all of `sessions` count for.
    bytes: usize,
    /// The process that sends each session's messages that belong to no call, where several share the store, and the number
    /// of its claim. A claim ends with its session.
    claims: HashMap<SessionId, (ProcessId, u64)>,
    next_fence: u64,
    /// The events that were added or dropped, if that is of interest.
    journal: Option<Vec<(SessionId, u64)>>,
}

impl EventLog {
    fn oldest(&self) -> Option<(SessionId, &EventEntry)> {
        let (_, session) = self.by_first.first_key_value()?;
        Some((*session, self.first_of(*session)?))
    }

    fn first_of(&self, session: SessionId) -> Option<&EventEntry> {
        self.sessions.get(&session)?.events.front()
    }

    fn push(&mut self, session: SessionId, event: StreamEvent, at: Timestamp) {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.note_change(session, serial);
        let own = self.sessions.entry(session).or_default();
        if own.events.is_empty() {
            self.by_first.insert(serial, session);
            self.bytes += SESSION_COST;
        }
        self.bytes += EVENT_COST + event.data.len();
        own.data += event.data.len();
        own.events.push_back(EventEntry { event, appended_at: at, serial });
    }

    fn drop_first(&mut self, session: SessionId) {
        let Some(own) = self.sessions.get_mut(&session) else { return };
        let first = own.events.pop_front();
        if let Some(first) = &first {
            self.by_first.remove(&first.serial);
            self.bytes -= EVENT_COST + first.event.data.len();
            own.data -= first.event.data.len();
            own.trim();
        }
        match own.events.front() {
            Some(next) => {
                self.by_first.insert(next.serial, session);
            }
            None => {
                self.sessions.remove(&session);
                self.bytes -= SESSION_COST;
            }
        }
        if let Some(first) = first {
            self.note_change(session, first.serial);
        }
    }

    fn forget_stream(&mut self, session: SessionId, stream: StreamId) {
        self.retain(session, |event| event.id.stream != stream);
    }

    fn retain(&mut self, session: SessionId, keep: impl Fn(&StreamEvent) -> bool) {
        let Some(mut own) = self.sessions.remove(&session) else { return };
        if let Some(first) = own.events.front() {
            self.by_first.remove(&first.serial);
        }
        let (count, data) = (own.events.len(), own.data);
        own.events.retain(|kept| {
            let is_kept = keep(&kept.event);
            if !is_kept {
                self.note_change(session, kept.serial);
            }
            is_kept
        });
        own.data = own.events.iter().map(|kept| kept.event.data.len()).sum();
        self.bytes -= EVENT_COST * (count - own.events.len()) + (data - own.data);
        match own.events.front() {
            Some(first) => {
                self.by_first.insert(first.serial, session);
                own.trim();
                self.sessions.insert(session, own);
            }
            None => self.bytes -= SESSION_COST,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn event_buffer_shrinks_after_a_burst() {
        let store = MemoryEvents::new(EventLimits::default());
        let session = SessionId::random();
        let at = |seq| EventId { stream: StreamId(seq), seq };
        for seq in 0..256 {
            let appended =
                store.append(session, StreamEvent { id: at(seq), data: Bytes::new() }, Timestamp(seq));
            assert!(matches!(appended, StoreReply::Ready(Ok(()))));
        }
        let capacity = |store: &MemoryEvents| store.log().sessions[&session].events.capacity();
        assert!(capacity(&store) >= 256);
        store.expire(Timestamp(199).plus(store.limits.age));
        assert_eq!(store.count(), 56);
        assert!(capacity(&store) <= 3 * 56, "{} after events grew old", capacity(&store));
        for stream in 200..250 {
            store.log().forget_stream(session, StreamId(stream));
        }
        assert_eq!(store.count(), 6);
        assert!(capacity(&store) <= 3 * 6, "{} after streams ended", capacity(&store));
    }
}
