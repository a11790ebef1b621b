//! The reply of a store operation on a path that must not allocate where the store does not wait.

use std::fmt;

use crate::StoreError;
use crate::session_store::BoxFuture;

/// The result of a store operation, at once or later.
///
/// A store that does no IO returns [`StoreReply::Ready`], which allocates nothing.
#[must_use = "the operation may fail, and may not be done yet"]
pub enum StoreReply<T> {
    /// The operation is done.
    Ready(Result<T, StoreError>),
    /// The operation is queued. Its effect does not depend on the future, which only reports when it is done.
    Pending(BoxFuture<'static, Result<T, StoreError>>),
}

impl<T> StoreReply<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// The operation failed.
    pub async fn wait(self) -> Result<T, StoreError> {
        match self {
            Self::Ready(result) => result,
            Self::Pending(future) => future.await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for StoreReply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(result) => f.debug_tuple("Ready").field(result).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
