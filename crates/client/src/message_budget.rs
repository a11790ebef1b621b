use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dropped_message::DroppedMessage;

/// A message up to this size is not counted.
const FREE_BYTES: usize = 64 << 10;

/// The memory for messages that are being received, shared by all clients with a clone of it.
///
/// Each message has its own limit; this one bounds what many servers together can make a process hold. A connection
/// with a message that does not fit is closed.
///
/// ```
/// use trunkline_client::{ClientLimits, MessageBudget};
///
/// let limits = ClientLimits { message_memory: MessageBudget::new(64 << 20), ..ClientLimits::default() };
/// assert_eq!(limits.message_memory.limit(), 64 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct MessageBudget {
    limit: usize,
    used: Arc<AtomicUsize>,
}

impl MessageBudget {
    /// Makes a budget of this many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Arc::default() }
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn share(&self) -> BudgetShare {
        BudgetShare { budget: self.clone(), held: 0 }
    }
}

impl Default for MessageBudget {
    fn default() -> Self {
        Self::new(256 << 20)
    }
}

/// The messages that are being received from all servers need more memory than the budget has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("large messages of all servers together exceed {limit} bytes")]
pub(crate) struct BudgetExceeded {
    limit: usize,
}

impl From<BudgetExceeded> for DroppedMessage {
    fn from(exceeded: BudgetExceeded) -> Self {
        Self::OverBudget { limit: exceeded.limit }
    }
}

/// What one connection or response uses of a budget; released when it is dropped.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: MessageBudget,
    held: usize,
}

impl BudgetShare {
    /// Sets how many bytes of an incomplete message are held.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let bytes = if bytes > FREE_BYTES { bytes } else { 0 };
        if bytes == self.held {
            return Ok(());
        }
        let used = &self.budget.used;
        if bytes < self.held {
            used.fetch_sub(self.held - bytes, Ordering::Relaxed);
        } else {
            let more = bytes - self.held;
            let before = used.fetch_add(more, Ordering::Relaxed);
            if before.saturating_add(more) > self.budget.limit {
                used.fetch_sub(more, Ordering::Relaxed);
                return Err(BudgetExceeded { limit: self.budget.limit });
            }
        }
        self.held = bytes;
        Ok(())
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_counts_large_messages_of_all_shares_and_releases_them() {
        let budget = MessageBudget::new(1 << 20);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert_eq!(first.set(64 << 10), Ok(()));
        assert_eq!(budget.used(), 0, "a small message is not counted");
        assert_eq!(first.set(700 << 10), Ok(()));
        assert_eq!(second.set(400 << 10), Err(BudgetExceeded { limit: 1 << 20 }));
        assert_eq!(budget.used(), 700 << 10);
        assert_eq!(first.set(0), Ok(()));
        assert_eq!(second.set(400 << 10), Ok(()));
        drop((first, second));
        assert_eq!(budget.used(), 0);
    }
}
