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
/// Of a client of several servers each server should have a [part](MessageBudget::part): a server that never completes its
/// messages then leaves memory for those of the others.
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
    /// The bytes that one part of it uses, if this is one.
    part: Option<Arc<AtomicUsize>>,
}

impl MessageBudget {
    /// Makes a budget of this many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Arc::default(), part: None }
    }

    /// Returns a part of it, for the connections to one server.
    ///
    /// A part may use as much as it leaves free: one alone half of the memory, each of two a third.
    ///
    /// ```
    /// use trunkline_client::MessageBudget;
    ///
    /// let memory = MessageBudget::new(64 << 20);
    /// let (files, wiki) = (memory.part(), memory.part());
    /// assert_eq!((files.limit(), wiki.used()), (64 << 20, 0));
    /// ```
    #[must_use]
    pub fn part(&self) -> Self {
        Self { part: Some(Arc::default()), ..self.clone() }
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes in use, those of all parts together.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn share(&self) -> BudgetShare {
        BudgetShare { budget: self.clone(), held: 0 }
    }

    /// Takes so many bytes, if they are free; a part only if as many as it uses stay free.
    fn take(&self, more: usize) -> bool {
        // The part is counted first: two of its connections at a time may both be refused, but never both be admitted.
        let own = self.part.as_ref().map_or(0, |part| part.fetch_add(more, Ordering::SeqCst) + more);
        let used = self.used.fetch_add(more, Ordering::SeqCst).saturating_add(more);
        let fits = used <= self.limit && own <= self.limit - used;
        if !fits {
            self.give_back(more);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if let Some(part) = &self.part {
            part.fetch_sub(bytes, Ordering::SeqCst);
        }
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
        if bytes < self.held {
            self.budget.give_back(self.held - bytes);
        } else if !self.budget.take(bytes - self.held) {
            return Err(BudgetExceeded { limit: self.budget.limit });
        }
        self.held = bytes;
        Ok(())
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.give_back(self.held);
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

    #[test]
    fn part_leaves_as_much_memory_to_others_as_it_uses() {
        const MIB: usize = 1 << 20;
        let budget = MessageBudget::new(12 * MIB);
        let parts = [budget.part(), budget.part(), budget.part()];
        // Each takes what it gets, as a server does that never completes a message.
        let mut held = Vec::new();
        let mut taken = [0; 3];
        for (part, taken) in parts.iter().zip(&mut taken) {
            loop {
                let mut share = part.share();
                if share.set(MIB).is_err() {
                    break;
                }
                *taken += 1;
                held.push(share);
            }
        }
        assert_eq!(taken, [6, 3, 1]);
        assert_eq!(budget.used(), 10 * MIB);
        // A client without a part may use all of it.
        let mut rest = budget.share();
        assert_eq!(rest.set(2 * MIB), Ok(()));
        drop((held, rest));
        let mut whole = parts[0].share();
        assert_eq!((budget.used(), whole.set(6 * MIB)), (0, Ok(())));
        assert!(whole.set(7 * MIB).is_err());
    }
}
