//! How a connection is closed: on request, after its last use.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::connection::UpstreamConnection;

impl UpstreamConnection {
    /// Requests that the connection is closed; no new lease is granted from here on. Called with the state of the
    /// upstream locked, which has to learn of it: see [`UpstreamState`](super::upstream_state::UpstreamState).
    pub(super) fn request_close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.wake_supervisor();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Wakes the supervisor to check whether the connection is still needed.
    pub(super) fn wake_supervisor(&self) {
        self.wakeup.notify_waiters();
    }

    /// Waits until a close is requested.
    pub(super) async fn close_requested(&self) {
        loop {
            let woken = self.wakeup.notified();
            if self.is_closing() {
                return;
            }
            woken.await;
        }
    }

    /// Records that the connection is closed.
    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until the connection has to be checked or closed.
    pub(super) fn woken(&self) -> impl Future<Output = ()> {
        self.wakeup.notified()
    }

    /// Waits until the connection is unused, at most for `within`.
    pub(super) async fn drained(&self, within: Duration) {
        let drained = async {
            loop {
                let woken = self.wakeup.notified();
                if self.use_count() == 0 {
                    return;
                }
                woken.await;
            }
        };
        let _ = tokio::time::timeout(within, drained).await;
    }
}
