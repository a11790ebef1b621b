//! The limits of the stores and of the bus, with their costs.

use std::time::Duration;

/// The limits of a session store.
///
/// A session costs the store under 1 KiB beside its JSON, so the defaults take 10 MiB with small capabilities and 330 MiB
/// if every client sends as much as it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// How many sessions there may be. Default 10,000; each costs under 1 KiB and its JSON. A server at the limit ends idle
    /// sessions of the client that holds the most, in favour of others.
    pub total: usize,
    /// How many sessions one [`Named`](crate::Principal::Named) principal may have. Default 100.
    ///
    /// It prevents one client from using up `total`. [`Anonymous`](crate::Principal::Anonymous) and
    /// [`Process`](crate::Principal::Process) may stand for many clients, so for them only `total` applies: a server
    /// without authentication could otherwise never hold more than this many sessions.
    pub per_principal: usize,
    /// How much JSON one record may hold, in bytes. Default 32 KiB.
    pub record_bytes: usize,
    /// How many bytes the URIs of one session's subscriptions may have. Default 128 KiB, as much as a server lets one
    /// client watch.
    pub subscription_bytes: usize,
    /// How much JSON and how many URIs all records together may hold in memory, in bytes. Default 64 MiB, which is 6 KiB
    /// for each of `total`; beyond it no further session is created.
    pub total_bytes: usize,
    /// How long a session lives without being used. Default 30 minutes.
    ///
    /// An abandoned session uses memory for this long. Clients that idle in an editor are common, so a short timeout
    /// causes needless handshakes.
    pub idle: Duration,
    /// How long a session lives however much it is used. Default 24 hours.
    ///
    /// It bounds how long a leaked id can be used; after it the client has to initialize again.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            per_principal: 100,
            record_bytes: 32 << 10,
            subscription_bytes: 128 << 10,
            total_bytes: 64 << 20,
            idle: Duration::from_secs(30 * 60),
            absolute: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The limits of an event store.
///
/// Beyond a limit the oldest events are dropped; a replay from a dropped position returns
/// [`EventReplay::Gone`](crate::EventReplay::Gone).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// How many events of one session are stored. Default 256; bookkeeping costs under 100 bytes for each.
    pub events: usize,
    /// How many bytes of event data of one session are stored. Default 1 MiB.
    ///
    /// An event larger than this is not stored, and the earlier events of its stream are dropped: a replay that
    /// leaves it out would be wrong.
    pub bytes: usize,
    /// How long an event is stored. Default 5 minutes, which is how long a client may be disconnected before its
    /// stream is lost.
    pub age: Duration,
    /// How many bytes are stored for all sessions together, bookkeeping included. Default 64 MiB.
    ///
    /// This is the memory limit of the store. Beyond it the oldest events of all sessions are dropped first.
    pub total_bytes: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self { events: 256, bytes: 1 << 20, age: Duration::from_secs(5 * 60), total_bytes: 64 << 20 }
    }
}

/// The limits of a state store; each store has its own.
///
/// Beyond a limit on their number the least recently used state is evicted, so that a client that loses its handles
/// blocks no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// How many states are stored. Default 10,000; beyond it the least recently used is evicted. A state costs under
    /// 300 bytes beside its value.
    pub total: usize,
    /// How many states one [`Named`](crate::Principal::Named) principal may have. Default 100; beyond it that
    /// principal's least recently used is evicted. For the other principals, which may stand for many clients, only
    /// `total` applies.
    pub per_principal: usize,
    /// How much JSON one stored state may hold, in bytes. Default 64 KiB; the worst case costs `total` times as much.
    pub bytes: usize,
    /// How long a state lives without being used. Default 30 minutes; a legacy session's own state lives as long as
    /// the session.
    pub idle: Duration,
    /// How long a state lives however much it is used. Default 24 hours.
    pub absolute: Duration,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            per_principal: 100,
            bytes: 64 << 10,
            idle: Duration::from_secs(30 * 60),
            absolute: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The limits of a bus between processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusLimits {
    /// The largest message to one process, in bytes. Default 16 MiB: a request or a response that another process answers.
    pub message_bytes: usize,
    /// The largest message to all processes, in bytes. Default 256 KiB.
    pub published_bytes: usize,
    /// How many messages may wait for one process. Default 4,096; beyond it messages to it are refused, and of published ones
    /// it loses the oldest and checks what it has in memory.
    pub inbox_messages: usize,
    /// How many bytes the messages to one process may have that wait for it. Default 64 MiB.
    pub inbox_bytes: usize,
}

impl Default for BusLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            published_bytes: 256 << 10,
            inbox_messages: 4096,
            inbox_bytes: 64 << 20,
        }
    }
}
