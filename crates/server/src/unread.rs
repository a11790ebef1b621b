use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::metrics::process::{self, CutReason};

/// The memory that is held for what peers have not read, all peers together within one bound.
///
/// A buffer is held whole until its last byte is written, and counts as a whole. An answer that is written in one go costs
/// nothing here. Past the bound one of the largest holders is cut: of those the one that has taken nothing for the longest time, since a peer
/// that reads, however slowly, is worth more than one that does not.
#[derive(Debug)]
pub(crate) struct Unread {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    stamps: u64,
    /// The last one is the first to be cut.
    holders: BTreeMap<Rank, Holder>,
}

/// Which holder is cut first. Sizes count by their magnitude alone: a few bytes more or less are not what makes one worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    magnitude: u32,
    stamp: Reverse<u64>,
}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    waker: Waker,
}

impl Unread {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default() })
    }

    /// Makes a place for what waits for one peer; as long as nothing does, it costs nothing.
    pub(crate) fn holding(self: &Arc<Self>) -> Holding {
        Holding { unread: self.clone(), rank: None, unwritten: 0, moved: false }
    }

    /// Returns how many bytes are held now.
    pub(crate) fn held(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

impl Held {
    fn put(&mut self, bytes: usize, stamp: Reverse<u64>, waker: Waker) -> Rank {
        let rank = Rank { magnitude: bytes.checked_ilog2().unwrap_or(0), stamp };
        self.bytes += bytes;
        self.holders.insert(rank, Holder { bytes, waker });
        rank
    }

    fn take(&mut self, rank: Rank) -> Option<Holder> {
        let holder = self.holders.remove(&rank)?;
        self.bytes -= holder.bytes;
        Some(holder)
    }

    fn next_stamp(&mut self) -> Reverse<u64> {
        self.stamps += 1;
        Reverse(self.stamps)
    }

    /// Takes those out that have to go for the rest to be within the bound.
    fn cut(&mut self, most: usize) -> Vec<Holder> {
        let mut cut = Vec::new();
        while self.bytes > most {
            let Some(rank) = self.holders.keys().next_back().copied() else { break };
            cut.extend(self.take(rank));
        }
        cut
    }
}

/// What waits for one peer.
#[derive(Debug)]
pub(crate) struct Holding {
    unread: Arc<Unread>,
    rank: Option<Rank>,
    /// How much was to be written when it was last said.
    unwritten: usize,
    moved: bool,
}

/// A peer was cut, because everybody together has left too much unread.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cut: peers have left more unread than the limit allows, and this one is among those that left most")]
pub(crate) struct Cut;

impl Cut {
    /// Reports whether this is why a connection broke.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().and_then(|cause| cause.downcast_ref::<Self>()).is_some()
    }

    /// Counts it, logs it, and returns what the peer's connection breaks with.
    pub(crate) fn carry_out(self) -> io::Error {
        process::cut_slow_reader(CutReason::Budget);
        tracing::info!("a peer was {self}");
        io::Error::new(io::ErrorKind::QuotaExceeded, self)
    }
}

impl Holding {
    pub(crate) fn is_empty(&self) -> bool {
        self.rank.is_none()
    }

