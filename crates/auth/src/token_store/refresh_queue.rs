use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::TokenKey;

/// The number of queues. Keys that share one wait for each other's refresh.
const QUEUES: usize = 64;

/// Makes the refreshes of a key in one process follow each other.
#[derive(Debug)]
pub(super) struct RefreshQueues {
    queues: Vec<Arc<Mutex<()>>>,
}

impl Default for RefreshQueues {
    fn default() -> Self {
        Self { queues: (0..QUEUES).map(|_| Arc::default()).collect() }
    }
}

impl RefreshQueues {
    /// Returns the number of the queue of a key, which is the same in all processes.
    pub(super) fn number(key: &TokenKey) -> usize {
        let TokenKey { principal, server_url, issuer, client_id, account } = key;
        let mut digest = Sha256::new();
        for part in [principal, server_url, issuer, client_id, account.as_deref().unwrap_or_default()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        digest.finalize().first().map_or(0, |byte| usize::from(*byte) % QUEUES)
    }

    /// Waits until no refresh of a key is under way in this process.
    pub(super) async fn enter(&self, key: &TokenKey) -> OwnedMutexGuard<()> {
        let queue = self.queues.get(Self::number(key)).cloned().unwrap_or_default();
        queue.lock_owned().await
    }
}
