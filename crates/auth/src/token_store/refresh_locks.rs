use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::TokenKey;

/// The number of locks. Keys that share one wait for each other's refresh.
const STRIPES: usize = 64;

/// Striped locks: the refreshes of a key in one process follow each other.
#[derive(Debug)]
pub(super) struct RefreshLocks {
    locks: Vec<Arc<Mutex<()>>>,
}

impl Default for RefreshLocks {
    fn default() -> Self {
        Self { locks: (0..STRIPES).map(|_| Arc::default()).collect() }
    }
}

impl RefreshLocks {
    /// Returns the index of the lock of a key, which is the same in all processes.
    pub(super) fn stripe_index(key: &TokenKey) -> usize {
        let TokenKey { principal, server_url, issuer, client_id, account } = key;
        let mut digest = Sha256::new();
        for part in [principal, server_url, issuer, client_id, account.as_deref().unwrap_or_default()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        digest.finalize().first().map_or(0, |byte| usize::from(*byte) % STRIPES)
    }

    /// Waits until no refresh of a key is under way in this process.
    pub(super) async fn lock(&self, key: &TokenKey) -> OwnedMutexGuard<()> {
        let lock = self.locks.get(Self::stripe_index(key)).cloned().unwrap_or_default();
        lock.lock_owned().await
    }
}
