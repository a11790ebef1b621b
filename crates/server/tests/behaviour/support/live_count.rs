use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how many of something are alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveCount(Arc<AtomicUsize>);

/// One that is alive until it is dropped.
#[derive(Debug)]
pub(crate) struct LiveGuard(Arc<AtomicUsize>);

impl LiveCount {
    pub(crate) fn begin(&self) -> LiveGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        LiveGuard(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
