use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Revokes a credential: what was opened with it ends. Dropping it revokes too, so that a credential which is removed
/// from a table ends with its entry.
///
/// ```
/// use trunkline_server::Revocation;
///
/// let revocation = Revocation::new();
/// let signal = revocation.signal();
/// assert!(!signal.is_revoked());
/// revocation.revoke();
/// assert!(signal.is_revoked());
/// ```
#[derive(Debug, Default)]
pub struct Revocation {
    state: Arc<RevocationState>,
}

#[derive(Debug, Default)]
struct RevocationState {
    revoked: AtomicBool,
    waiters: Notify,
}

/// The signal that a credential was revoked. Clones share one state.
#[derive(Clone, Debug)]
pub struct RevocationSignal {
    state: Arc<RevocationState>,
}

impl Revocation {
    /// Makes the means to revoke a credential, which is valid until then.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the signal for [`AccessGrant::revocation`](crate::AccessGrant::revocation).
    pub fn signal(&self) -> RevocationSignal {
        RevocationSignal { state: self.state.clone() }
    }

    /// Revokes the credential, once and for all.
    pub fn revoke(&self) {
        self.state.revoked.store(true, Ordering::SeqCst);
        self.state.waiters.notify_waiters();
    }
}

impl Drop for Revocation {
    fn drop(&mut self) {
        self.revoke();
    }
}

impl RevocationSignal {
    /// Reports whether the credential was revoked.
    pub fn is_revoked(&self) -> bool {
        self.state.revoked.load(Ordering::SeqCst)
    }

    /// Waits until the credential is revoked.
    pub async fn revoked(&self) {
        // Registered before the flag is read, so that a revocation in between is not missed.
        let revoked = self.state.waiters.notified();
        if !self.is_revoked() {
            revoked.await;
        }
    }
}
