use std::fmt;
use std::sync::Arc;

/// A message of a server that was dropped: it reached no call, or only made its call fail. Some variants are about the
/// whole connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DroppedMessage {
    /// It was not UTF-8, not JSON, or not a message.
    Unreadable,
    /// It was above [`ClientLimits::message_bytes`](crate::ClientLimits::message_bytes).
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// It needed more memory than [`ClientLimits::message_memory`](crate::ClientLimits::message_memory) has for all
    /// connections; the connection or response was closed.
    OverBudget {
        /// The limit in bytes.
        limit: usize,
    },
    /// It answers no request that is in flight.
    Unmatched,
    /// It was a notification: the oldest of too many, progress that does not increase, or one that belongs to no request
    /// and no subscription.
    Notification,
    /// It was a request outside of calls or of one call, and one of too many, or a request where there may be none; it
    /// was refused or ignored.
    Request,
    /// It was a request, and our answer was dropped: too many answers wait to be sent, or the server did not take it.
    Answer,
    /// Nothing was dropped, but messages came too fast, and the server is not read from until the second is over.
    Paused,
    /// Nothing was dropped, but the stream of changes fails again and again, so that changes are missed.
    StreamFailing,
}

impl DroppedMessage {
    /// Logs what an operator should know, for a client without a callback.
    fn log(self) {
        match self {
            Self::TooLong { limit } => {
                tracing::warn!(limit, "a message of the server is too long and was skipped");
            }
            Self::OverBudget { limit } => {
                tracing::warn!(
                    limit,
                    "a connection was closed: large messages of all servers exceed the limit"
                );
            }
            Self::StreamFailing => tracing::warn!("the server's stream of changes fails again and again"),
            _ => {}
        }
    }
}

/// The function that is called for dropped messages.
#[derive(Clone)]
pub(crate) struct DropCallback(Arc<dyn Fn(DroppedMessage) + Send + Sync>);

impl DropCallback {
    pub(crate) fn new(callback: impl Fn(DroppedMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Reports a message to the callback, or else to the log.
    pub(crate) fn report(callback: Option<&Self>, kind: DroppedMessage) {
        match callback {
            Some(Self(callback)) => callback(kind),
            None => kind.log(),
        }
    }
}

impl fmt::Debug for DropCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropCallback").finish_non_exhaustive()
    }
}
