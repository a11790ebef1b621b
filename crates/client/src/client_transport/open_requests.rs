use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the input requests outside of calls that have arrived and are not answered yet.
///
/// A transport counts a request before it passes on any message that arrived after it, so that the response to a ping
/// shows that every earlier request is counted.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    count: AtomicUsize,
    answered: Notify,
}

/// One input request, until its answer is sent.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<OpenRequests>);

impl OpenRequests {
    /// Counts a request.
    pub(super) fn begin(self: &Arc<Self>) -> OpenRequest {
        self.count.fetch_add(1, Ordering::SeqCst);
        OpenRequest(self.clone())
    }

    /// Waits until the answers to all requests are sent.
    pub(crate) async fn wait_answered(&self) {
        loop {
            let answered = self.answered.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            answered.await;
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.answered.notify_waiters();
    }
}
