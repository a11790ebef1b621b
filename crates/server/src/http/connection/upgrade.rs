use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::socket::ConnectionSocket;

/// A connection that HTTP is no longer spoken on, with what was read of it already.
pub(in crate::http) type UpgradedConnection = (ConnectionSocket, Bytes);

/// Hands a connection over to whoever answers a request to do so; an extension of that request.
#[derive(Clone)]
pub(in crate::http) struct ConnectionUpgrade {
    // An extension has to be one that can be copied.
    receiver: Arc<Mutex<Option<oneshot::Receiver<UpgradedConnection>>>>,
}

impl ConnectionUpgrade {
    pub(super) fn new() -> (oneshot::Sender<UpgradedConnection>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self { receiver: Arc::new(Mutex::new(Some(receiver))) })
    }

    /// Waits for the connection; `None` if it broke before, or was taken already.
    pub(in crate::http) async fn upgraded(self) -> Option<UpgradedConnection> {
        let receiver = self.receiver.lock().take();
        receiver?.await.ok()
    }
}
