use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::error::TokenFileError;
use super::replace;

pub(super) const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// The largest key file that is read.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;

/// What protects a token store from others who can read its file.
///
/// A key protects against copies of the file, such as in a backup; it has to be kept elsewhere. Against a program that runs
/// as the same user nothing of this protects.
#[derive(Clone)]
pub struct StoreKey {
    /// The first key seals, all keys open; none for a plain file.
    keys: Vec<Zeroizing<[u8; KEY_BYTES]>>,
    protection: StoreProtection,
}

/// How a token store is protected, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreProtection {
    /// By the mode of the file alone.
    Plain,
    /// The file is sealed; the key is in this file.
    KeyFile(PathBuf),
    /// The file is sealed; the key is in the keychain of the system.
    Keychain,
}

impl fmt::Display for StoreProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain file, mode 0600"),
            Self::KeyFile(path) => write!(f, "sealed, key in {}", path.display()),
            Self::Keychain => f.write_str("sealed, key in the keychain"),
        }
    }
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreKeyError {
    /// The key file cannot be read.
    #[error("the key file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// Other users can read the key file.
    #[error("the key file {0} is accessible to other users; run `chmod 600` on it")]
    Exposed(PathBuf),
    /// The key file is too short to hold a secret.
    #[error("the key file {0} has fewer than 32 bytes; make one with `head -c 32 /dev/urandom > FILE`")]
    TooShort(PathBuf),
    /// No key file was given.
    #[error("no key file was given")]
    Empty,
    /// The keychain of the system cannot be used. Its own error is not kept, since one kind contains the secret.
    #[error("the keychain cannot be used: {0}")]
    Keychain(String),
}

impl StoreKey {
    /// Protects the store by the mode of its file alone.
    pub fn plain() -> Self {
        Self { keys: Vec::new(), protection: StoreProtection::Plain }
    }

    /// Reads keys from files, each with at least 32 secret bytes: the first seals, all of them open.
    ///
    /// # Errors
    /// A file is unreadable, accessible to other users or too short, or there is none.
    pub fn from_files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, StoreKeyError> {
        let mut first = None;
        let mut keys = Vec::new();
        for path in paths {
            keys.push(read_key(path.as_ref())?);
            first.get_or_insert_with(|| path.as_ref().to_owned());
        }
        let first = first.ok_or(StoreKeyError::Empty)?;
        Ok(Self { keys, protection: StoreProtection::KeyFile(first) })
    }

    /// Reads the key of a name from the keychain of the system: Keychain Services, the Credential Manager or the Secret
    /// Service. If it has none, one is made there.
    ///
    /// # Errors
    /// The keychain is locked or not there, or has something else by this name.
    #[cfg(feature = "keychain")]
    pub fn from_keychain(name: &str) -> Result<Self, StoreKeyError> {
        let secret = super::keychain::read_or_create(name, KEY_BYTES)?;
        Ok(Self { keys: vec![derive_key(&secret)], protection: StoreProtection::Keychain })
    }

    /// Returns how a store with this key is protected.
    pub fn protection(&self) -> &StoreProtection {
        &self.protection
    }

    pub(super) fn is_plain(&self) -> bool {
        self.keys.is_empty()
    }

    /// Refuses a key file in the folder of the store.
    pub(super) fn check_apart_from(&self, folder: &Path) -> Result<(), TokenFileError> {
        let StoreProtection::KeyFile(path) = &self.protection else { return Ok(()) };
        let key = std::fs::canonicalize(path).map_err(TokenFileError::at(path))?;
        let folder = std::fs::canonicalize(folder).map_err(TokenFileError::at(folder))?;
        match key.parent() == Some(&*folder) {
            true => Err(TokenFileError::KeyBesideStore(path.clone())),
            false => Ok(()),
        }
    }

    /// Encrypts with the first key; `None` if there is none, or the system has no random numbers.
    pub(super) fn seal(&self, plain: &[u8], header: &[u8]) -> Option<([u8; NONCE_BYTES], Vec<u8>)> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let cipher = XChaCha20Poly1305::new((&**self.keys.first()?).into());
        let sealed = cipher.encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: header }).ok()?;
        Some((nonce, sealed))
    }

    /// Decrypts with the key that fits.
    pub(super) fn open(
        &self,
        nonce: [u8; NONCE_BYTES],
        sealed: &[u8],
        header: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = XNonce::from(nonce);
        let open = |key: &Zeroizing<[u8; KEY_BYTES]>| {
            let cipher = XChaCha20Poly1305::new((&**key).into());
            cipher.decrypt(&nonce, Payload { msg: sealed, aad: header }).ok()
        };
        self.keys.iter().find_map(open).map(Zeroizing::new)
    }
}

fn read_key(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, StoreKeyError> {
    let unreadable = |source| StoreKeyError::Unreadable { path: path.to_owned(), source };
    let secret = replace::read_private(path, MAX_KEY_FILE_BYTES).map_err(unreadable)?;
    let secret = secret.ok_or_else(|| StoreKeyError::Exposed(path.to_owned()))?;
    if secret.len() < KEY_BYTES {
        return Err(StoreKeyError::TooShort(path.to_owned()));
    }
    Ok(derive_key(&secret))
}

fn derive_key(secret: &[u8]) -> Zeroizing<[u8; KEY_BYTES]> {
    let digest = Sha256::new_with_prefix(b"trunkline token store key").chain_update(secret).finalize();
    Zeroizing::new(digest.into())
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreKey").field(&self.protection).finish()
    }
}
