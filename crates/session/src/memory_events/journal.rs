//! The changes to the log, for a store that also writes it elsewhere.

use super::{EventLog, MemoryEvents};
use crate::{EventLimits, SessionId, StreamEvent, Timestamp};

/// An event and its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The session that it was sent in.
    pub session: SessionId,
    /// The event.
    pub event: StreamEvent,
    /// When it was appended.
    pub appended_at: Timestamp,
}

impl MemoryEvents {
    /// Creates an empty store that records which events change, for [`take_changes`](Self::take_changes).
    pub fn with_journal(limits: EventLimits) -> Self {
        let store = Self::new(limits);
        store.log().journal = Some(Vec::new());
        store
    }

    /// Returns the events that were added or dropped since the last call, by session and serial.
    pub fn take_changes(&self) -> Vec<(SessionId, u64)> {
        self.log().journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns an event, if it is stored.
    pub fn snapshot(&self, session: SessionId, serial: u64) -> Option<LoggedEvent> {
        let log = self.log();
        let events = &log.sessions.get(&session)?.events;
        let found = events.binary_search_by_key(&serial, |entry| entry.serial).ok()?;
        let entry = events.get(found)?;
        Some(LoggedEvent { session, event: entry.event.clone(), appended_at: entry.appended_at })
    }

    /// Returns the serials of all events, with their sessions.
    pub fn serials(&self) -> Vec<(u64, SessionId)> {
        let log = self.log();
        let of_session = |(session, own): (&SessionId, &super::SessionLog)| {
            own.events.iter().map(|entry| (entry.serial, *session)).collect::<Vec<_>>()
        };
        log.sessions.iter().flat_map(of_session).collect()
    }

    /// Adds an event of an earlier process; serials come in ascending order. Earlier events are dropped as the limits
    /// require.
    pub fn restore(&self, serial: u64, logged: LoggedEvent) {
        let LoggedEvent { session, event, appended_at } = logged;
        let mut log = self.log();
        log.next_serial = serial;
        if self.make_room(&mut log, session, event.data.len()) {
            log.push(session, event, appended_at);
        } else {
            log.note_change(session, serial);
            log.forget_stream(session, event.id.stream);
        }
        log.next_serial = serial + 1;
    }
}

impl EventLog {
    pub(super) fn note_change(&mut self, session: SessionId, serial: u64) {
        if let Some(journal) = &mut self.journal {
            journal.push((session, serial));
        }
    }
}
