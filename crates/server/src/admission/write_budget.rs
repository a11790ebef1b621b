use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::metrics::process::{self, EvictionReason};

/// The budget for data that peers have not read, all peers together within one bound.
///
/// A buffer is held until its last byte is written, and counts completely. A response that is written at once costs
/// nothing here. Beyond the bound one of the largest holders is evicted: of those the one that has read nothing for
/// the longest time, since a peer that reads, however slowly, is worth more than one that does not.
#[derive(Debug)]
pub(crate) struct WriteBudget {
    max: usize,
    state: Mutex<WriteBudgetState>,
}

#[derive(Debug, Default)]
struct WriteBudgetState {
    bytes: usize,
    stamps: u64,
    /// The last one is the first to be evicted.
    candidates: BTreeMap<EvictionRank, EvictionCandidate>,
}

/// The order of eviction. Sizes count by their order of magnitude alone: a few bytes more do not make a peer worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionRank {
    magnitude: u32,
    stamp: Reverse<u64>,
}

#[derive(Debug)]
struct EvictionCandidate {
    bytes: usize,
    waker: Waker,
}

impl WriteBudget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { max: most, state: Mutex::default() })
    }

    /// Makes the backlog of one peer; while it is empty, it costs nothing.
    pub(crate) fn backlog(self: &Arc<Self>) -> PeerBacklog {
        PeerBacklog { budget: self.clone(), rank: None, unwritten: 0, progressed: false }
    }

    /// Returns how many bytes are held now.
    pub(crate) fn used(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, WriteBudgetState> {
        self.state.lock()
    }
}

impl WriteBudgetState {
    fn insert(&mut self, bytes: usize, stamp: Reverse<u64>, waker: Waker) -> EvictionRank {
        let rank = EvictionRank { magnitude: bytes.checked_ilog2().unwrap_or(0), stamp };
        self.bytes += bytes;
        self.candidates.insert(rank, EvictionCandidate { bytes, waker });
        rank
    }

    fn remove(&mut self, rank: EvictionRank) -> Option<EvictionCandidate> {
        let holder = self.candidates.remove(&rank)?;
        self.bytes -= holder.bytes;
        Some(holder)
    }

    fn next_stamp(&mut self) -> Reverse<u64> {
        self.stamps += 1;
        Reverse(self.stamps)
    }

    /// Removes the holders that must be evicted to bring the rest within the bound.
    fn evict(&mut self, most: usize) -> Vec<EvictionCandidate> {
        let mut evicted = Vec::new();
        while self.bytes > most {
            let Some(rank) = self.candidates.keys().next_back().copied() else { break };
            evicted.extend(self.remove(rank));
        }
        evicted
    }
}

/// The unread data of one peer.
#[derive(Debug)]
pub(crate) struct PeerBacklog {
    budget: Arc<WriteBudget>,
    rank: Option<EvictionRank>,
    /// How much was to be written when it was last recorded.
    unwritten: usize,
    progressed: bool,
}

/// A peer was evicted, because the unread data of all peers exceeds the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "evicted: unread data of all peers exceeds the limit, and this peer is among those that hold the most"
)]
pub(crate) struct SlowReaderEvicted;

impl SlowReaderEvicted {
    /// Reports whether this is why a connection broke.
    pub(crate) fn caused(error: &io::Error) -> bool {
        error.get_ref().and_then(|cause| cause.downcast_ref::<Self>()).is_some()
    }

    /// Counts it, logs it, and returns the error that ends the peer's connection.
    pub(crate) fn into_io_error(self) -> io::Error {
        process::count_slow_reader(EvictionReason::Budget);
        tracing::info!("a peer was {self}");
        io::Error::new(io::ErrorKind::QuotaExceeded, self)
    }
}

impl PeerBacklog {
    pub(crate) fn is_empty(&self) -> bool {
        self.rank.is_none()
    }

    /// Records that the peer has read a part of its data. A smaller `unwritten` than before has the same effect.
    pub(crate) fn record_progress(&mut self) {
        self.progressed = true;
    }