    /// Notes that the peer has taken a part of what waits. That less is to be written than before tells the same.
    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }

    /// Notes how much is still to be written, and how much memory is held for it: all of a buffer of which a part is
    /// written already, and what was allocated beyond its length.
    ///
    /// The task is woken if its peer is cut; it finds out by calling this again.
    ///
    /// # Errors
    /// [`Cut`].
    pub(crate) fn wait(&mut self, unwritten: usize, bytes: usize, waker: &Waker) -> Result<(), Cut> {
        let bytes = bytes.max(unwritten);
        let mut held = self.unread.lock();
        let before = std::mem::replace(&mut self.unwritten, unwritten);
        let moved = std::mem::take(&mut self.moved) || unwritten < before;
        let (stamp, waker) = match self.rank.take() {
            None => (held.next_stamp(), waker.clone()),
            Some(rank) => {
                let before = held.take(rank).ok_or(Cut)?;
                let stamp = if moved { held.next_stamp() } else { rank.stamp };
                (stamp, if before.waker.will_wake(waker) { before.waker } else { waker.clone() })
            }
        };
        if bytes > self.unread.most {
            // Whoever else were cut, this would not fit.
            return Err(Cut);
        }
        let rank = held.put(bytes, stamp, waker);
        let cut = held.cut(self.unread.most);
        let is_cut = !held.holders.contains_key(&rank);
        drop(held);
        // Outside of the lock, which those who are woken want too.
        cut.into_iter().for_each(|holder| holder.waker.wake());
        if is_cut {
            return Err(Cut);
        }
        self.rank = Some(rank);
        Ok(())
    }

    /// Notes that nothing waits any more.
    pub(crate) fn release(&mut self) {
        self.moved = false;
        if let Some(rank) = self.rank.take() {
            self.unread.lock().take(rank);
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Wakes;

    /// One peer, which remembers how often it was woken.
    struct Peer {
        holding: Holding,
        waker: Waker,
        wakes: Arc<Wakes>,
    }

    impl Peer {
        fn of(unread: &Arc<Unread>) -> Self {
            let (waker, wakes) = Wakes::counted();
            Self { holding: unread.holding(), waker, wakes }
        }

        fn wait(&mut self, bytes: usize) -> Result<(), Cut> {
            self.holding.wait(bytes, bytes, &self.waker)
        }

        fn was_woken(&self) -> bool {
            self.wakes.count() > 0
        }
    }

    #[test]
    fn the_largest_holder_is_cut_and_of_several_the_one_that_stands_still_longest() {
        let unread = Unread::new(990);
        let [mut small, mut still, mut slow] = [(); 3].map(|()| Peer::of(&unread));
        assert_eq!(still.wait(300), Ok(()));
        assert_eq!(slow.wait(301), Ok(()));
        assert_eq!(small.wait(100), Ok(()));
        assert_eq!(slow.wait(290), Ok(()));
        let mut last = Peer::of(&unread);
        assert_eq!(last.wait(310), Ok(()), "the one that came last is not the one that is cut");
        assert_eq!((small.was_woken(), still.was_woken(), slow.was_woken()), (false, true, false));
        assert_eq!(still.wait(300), Err(Cut));
        assert_eq!(slow.wait(290), Ok(()));
        drop((small, still, slow, last));
        assert_eq!(unread.lock().bytes, 0);
        assert!(unread.lock().holders.is_empty());
    }

    #[test]
    fn one_that_holds_more_than_all_may_is_cut_at_once() {
        let unread = Unread::new(1000);
        let [mut small, mut large] = [(); 2].map(|()| Peer::of(&unread));
        assert_eq!(small.wait(900), Ok(()));
        assert_eq!(large.wait(1001), Err(Cut));
        assert_eq!(small.wait(900), Ok(()));
        assert_eq!(unread.lock().bytes, 900);
    }

    #[test]
    fn a_buffer_counts_whole_until_it_is_released_however_little_of_it_is_unwritten() {
        let unread = Unread::new(1000);
        let [mut first, mut second] = [(); 2].map(|()| Peer::of(&unread));
        assert_eq!(first.holding.wait(10, 900, &first.waker), Ok(()));
        assert_eq!(unread.held(), 900, "the peer has taken most of it at once");
        assert_eq!(first.holding.wait(1, 900, &first.waker), Ok(()));
        assert_eq!(unread.held(), 900, "its buffer is still whole");
        assert_eq!(first.holding.wait(1, 500, &first.waker), Ok(()));
        assert_eq!(unread.held(), 500, "a part of its buffer was given back");
        first.holding.release();
        assert!(first.holding.is_empty());
        assert_eq!(second.wait(900), Ok(()));
        assert!(!first.was_woken());
    }
}
