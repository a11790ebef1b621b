//! Every number that bounds a store, with what it costs.

use std::time::Duration;

/// The bounds of a session store.
///
/// A session costs the store under 1 KiB beside its JSON, so the defaults take 10 MiB with small capabilities and 330 MiB
/// if every client sends as much as it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// How many sessions there may be. Default 10,000; each costs under 1 KiB and its JSON.
    pub total: usize,
    /// How many sessions one [`Named`](crate::Principal::Named) principal may have. Default 100.
    ///
    /// It keeps one party from taking the room of all others. [`Anonymous`](crate::Principal::Anonymous) and
    /// [`Process`](crate::Principal::Process) are not one party each, so for them only `total` applies: a server without
    /// authentication could otherwise never hold more than this many sessions.
    pub per_principal: usize,
    /// How much JSON one record may hold, in bytes. Default 32 KiB.
    pub record_bytes: usize,
    /// How much JSON all records together may hold in memory, in bytes. Default 64 MiB, which is 6 KiB for each of `total`;
    /// beyond it no further session begins.
    pub total_bytes: usize,
    /// How long a session lives without being used. Default 30 minutes.
    ///
    /// An abandoned session holds its room this long. Clients that sit quietly in an editor are common, so a short time
    /// shows up as needless handshakes.
    pub idle: Duration,
    /// How long a session lives however much it is used. Default 24 hours.
    ///
    /// It bounds how long a leaked id is worth anything; at its end the client has to initialize again.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            per_principal: 100,
            record_bytes: 32 << 10,
            total_bytes: 64 << 20,
            idle: Duration::from_secs(30 * 60),
            absolute: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The bounds of an event store.
///
/// When a bound is passed the oldest events go; a client that asks for a position that went is told so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// How many events one session may keep. Default 256; bookkeeping costs under 100 bytes for each.
    pub events: usize,
    /// How many bytes of event data one session may keep. Default 1 MiB.
    ///
    /// An event larger than this cannot be kept, and neither is anything sent before it on its stream: a replay that leaves
    /// it out would be wrong.
    pub bytes: usize,
    /// How long an event is kept. Default 5 minutes, which is how long a client may stay away before its stream is lost.
    pub age: Duration,
    /// How many bytes all sessions may keep together, bookkeeping included. Default 64 MiB.
    ///
    /// This is the memory that the store may take. When it is used up, the sessions with the oldest events lose them first.
    pub total_bytes: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self { events: 256, bytes: 1 << 20, age: Duration::from_secs(5 * 60), total_bytes: 64 << 20 }
    }
}

/// The bounds of state bags, of each kind for itself.
///
/// When a bound on their number is passed the bag that was not used for longest goes, so that a client which forgets its
/// handles keeps nobody out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// How many bags there may be. Default 10,000; beyond it the least recently used goes. A bag costs under 300 bytes
    /// beside what is in it.
    pub total: usize,
    /// How many bags one [`Named`](crate::Principal::Named) principal may have. Default 100; beyond it that principal's least
    /// recently used goes. For the others, who are not one party each, only `total` applies.
    pub per_principal: usize,
    /// How much JSON one stored bag may hold, in bytes. Default 64 KiB; the worst case costs `total` times as much.
    pub bytes: usize,
    /// How long a bag lives without being used. Default 30 minutes; a legacy session's own bag lives as long as the session.
    pub idle: Duration,
    /// How long a bag lives however much it is used. Default 24 hours.
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
