//! The entries of a session's list of events.

use trunkline_session::{EventId, Timestamp};

/// The bytes before the sealed event in an entry: its serial, its time, its size, its stream and its position.
const ENTRY_HEADER: usize = 36;

/// An entry of a session's list.
pub(crate) struct StoredEvent<'a> {
    pub(crate) appended_at: Timestamp,
    pub(crate) position: [u8; 16],
    pub(crate) sealed: &'a [u8],
}

impl<'a> StoredEvent<'a> {
    pub(crate) fn parse(entry: &'a [u8]) -> Option<Self> {
        let (header, sealed) = entry.split_first_chunk::<ENTRY_HEADER>()?;
        let appended_at = Timestamp(u64::from_le_bytes(*header.get(8..)?.first_chunk()?));
        Some(Self { appended_at, position: *header.last_chunk()?, sealed })
    }

    pub(crate) fn stream(&self) -> [u8; 8] {
        self.position.first_chunk().copied().unwrap_or_default()
    }
}

/// Returns a stream and a position in it as Redis compares them.
pub(crate) fn position(id: EventId) -> [u8; 16] {
    let mut position = [0; 16];
    let (stream, seq) = position.split_at_mut(8);
    stream.copy_from_slice(&id.stream.0.to_le_bytes());
    seq.copy_from_slice(&id.seq.to_le_bytes());
    position
}
