use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound on bytes that all callers hold together.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    max: usize,
    used: AtomicUsize,
}

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct BytePermit {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl ByteBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0) })
    }

    /// Makes an empty permit.
    pub(crate) fn permit(self: &Arc<Self>) -> BytePermit {
        BytePermit { budget: self.clone(), bytes: 0 }
    }

    /// Returns how many bytes are taken now.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl BytePermit {
    /// Returns how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more bytes; returns false, and takes none, if the budget has not as many.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let within = |used: usize| used.checked_add(more).filter(|used| *used <= self.budget.max);
        let is_taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok();
        self.bytes += if is_taken { more } else { 0 };
        is_taken
    }

    /// Gives bytes back, at most all that it holds.
    pub(crate) fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
    }

    /// Gives back what it holds beyond a number of bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }

    /// Takes over another permit of the same budget.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_taken_and_given_back_by_its_permits() {
        let budget = ByteBudget::new(20);
        let (mut one, mut other) = (budget.permit(), budget.permit());
        assert!(one.grow(10) && other.grow(10));
        assert!(!one.grow(1) && !other.grow(usize::MAX));
        one.shrink(4);
        assert_eq!((budget.used(), one.bytes()), (16, 6));
        assert!(other.grow(4));
        one.merge(other);
        assert_eq!((budget.used(), one.bytes()), (20, 20));
        one.shrink(usize::MAX);
        assert_eq!(budget.used(), 0);
        assert!(one.grow(20));
        drop(one);
        assert_eq!(budget.used(), 0);
    }
}
