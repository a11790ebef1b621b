use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The error of a lower layer that caused an error, such as an [`io::Error`] of the connection. Clones share it, and two
/// are equal if their texts are.
///
/// It is no error itself: [`source`](Error::source) of the error that contains it returns the cause as it is, for
/// [`downcast_ref`](std::error::Error#method.downcast_ref).
///
/// [`io::Error`]: std::io::Error
#[derive(Clone)]
pub struct ErrorSource(Arc<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for ErrorSource {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl Deref for ErrorSource {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for ErrorSource {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for ErrorSource {}

impl fmt::Display for ErrorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ErrorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
