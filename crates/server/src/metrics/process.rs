//! What is counted for the whole process, since whoever reads metrics sees a process and not its parts.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::Refusal;

static REFUSALS: [AtomicU64; Refusal::TABLE.len()] = [const { AtomicU64::new(0) }; Refusal::TABLE.len()];
static PANICS: AtomicU64 = AtomicU64::new(0);
static SLOW_READERS: AtomicU64 = AtomicU64::new(0);
static SESSIONS: AtomicU64 = AtomicU64::new(0);
static STREAMS: AtomicU64 = AtomicU64::new(0);

/// Counts a refusal that a peer is told.
pub(crate) fn refused(refusal: &Refusal) {
    let row = Refusal::TABLE.iter().position(|row| row.is(refusal));
    if let Some(counter) = row.and_then(|row| REFUSALS.get(row)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns every row of the table of refusals with its count.
pub(super) fn refusals() -> impl Iterator<Item = (&'static str, u64)> {
    Refusal::TABLE.iter().map(Refusal::name).zip(REFUSALS.iter().map(|count| count.load(Ordering::Relaxed)))
}

/// Counts a handler that panicked.
pub(crate) fn panicked() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Counts a connection that was cut because its peer did not read.
pub(crate) fn cut_slow_reader() {
    SLOW_READERS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn slow_readers() -> u64 {
    SLOW_READERS.load(Ordering::Relaxed)
}

pub(super) fn sessions() -> u64 {
    SESSIONS.load(Ordering::Relaxed)
}

pub(super) fn streams() -> u64 {
    STREAMS.load(Ordering::Relaxed)
}

/// Something that is counted for as long as it is there.
#[derive(Debug)]
pub(crate) struct Present(&'static AtomicU64);

impl Present {
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

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
