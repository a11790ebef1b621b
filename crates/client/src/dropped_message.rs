use std::fmt;
use std::sync::Arc;

/// A message of a server that was dropped: it reached no call, or only made its call fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DroppedMessage {
    /// It was not UTF-8, not JSON, or not a message.
    Unreadable,
    /// It was above [`ClientLimits::message_bytes`](crate::ClientLimits::message_bytes).
    TooLong,
    /// It answers no request that is in flight.
    Unmatched,
    /// It was a notification outside of calls, and the oldest of too many.
    Notification,
    /// It was a request outside of calls, and one of too many; it was refused.
    Request,
}

/// The function that is called for dropped messages.
#[derive(Clone)]
pub(crate) struct DropCallback(Arc<dyn Fn(DroppedMessage) + Send + Sync>);

impl DropCallback {
    pub(crate) fn new(callback: impl Fn(DroppedMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(crate) fn call(&self, kind: DroppedMessage) {
        (self.0)(kind);
    }
}

impl fmt::Debug for DropCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropCallback").finish_non_exhaustive()
    }
}
