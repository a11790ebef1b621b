use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The cost of a URI besides its own bytes.
const PER_URI_OVERHEAD: usize = 64;

/// The budget for URIs of watched resources, all callers together within one bound.
#[derive(Debug)]
pub(crate) struct WatchedUriBudget {
    max: usize,
    used: AtomicUsize,
}

/// A permit for the URIs of one subscriber, as long as it watches them.
#[derive(Debug)]
pub(crate) struct WatchedUriPermit {
    budget: Arc<WatchedUriBudget>,
    bytes: usize,
}

impl WatchedUriBudget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { max: most, used: AtomicUsize::new(0) })
    }

    /// Makes an empty permit.
    pub(crate) fn permit(self: &Arc<Self>) -> WatchedUriPermit {
        WatchedUriPermit { budget: self.clone(), bytes: 0 }
    }
}

impl WatchedUriPermit {
    /// Reserves memory for one more URI; returns false if the budget is exhausted.
    pub(crate) fn add(&mut self, uri: &str) -> bool {
        let more = uri.len() + PER_URI_OVERHEAD;
        let within = |held: usize| held.checked_add(more).filter(|held| *held <= self.budget.max);
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok();
        self.bytes += if taken { more } else { 0 };
        taken
    }

    /// Releases the memory of a URI.
    pub(crate) fn remove(&mut self, uri: &str) {
        let less = self.bytes.min(uri.len() + PER_URI_OVERHEAD);
        self.bytes -= less;
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for WatchedUriPermit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_uri_budget_is_reserved_and_released_per_uri() {
        let watched = WatchedUriBudget::new(2 * (PER_URI_OVERHEAD + 10));
        let held = || watched.used.load(Ordering::Relaxed);
        let (mut one, mut other) = (watched.permit(), watched.permit());
        assert!(one.add("0123456789") && other.add("0123456789"));
        assert!(!one.add("") && !other.add(""));
        one.remove("0123456789");
        assert_eq!(held(), PER_URI_OVERHEAD + 10);
        assert!(other.add("0"));
        drop(other);
        assert_eq!(held(), 0);
        one.remove("never taken");
        assert_eq!(held(), 0);
    }
}