    /// Records how much is still to be written, and how much memory is held for it: all of a partly written buffer,
    /// and its capacity beyond its length.
    ///
    /// The task is woken if its peer is evicted; it finds out by calling this again.
    ///
    /// # Errors
    /// [`SlowReaderEvicted`].
    pub(crate) fn record_unwritten(
        &mut self,
        unwritten: usize,
        bytes: usize,
        waker: &Waker,
    ) -> Result<(), SlowReaderEvicted> {
        let bytes = bytes.max(unwritten);
        let mut held = self.budget.lock();
        let before = std::mem::replace(&mut self.unwritten, unwritten);
        let moved = std::mem::take(&mut self.progressed) || unwritten < before;
        let (stamp, waker) = match self.rank.take() {
            None => (held.next_stamp(), waker.clone()),
            Some(rank) => {
                let before = held.remove(rank).ok_or(SlowReaderEvicted)?;
                let stamp = if moved { held.next_stamp() } else { rank.stamp };
                (stamp, if before.waker.will_wake(waker) { before.waker } else { waker.clone() })
            }
        };
        if bytes > self.budget.max {
            // Even if every other peer were evicted, this would not fit.
            return Err(SlowReaderEvicted);
        }
        let rank = held.insert(bytes, stamp, waker);
        let evicted = held.evict(self.budget.max);
        let is_evicted = !held.candidates.contains_key(&rank);
        drop(held);
        // Outside of the lock, which the woken tasks take too.
        evicted.into_iter().for_each(|holder| holder.waker.wake());
        if is_evicted {
            return Err(SlowReaderEvicted);
        }
        self.rank = Some(rank);
        Ok(())
    }

    /// Records that nothing is unread any more.
    pub(crate) fn clear(&mut self) {
        self.progressed = false;
        if let Some(rank) = self.rank.take() {
            self.budget.lock().remove(rank);
        }
    }
}

impl Drop for PeerBacklog {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use trunkline_testing::WakeCounter;

    use super::*;

    /// One peer, which counts how often it was woken.
    struct SlowPeer {
        holding: PeerBacklog,
        waker: Waker,
        wakes: Arc<WakeCounter>,
    }

    impl SlowPeer {
        fn of(unread: &Arc<WriteBudget>) -> Self {
            let (waker, wakes) = WakeCounter::waker();
            Self { holding: unread.backlog(), waker, wakes }
        }

        fn wait(&mut self, bytes: usize) -> Result<(), SlowReaderEvicted> {
            self.holding.record_unwritten(bytes, bytes, &self.waker)
        }

        fn was_woken(&self) -> bool {
            self.wakes.count() > 0
        }
    }

    #[test]
    fn write_budget_evicts_the_largest_holder_that_is_idle_longest() {
        let unread = WriteBudget::new(990);
        let [mut small, mut still, mut slow] = [(); 3].map(|()| SlowPeer::of(&unread));
        assert_eq!(still.wait(300), Ok(()));
        assert_eq!(slow.wait(301), Ok(()));
        assert_eq!(small.wait(100), Ok(()));
        assert_eq!(slow.wait(290), Ok(()));
        let mut last = SlowPeer::of(&unread);
        assert_eq!(last.wait(310), Ok(()), "the one that came last is not the one that is cut");
        assert_eq!((small.was_woken(), still.was_woken(), slow.was_woken()), (false, true, false));
        assert_eq!(still.wait(300), Err(SlowReaderEvicted));
        assert_eq!(slow.wait(290), Ok(()));
        drop((small, still, slow, last));
        assert_eq!(unread.lock().bytes, 0);
        assert!(unread.lock().candidates.is_empty());
    }

    #[test]
    fn write_budget_evicts_a_single_holder_above_the_total() {
        let unread = WriteBudget::new(1000);
        let [mut small, mut large] = [(); 2].map(|()| SlowPeer::of(&unread));
        assert_eq!(small.wait(900), Ok(()));
        assert_eq!(large.wait(1001), Err(SlowReaderEvicted));
        assert_eq!(small.wait(900), Ok(()));
        assert_eq!(unread.lock().bytes, 900);
    }

    #[test]
    fn write_budget_counts_a_partly_written_buffer_completely() {
        let unread = WriteBudget::new(1000);
        let [mut first, mut second] = [(); 2].map(|()| SlowPeer::of(&unread));
        assert_eq!(first.holding.record_unwritten(10, 900, &first.waker), Ok(()));
        assert_eq!(unread.used(), 900, "the peer has taken most of it at once");
        assert_eq!(first.holding.record_unwritten(1, 900, &first.waker), Ok(()));
        assert_eq!(unread.used(), 900, "its buffer is still whole");
        assert_eq!(first.holding.record_unwritten(1, 500, &first.waker), Ok(()));
        assert_eq!(unread.used(), 500, "a part of its buffer was given back");
        first.holding.clear();
        assert!(first.holding.is_empty());
        assert_eq!(second.wait(900), Ok(()));
        assert!(!first.was_woken());
    }
}
