//! The rows of the file: what is in one, sealed so that it opens only under its own key.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use trunkline_session::{
    EventId, LoggedEvent, RecordError, RecordSealer, SessionId, SessionRecord, StateHandle, StateSnapshot,
    StreamEvent, StreamId, Timestamp,
};

/// The key of a session or a state in the file.
///
/// An id is half of what is needed to use a session, so the file has a digest in place of it.
pub(crate) type RowKey = [u8; 16];

/// What a row belongs to. Each kind of row opens only as that kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowKind {
    Header,
    Session,
    Event,
    State,
}

impl RowKind {
    const fn label(self) -> &'static str {
        match self {
            Self::Header => "trunkline store header",
            Self::Session => "trunkline store session",
            Self::Event => "trunkline store event",
            Self::State => "trunkline store state",
        }
    }

    fn binding(self, key: &[u8]) -> Vec<u8> {
        [self.label().as_bytes(), &[0], key].concat()
    }

    /// Encrypts the content of a row; `None` only if the operating system gives no random bytes.
    pub(crate) fn seal(self, sealer: &RecordSealer, key: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        sealer.seal(&self.binding(key), plain)
    }

    /// Decrypts the content of a row.
    pub(crate) fn open(self, sealer: &RecordSealer, key: &[u8], sealed: &[u8]) -> Option<OpenedRow> {
        let opened = sealer.open(&self.binding(key), sealed)?;
        Some(OpenedRow { plain: opened.plain, is_current: opened.by_first_key })
    }
}

/// The content of a row.
pub(crate) struct OpenedRow {
    pub(crate) plain: Vec<u8>,
    /// Whether it is sealed with the first key, as every row is that is written now.
    pub(crate) is_current: bool,
}

pub(crate) fn session_key(id: SessionId) -> RowKey {
    digest(RowKind::Session, &id.to_string())
}

pub(crate) fn state_key(handle: StateHandle) -> RowKey {
    digest(RowKind::State, &handle.to_string())
}

fn digest(kind: RowKind, id: &str) -> RowKey {
    let digest = Sha256::digest(kind.binding(id.as_bytes()));
    digest.first_chunk().copied().unwrap_or_default()
}

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

/// The version of the content of an event's row.
const EVENT_VERSION: u8 = 1;

pub(crate) fn write_event(logged: &LoggedEvent) -> Vec<u8> {
    let LoggedEvent { session, event, appended_at } = logged;
    let mut plain = Vec::with_capacity(64 + event.data.len());
    plain.push(EVENT_VERSION);
    plain.extend(session.to_string().into_bytes());
    for number in [appended_at.0, event.id.stream.0, event.id.seq] {
        plain.extend(number.to_le_bytes());
    }
    plain.extend(&event.data);
    plain
}

pub(crate) fn read_event(plain: &[u8]) -> Result<LoggedEvent, RecordError> {
    match plain.first() {
        Some(&EVENT_VERSION) => {}
        Some(newer) if *newer > EVENT_VERSION => return Err(RecordError::Newer(u64::from(*newer))),
        _ => return Err(RecordError::Malformed),
    }
    let read = || {
        let (session, rest) = plain.get(1..)?.split_first_chunk::<{ SessionId::TEXT_LEN }>()?;
        let (appended_at, rest) = rest.split_first_chunk::<8>()?;
        let (stream, rest) = rest.split_first_chunk::<8>()?;
        let (seq, data) = rest.split_first_chunk::<8>()?;
        let id = EventId { stream: StreamId(u64::from_le_bytes(*stream)), seq: u64::from_le_bytes(*seq) };
        Some(LoggedEvent {
            session: SessionId::parse(session)?,
            event: StreamEvent { id, data: Bytes::copy_from_slice(data) },
            appended_at: Timestamp(u64::from_le_bytes(*appended_at)),
        })
    };
    read().ok_or(RecordError::Malformed)
}

#[cfg(test)]
mod tests {
    use trunkline_session::StateKeys;

    use super::*;

    #[test]
    fn event_row_is_read_back_and_a_newer_one_is_refused() {
        let logged = LoggedEvent {
            session: SessionId::random(),
            event: StreamEvent {
                id: EventId { stream: StreamId(u64::MAX), seq: 7 },
                data: Bytes::from_static(b"{}"),
            },
            appended_at: Timestamp(9),
        };
        let mut plain = write_event(&logged);
        assert_eq!(read_event(&plain), Ok(logged));
        for short in 0..57 {
            assert_eq!(read_event(&plain[..short]), Err(RecordError::Malformed), "{short}");
        }
        plain[0] = 2;
        assert_eq!(read_event(&plain), Err(RecordError::Newer(2)));
    }

    #[test]
    fn row_opens_only_under_its_own_key_and_kind() {
        let sealer = RecordSealer::new(&StateKeys::random().unwrap());
        let sealed = RowKind::Session.seal(&sealer, b"key", b"content").unwrap();
        let opened = RowKind::Session.open(&sealer, b"key", &sealed).unwrap();
        assert_eq!((opened.plain.as_slice(), opened.is_current), (&b"content"[..], true));
        assert!(RowKind::Session.open(&sealer, b"kez", &sealed).is_none());
        assert!(RowKind::State.open(&sealer, b"key", &sealed).is_none());
        assert!(!sealed.windows(7).any(|window| window == b"content"));
    }
}
