//! Counters of the whole process, since a metrics scraper sees one process and not its parts.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::Refusal;

static REFUSALS: [AtomicU64; Refusal::TABLE.len()] = [const { AtomicU64::new(0) }; Refusal::TABLE.len()];
static PANICS: AtomicU64 = AtomicU64::new(0);
static UNUSED_CHANNELS: AtomicU64 = AtomicU64::new(0);
static SLOW_READERS: [AtomicU64; EvictionReason::ALL.len()] =
    [const { AtomicU64::new(0) }; EvictionReason::ALL.len()];
static DROPPED_NOTIFICATIONS: [AtomicU64; NotificationKind::ALL.len()] =
    [const { AtomicU64::new(0) }; NotificationKind::ALL.len()];
static EVICTED_SESSIONS: [AtomicU64; SessionEviction::ALL.len()] =
    [const { AtomicU64::new(0) }; SessionEviction::ALL.len()];
static REFUSED_CONNECTIONS: [AtomicU64; ConnectionRefusal::ALL.len()] =
    [const { AtomicU64::new(0) }; ConnectionRefusal::ALL.len()];
static SESSIONS: AtomicU64 = AtomicU64::new(0);
static STREAMS: AtomicU64 = AtomicU64::new(0);

/// Counts a refusal that is sent to a peer.
pub(crate) fn count_refusal(refusal: &Refusal) {
    let row = Refusal::TABLE.iter().position(|row| row.is_same_kind(refusal));
    if let Some(counter) = row.and_then(|row| REFUSALS.get(row)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every row of the table of refusals with its count.
pub(super) fn refusals() -> impl Iterator<Item = (&'static str, u64)> {
    Refusal::TABLE.iter().map(Refusal::name).zip(REFUSALS.iter().map(|count| count.load(Ordering::Relaxed)))
}

/// Counts a handler that panicked.
pub(crate) fn count_panic() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Counts a channel that was closed because its peer never sent a first request.
pub(crate) fn count_unused_channel() {
    UNUSED_CHANNELS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn unused_channels() -> u64 {
    UNUSED_CHANNELS.load(Ordering::Relaxed)
}

/// Why a connection of a slow reader was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictionReason {
    /// The peer read nothing within [`ServerLimits::write_timeout`](crate::ServerLimits::write_timeout).
    Stalled,
    /// The unread data of all peers exceeded [`ServerLimits::unread_bytes`](crate::ServerLimits::unread_bytes).
    Budget,
}

impl EvictionReason {
    const ALL: [Self; 2] = [Self::Stalled, Self::Budget];

    const fn label(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Budget => "budget",
        }
    }
}

/// The kind of a call's notification that was dropped, because its client did not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotificationKind {
    Log,
    Progress,
}

impl NotificationKind {
    const ALL: [Self; 2] = [Self::Log, Self::Progress];

    const fn label(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Progress => "progress",
        }
    }
}

/// Counts a dropped notification of a call.
pub(crate) fn count_dropped_notification(kind: NotificationKind) {
    if let Some(counter) = DROPPED_NOTIFICATIONS.get(kind as usize) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every kind of notification with the number of dropped ones.
pub(super) fn dropped_notifications() -> impl Iterator<Item = (&'static str, u64)> {
    let counts = DROPPED_NOTIFICATIONS.iter().map(|count| count.load(Ordering::Relaxed));
    NotificationKind::ALL.into_iter().map(NotificationKind::label).zip(counts)
}

/// The limit for which an idle session was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEviction {
    /// That of all sessions.
    Total,
    /// That of one principal.
    Principal,
}

impl SessionEviction {
    const ALL: [Self; 2] = [Self::Total, Self::Principal];

    const fn label(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Principal => "principal",
        }
    }
}

/// Counts an idle session that was ended in favour of a new one.
pub(crate) fn count_evicted_session(limit: SessionEviction) {
    if let Some(counter) = EVICTED_SESSIONS.get(limit as usize) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every limit with the number of sessions that were evicted for it.
pub(super) fn evicted_sessions() -> impl Iterator<Item = (&'static str, u64)> {
    let counts = EVICTED_SESSIONS.iter().map(|count| count.load(Ordering::Relaxed));
    SessionEviction::ALL.into_iter().map(SessionEviction::label).zip(counts)
}

/// Why a connection was closed before its request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// All connections were in use, and the request was no health check.
    Total,
    /// Its address had as many connections as it may have.
    Address,
    /// It was a reserved connection, and was closed for another one.
    Evicted,
}

impl ConnectionRefusal {
    const ALL: [Self; 3] = [Self::Total, Self::Address, Self::Evicted];

    const fn label(self) -> &'static str {
        match self {
            Self::Total => "full",
            Self::Address => "address",
            Self::Evicted => "evicted",
        }
    }
}

/// Counts a connection that was closed before its request was served.
pub(crate) fn count_refused_connection(reason: ConnectionRefusal) {
    if let Some(counter) = REFUSED_CONNECTIONS.get(reason as usize) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every reason for refusing connections, with its count.
pub(super) fn refused_connections() -> impl Iterator<Item = (&'static str, u64)> {
    let counts = REFUSED_CONNECTIONS.iter().map(|count| count.load(Ordering::Relaxed));
    ConnectionRefusal::ALL.into_iter().map(ConnectionRefusal::label).zip(counts)
}

/// Counts a connection that was closed because its peer did not read.
pub(crate) fn count_slow_reader(reason: EvictionReason) {
    if let Some(counter) = SLOW_READERS.get(reason as usize) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every reason for evicting slow readers, with its count.
pub(super) fn slow_readers() -> impl Iterator<Item = (&'static str, u64)> {
    let counts = SLOW_READERS.iter().map(|count| count.load(Ordering::Relaxed));
    EvictionReason::ALL.into_iter().map(EvictionReason::label).zip(counts)
}

pub(super) fn sessions() -> u64 {
    SESSIONS.load(Ordering::Relaxed)
}

pub(super) fn streams() -> u64 {
    STREAMS.load(Ordering::Relaxed)
}

/// A gauge: counts an item for as long as it exists.
#[derive(Debug)]
pub(crate) struct GaugeGuard(&'static AtomicU64);

impl GaugeGuard {
    pub(crate) fn session() -> Self {
        Self::count(&SESSIONS)
    }

    pub(crate) fn stream() -> Self {
        Self::count(&STREAMS)
    }

    fn count(counter: &'static AtomicU64) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
