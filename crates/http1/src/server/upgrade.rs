use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A connection after its upgrade to another protocol, with what was read of it already.
pub type UpgradedConnection<K> = (K, Bytes);

/// Hands a connection over to the service that answers an upgrade request; an extension of that request.
pub struct ConnectionUpgrade<K> {
    // An extension has to be one that can be copied.
    receiver: Arc<Mutex<Option<oneshot::Receiver<UpgradedConnection<K>>>>>,
}

impl<K> ConnectionUpgrade<K> {
    pub(super) fn new() -> (oneshot::Sender<UpgradedConnection<K>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self { receiver: Arc::new(Mutex::new(Some(receiver))) })
    }

    /// Waits for the connection; `None` if it broke before, or was taken already.
    pub async fn upgraded(self) -> Option<UpgradedConnection<K>> {
        let receiver = self.receiver.lock().take();
        receiver?.await.ok()
    }
}

impl<K> Clone for ConnectionUpgrade<K> {
    fn clone(&self) -> Self {
        Self { receiver: self.receiver.clone() }
    }
}

impl<K> fmt::Debug for ConnectionUpgrade<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionUpgrade").finish_non_exhaustive()
    }
}
