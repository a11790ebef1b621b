//! The rows of stores outside of this process: sealed so that each opens only under its own key, with digests for ids.

use sha2::{Digest as _, Sha256};

use crate::{OpenedRecord, RecordSealer, SessionId, StateHandle};

/// What a row of a store holds. Each kind of row opens only as that kind.
#[derive(Clone, Copy, Debug)]
pub enum RowKind {
    /// What describes the store itself.
    Header,
    /// A session.
    Session,
    /// An event of a session.
    Event,
    /// A handler's state.
    State,
    /// A message between processes.
    Message,
}

impl RowKind {
    const fn label(self) -> &'static str {
        match self {
            Self::Header => "trunkline store header",
            Self::Session => "trunkline store session",
            Self::Event => "trunkline store event",
            Self::State => "trunkline store state",
            Self::Message => "trunkline store message",
        }
    }

    fn binding(self, key: &[u8]) -> Vec<u8> {
        [self.label().as_bytes(), &[0], key].concat()
    }

    /// Encrypts the content of a row; `None` only if the operating system gives no random bytes.
    pub fn seal(self, sealer: &RecordSealer, key: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        sealer.seal(&self.binding(key), plain)
    }

    /// Decrypts the content of a row; `None` if it is not sealed with one of the keys, or belongs to another row.
    pub fn open(self, sealer: &RecordSealer, key: &[u8], sealed: &[u8]) -> Option<OpenedRecord> {
        sealer.open(&self.binding(key), sealed)
    }

    fn digest(self, id: &str) -> [u8; 16] {
        let digest = Sha256::digest(self.binding(id.as_bytes()));
        digest.first_chunk().copied().unwrap_or_default()
    }
}

impl SessionId {
    /// Returns the key of the session's row: a digest, since an id is half of what is needed to use a session.
    pub fn row_key(self) -> [u8; 16] {
        RowKind::Session.digest(&self.to_string())
    }
}

impl StateHandle {
    /// Returns the key of the state's row: a digest, since a handle is half of what is needed to use a state.
    pub fn row_key(self) -> [u8; 16] {
        RowKind::State.digest(&self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StateKeys;

    #[test]
    fn row_opens_only_under_its_own_key_and_kind() {
        let sealer = RecordSealer::new(&StateKeys::random().unwrap());
        let sealed = RowKind::Session.seal(&sealer, b"key", b"content").unwrap();
        let opened = RowKind::Session.open(&sealer, b"key", &sealed).unwrap();
        assert_eq!((opened.plain.as_slice(), opened.by_first_key), (&b"content"[..], true));
        assert!(RowKind::Session.open(&sealer, b"kez", &sealed).is_none());
        assert!(RowKind::State.open(&sealer, b"key", &sealed).is_none());
        assert!(!sealed.windows(7).any(|window| window == b"content"));
    }

    #[test]
    fn row_keys_contain_no_part_of_the_id() {
        let id = SessionId::parse(b"00112233445566778899aabbccddeeff").unwrap();
        let handle = StateHandle::parse("st_00112233445566778899aabbccddeeff").unwrap();
        assert_ne!(id.row_key(), handle.row_key());
        for key in [id.row_key(), handle.row_key()] {
            assert!(
                !key.windows(2)
                    .any(|pair| id.to_string().contains(&format!("{:02x}{:02x}", pair[0], pair[1])))
            );
        }
    }
}
