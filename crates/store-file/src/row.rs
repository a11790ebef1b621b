//! The rows of the file: what is in one besides the record itself.

use trunkline_session::{RecordError, SessionRecord, StateSnapshot, Timestamp};

/// The key of a session or a state in the file: a digest of its id.
pub(crate) type RowKey = [u8; 16];

pub(crate) fn write_session(record: &SessionRecord, used_at: Timestamp) -> Vec<u8> {
    let mut plain = used_at.0.to_le_bytes().to_vec();
    plain.extend(record.to_json().into_bytes());
    plain
}

pub(crate) fn read_session(plain: &[u8]) -> Result<(SessionRecord, Timestamp), RecordError> {
    let (used_at, json) = plain.split_first_chunk::<8>().ok_or(RecordError::Malformed)?;
    let json = std::str::from_utf8(json).map_err(|_| RecordError::Malformed)?;
    Ok((SessionRecord::from_json(json)?, Timestamp(u64::from_le_bytes(*used_at))))
}

pub(crate) fn read_state(plain: &[u8]) -> Result<StateSnapshot, RecordError> {
    StateSnapshot::from_json(std::str::from_utf8(plain).map_err(|_| RecordError::Malformed)?)
}
