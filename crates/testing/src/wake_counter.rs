//! A waker for tests that counts its wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// Counts how often a waker was used.
#[derive(Debug, Default)]
pub struct WakeCounter(AtomicUsize);

impl WakeCounter {
    /// Creates a waker and its counter.
    pub fn waker() -> (Waker, Arc<Self>) {
        let wakes = Arc::<Self>::default();
        (Waker::from(wakes.clone()), wakes)
    }

    /// Returns how often the waker was used so far.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wake_of_every_clone_is_counted() {
        let (waker, wakes) = WakeCounter::waker();
        assert_eq!(wakes.count(), 0);
        let clone = waker.clone();
        clone.wake_by_ref();
        waker.wake();
        assert_eq!(wakes.count(), 2);
    }
}
