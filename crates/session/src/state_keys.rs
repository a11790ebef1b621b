//! The keys that seal what leaves this process: state that travels through clients, and records in stores.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use sha2::{Digest as _, Sha256};

use crate::{SecretExposure, secret_file_exposure};

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// The keys that encrypt state and stored records: the first key encrypts, all keys can decrypt.
///
/// Replicas that share keys can each resume a call that another began.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKeys(Vec<[u8; KEY_BYTES]>);

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateKeysError {
    /// A key file cannot be read.
    #[error("state key file {path} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// Other users can get at the secret in the file.
    #[error("state key file {} {exposure}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// How they can.
        exposure: SecretExposure,
    },
    /// A key file is too short to hold a secret.
    #[error("state key file {0} holds fewer than 32 bytes; make one with `head -c 32 /dev/urandom > FILE`")]
    TooShort(PathBuf),
    /// No key was given.
    #[error("no state key is given")]
    Empty,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    NoRandomness(#[source] getrandom::Error),
}

impl StateKeys {
    /// Makes one random key, which ends with the process.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn random() -> Result<Self, StateKeysError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(StateKeysError::NoRandomness)?;
        Ok(Self(vec![key]))
    }

    /// Reads keys from files, each with at least 32 secret bytes of any kind.
    ///
    /// # Errors
    /// A file is unreadable, readable by others or too short, or there is none.
    pub fn from_files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, StateKeysError> {
        let read = |path: P| {
            let path = path.as_ref();
            let unreadable = |cause| StateKeysError::Unreadable { path: path.to_owned(), cause };
            if let Some(exposure) = secret_file_exposure(path).map_err(unreadable)? {
                return Err(StateKeysError::Exposed { path: path.to_owned(), exposure });
            }
            let secret = std::fs::read(path).map_err(unreadable)?;
            if secret.len() < KEY_BYTES {
                return Err(StateKeysError::TooShort(path.to_owned()));
            }
            Ok(Sha256::new_with_prefix(b"trunkline state key").chain_update(&secret).finalize().into())
        };
        let keys = paths.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(StateKeysError::Empty) } else { Ok(Self(keys)) }
    }

    /// Returns these keys followed by older ones, which can still decrypt.
    #[must_use]
    pub fn followed_by(mut self, older: &Self) -> Self {
        self.0.extend(&older.0);
        self
    }
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKeys({} keys)", self.0.len())
    }
}

/// Encrypts records into bytes that only the holder of the keys can make and decrypt.
pub struct RecordSealer {
    current: ArcSwap<RecordCiphers>,
}

/// The keys, each ready to be used.
struct RecordCiphers {
    keys: StateKeys,
    ciphers: Vec<XChaCha20Poly1305>,
}

impl RecordCiphers {
    fn new(keys: &StateKeys) -> Self {
        let ciphers = keys.0.iter().map(|key| XChaCha20Poly1305::new(key.into())).collect();
        Self { keys: keys.clone(), ciphers }
    }
}

/// A decrypted record.
pub struct OpenedRecord {
    /// The content.
    pub plain: Vec<u8>,
    /// Whether the first key encrypted it; if not, its key may be on its way out.
    pub by_first_key: bool,
}

/// Shows the length of the content, not the content.
impl fmt::Debug for OpenedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedRecord({} bytes)", self.plain.len())
    }
}

impl RecordSealer {
    /// Makes a sealer with these keys.
    pub fn new(keys: &StateKeys) -> Self {
        Self { current: ArcSwap::from_pointee(RecordCiphers::new(keys)) }
    }

    /// Replaces the keys; returns whether they differ from those before.
    pub fn replace(&self, keys: &StateKeys) -> bool {
        let has_changed = self.current.load().keys != *keys;
        if has_changed {
            self.current.store(Arc::new(RecordCiphers::new(keys)));
        }
        has_changed
    }

    /// Encrypts a record that opens only with the same `binding`; `None` only if the operating system gives no random
    /// bytes.
    pub fn seal(&self, binding: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: plain, aad: binding };
        let sealed = self.current.load().ciphers.first()?.encrypt(&XNonce::from(nonce), payload).ok()?;
        let mut whole = nonce.to_vec();
        whole.extend(sealed);
        Some(whole)
    }

    /// Decrypts a record; `None` if it was not sealed with one of the keys and this binding.
    pub fn open(&self, binding: &[u8], sealed: &[u8]) -> Option<OpenedRecord> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let nonce = XNonce::from(*nonce);
        let current = self.current.load();
        let mut opened = current.ciphers.iter().enumerate().filter_map(|(number, key)| {
            let plain = key.decrypt(&nonce, Payload { msg: sealed, aad: binding }).ok()?;
            Some(OpenedRecord { plain, by_first_key: number == 0 })
        });
        opened.next()
    }
}

impl fmt::Debug for RecordSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordSealer({} keys)", self.current.load().ciphers.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_key_seals_records_and_all_keys_open_them() {
        let (old, new) = (StateKeys::random().unwrap(), StateKeys::random().unwrap());
        let sealer = RecordSealer::new(&old);
        let sealed = sealer.seal(b"row", b"content").unwrap();
        assert!(sealer.open(b"other", &sealed).is_none(), "bound to its row");
        assert!(sealer.replace(&new.clone().followed_by(&old)));
        let opened = sealer.open(b"row", &sealed).unwrap();
        assert_eq!((opened.plain.as_slice(), opened.by_first_key), (&b"content"[..], false));
        let sealed = sealer.seal(b"row", b"content").unwrap();
        assert!(sealer.open(b"row", &sealed).unwrap().by_first_key);
        assert!(sealer.replace(&new) && !sealer.replace(&new));
        assert!(sealer.open(b"row", &sealed).is_some());
        assert!(!format!("{opened:?}{sealer:?}").contains("content"));
    }
}
