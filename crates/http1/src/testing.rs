//! A waker for tests that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// Counts how often a waker was used.
#[derive(Default)]
pub(crate) struct CountedWakes(AtomicUsize);

impl CountedWakes {
    /// Makes a waker, and what it counts.
    pub(crate) fn pair() -> (Waker, Arc<Self>) {
        let wakes = Arc::<Self>::default();
        (Waker::from(wakes.clone()), wakes)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for CountedWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
