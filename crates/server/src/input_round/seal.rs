use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use sha2::{Digest as _, Sha256};
use trunkline_protocol::Method;
use trunkline_session::{Principal, Timestamp};

use crate::secret_file::{self, SecretExposure};

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// The keys that encrypt the state that travels through clients: the first key encrypts, all keys can decrypt.
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
            if let Some(exposure) = secret_file::exposure(path).map_err(unreadable)? {
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
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKeys({} keys)", self.0.len())
    }
}

/// The binding of a state: it is valid only with the caller, method and arguments of its call.
#[derive(Clone, Debug)]
pub(crate) struct StateBinding {
    pub(crate) principal: Principal,
    pub(crate) method: Method,
    pub(crate) params_digest: [u8; 32],
}

impl StateBinding {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96);
        let (tag, name) = match &self.principal {
            Principal::Anonymous => (b'a', ""),
            Principal::Process => (b'p', ""),
            Principal::Named(name) => (b'n', &**name),
        };
        bytes.push(tag);
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(self.params_digest);
        bytes.extend(self.method.as_str().as_bytes());
        bytes
    }
}

/// How the call continues when the state comes back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SealedContinuation {
    /// It is suspended in this process under this number.
    Suspended(u128),
    /// It is rebuilt from these bytes.
    Portable(Bytes),
}

/// Encrypts continuations into text that only this server can make and decrypt.
pub(crate) struct StateSealer {
    current: ArcSwap<StateCiphers>,
}

/// The keys, each ready to be used.
struct StateCiphers {
    keys: StateKeys,
    ciphers: Vec<XChaCha20Poly1305>,
}

impl StateCiphers {
    fn new(keys: &StateKeys) -> Self {
        let ciphers = keys.0.iter().map(|key| XChaCha20Poly1305::new(key.into())).collect();
        Self { keys: keys.clone(), ciphers }
    }
}

impl fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({} keys)", self.current.load().ciphers.len())
    }
}

impl StateSealer {
    pub(crate) fn new(keys: &StateKeys) -> Self {
        Self { current: ArcSwap::from_pointee(StateCiphers::new(keys)) }
    }

    /// Replaces the keys; returns whether they differ from those before.
    pub(crate) fn replace(&self, keys: &StateKeys) -> bool {
        let has_changed = self.current.load().keys != *keys;
        if has_changed {
            self.current.store(Arc::new(StateCiphers::new(keys)));
        }
        has_changed
    }

    /// Encrypts a continuation; `None` only if the operating system gives no random bytes.
    pub(crate) fn seal(
        &self,
        binding: &StateBinding,
        round: u32,
        expires: Timestamp,
        then: &SealedContinuation,
    ) -> Option<String> {
        let mut plain = Vec::with_capacity(64);
        plain.extend(expires.0.to_le_bytes());
        plain.extend(round.to_le_bytes());
        match then {
            SealedContinuation::Suspended(number) => {
                plain.push(0);
                plain.extend(number.to_le_bytes());
            }
            SealedContinuation::Portable(bytes) => {
                plain.push(1);
                plain.extend(bytes);
            }
        }
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: &plain, aad: &binding.bytes() };
        let sealed = self.current.load().ciphers.first()?.encrypt(&XNonce::from(nonce), payload).ok()?;
        let mut whole = nonce.to_vec();
        whole.extend(sealed);
        Some(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Decrypts a state; `None` if it was not made by this server for this binding, or has expired.
    pub(crate) fn open(
        &self,
        state: &str,
        binding: &StateBinding,
        now: Timestamp,
    ) -> Option<(u32, SealedContinuation)> {
        let whole = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (nonce, sealed) = whole.split_first_chunk::<NONCE_BYTES>()?;
        let aad = binding.bytes();
        let nonce = XNonce::from(*nonce);
        let current = self.current.load();
        let plain = current
            .ciphers
            .iter()
            .find_map(|key| key.decrypt(&nonce, Payload { msg: sealed, aad: &aad }).ok())?;
        let (expires, rest) = plain.split_first_chunk::<8>()?;
        let (round, rest) = rest.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first()?;
        if Timestamp(u64::from_le_bytes(*expires)) <= now {
            return None;
        }
        let then = match kind {
            0 => SealedContinuation::Suspended(u128::from_le_bytes(rest.try_into().ok()?)),
            _ => SealedContinuation::Portable(Bytes::copy_from_slice(rest)),
        };
        Some((u32::from_le_bytes(*round), then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding() -> StateBinding {
        StateBinding {
            principal: Principal::Named("ann".into()),
            method: Method::ToolsCall,
            params_digest: [7; 32],
        }
    }

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    #[test]
    fn request_state_decrypts_only_for_its_own_request() {
        let sealer = StateSealer::new(&StateKeys::random().unwrap());
        let then = SealedContinuation::Portable(Bytes::from_static(b"where we were"));
        let state = sealer.seal(&binding(), 3, LATER, &then).unwrap();
        assert_eq!(sealer.open(&state, &binding(), NOW), Some((3, then)));
        for other in [
            StateBinding { principal: Principal::Named("bob".into()), ..binding() },
            StateBinding { principal: Principal::Anonymous, ..binding() },
            StateBinding { method: Method::PromptsGet, ..binding() },
            StateBinding { params_digest: [8; 32], ..binding() },
        ] {
            assert_eq!(sealer.open(&state, &other, NOW), None, "{other:?}");
        }
        assert_eq!(sealer.open(&state, &binding(), LATER), None, "expired");
    }

    #[test]
    fn tampered_request_state_never_decrypts() {
        let sealer = StateSealer::new(&StateKeys::random().unwrap());
        let state = sealer.seal(&binding(), 1, LATER, &SealedContinuation::Suspended(42)).unwrap();
        let whole = URL_SAFE_NO_PAD.decode(&state).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sealer.open(&URL_SAFE_NO_PAD.encode(changed), &binding(), NOW), None, "bit {bit}");
        }
        for tail in ["-TAMPERED", "A", "=", " "] {
            assert_eq!(sealer.open(&format!("{state}{tail}"), &binding(), NOW), None, "{tail}");
        }
        assert_eq!(sealer.open("", &binding(), NOW), None);
    }

    #[test]
    fn first_state_key_encrypts_and_all_keys_decrypt() {
        let (old, new) = (StateKeys::random().unwrap(), StateKeys::random().unwrap());
        let ring = StateKeys(vec![new.0[0], old.0[0]]);
        let before =
            StateSealer::new(&old).seal(&binding(), 1, LATER, &SealedContinuation::Suspended(1)).unwrap();
        let after =
            StateSealer::new(&ring).seal(&binding(), 1, LATER, &SealedContinuation::Suspended(2)).unwrap();
        assert!(StateSealer::new(&ring).open(&before, &binding(), NOW).is_some());
        assert!(StateSealer::new(&old).open(&after, &binding(), NOW).is_none());
        assert!(StateSealer::new(&new).open(&after, &binding(), NOW).is_some());
        // The same while it runs: the new key is added first, and the old one removed when its states have expired.
        let sealer = StateSealer::new(&old);
        assert!(sealer.replace(&ring) && !sealer.replace(&ring));
        assert!(sealer.open(&before, &binding(), NOW).is_some());
        assert!(sealer.open(&after, &binding(), NOW).is_some());
        let added = sealer.seal(&binding(), 1, LATER, &SealedContinuation::Suspended(3)).unwrap();
        assert!(StateSealer::new(&new).open(&added, &binding(), NOW).is_some(), "the first key encrypts");
        assert!(sealer.replace(&new));
        assert!(sealer.open(&before, &binding(), NOW).is_none());
    }
}
