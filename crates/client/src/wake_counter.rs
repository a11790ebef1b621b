//! A waker for tests that counts its wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
pub(crate) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    /// Creates a waker and its counter.
    pub(crate) fn waker() -> (Waker, Arc<Self>) {
        let wakes = Arc::<Self>::default();
        (Waker::from(wakes.clone()), wakes)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
