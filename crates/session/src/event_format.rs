//! The stored form of events: bytes with a version, for every store that keeps events outside of this process.

use bytes::Bytes;

use crate::{EventId, LoggedEvent, RecordError, SessionId, StreamEvent, StreamId, Timestamp};

/// The newest version that this build reads, and the one that it writes.
const VERSION: u8 = 1;

impl LoggedEvent {
    /// Writes the event as bytes with a version.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { session, event, appended_at } = self;
        let mut plain = Vec::with_capacity(64 + event.data.len());
        plain.push(VERSION);
        plain.extend(session.to_string().into_bytes());
        for number in [appended_at.0, event.id.stream.0, event.id.seq] {
            plain.extend(number.to_le_bytes());
        }
        plain.extend(&event.data);
        plain
    }

    /// Reads an event of this version or an older one.
    ///
    /// # Errors
    /// A newer build wrote it, or it is not an event.
    pub fn from_bytes(plain: &[u8]) -> Result<Self, RecordError> {
        match plain.first() {
            Some(&VERSION) => {}
            Some(newer) if *newer > VERSION => return Err(RecordError::Newer(u64::from(*newer))),
            _ => return Err(RecordError::Malformed),
        }
        let read = || {
            let (session, rest) = plain.get(1..)?.split_first_chunk::<{ SessionId::TEXT_LEN }>()?;
            let (appended_at, rest) = rest.split_first_chunk::<8>()?;
            let (stream, rest) = rest.split_first_chunk::<8>()?;
            let (seq, data) = rest.split_first_chunk::<8>()?;
            let id = EventId { stream: StreamId(u64::from_le_bytes(*stream)), seq: u64::from_le_bytes(*seq) };
            Some(Self {
                session: SessionId::parse(session)?,
                event: StreamEvent { id, data: Bytes::copy_from_slice(data) },
                appended_at: Timestamp(u64::from_le_bytes(*appended_at)),
            })
        };
        read().ok_or(RecordError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_read_back_and_a_newer_one_is_refused() {
        let logged = LoggedEvent {
            session: SessionId::random(),
            event: StreamEvent {
                id: EventId { stream: StreamId(u64::MAX), seq: 7 },
                data: Bytes::from_static(b"{}"),
            },
            appended_at: Timestamp(9),
        };
        let mut plain = logged.to_bytes();
        assert_eq!(LoggedEvent::from_bytes(&plain), Ok(logged));
        for short in 0..57 {
            assert_eq!(LoggedEvent::from_bytes(&plain[..short]), Err(RecordError::Malformed), "{short}");
        }
        plain[0] = 2;
        assert_eq!(LoggedEvent::from_bytes(&plain), Err(RecordError::Newer(2)));
    }
}
