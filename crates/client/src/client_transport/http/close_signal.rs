use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::slab::Slab;

/// Whether the connection was closed, by which every request ends that waits.
///
/// Every request comes by here, so that coming and going costs next to nothing: whoever waits has a place of its own.
#[derive(Debug, Default)]
pub(super) struct CloseSignal {
    is_closed: AtomicBool,
    waiting: Mutex<Slab<Waker>>,
}

/// Where somebody waits.
#[derive(Debug, Default)]
pub(super) struct CloseWaiter(Option<usize>);

impl CloseSignal {
    /// Reports whether the connection was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Waits at a place for the connection to be closed; reports whether it is already.
    pub(super) fn register(&self, place: &mut CloseWaiter, waker: &Waker) -> bool {
        let mut waiting = self.lock();
        // Looked at while nobody can be woken, so that the end is either seen here or tells us.
        if self.is_closed() {
            return true;
        }
        match place.0.and_then(|at| waiting.get_mut(at)) {
            Some(known) => known.clone_from(waker),
            None => place.0 = Some(waiting.insert(waker.clone())),
        }
        false
    }

    /// Leaves a place for the next.
    pub(super) fn unregister(&self, place: &mut CloseWaiter) {
        if let Some(at) = place.0.take() {
            let waker = self.lock().remove(at);
            drop(waker);
        }
    }

    /// Closes the connection, and wakes everybody.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        self.is_closed.store(true, Ordering::Release);
        let mut woken = std::mem::take(&mut *waiting);
        drop(waiting);
        woken.iter_mut().for_each(|waker| waker.wake_by_ref());
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Waker>> {
        self.waiting.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_counter::WakeCounter;

    #[test]
    fn the_end_wakes_whoever_waits_and_nobody_who_left() {
        let closing = CloseSignal::default();
        let (waker, wakes) = WakeCounter::waker();
        let (mut stays, mut leaves) = (CloseWaiter::default(), CloseWaiter::default());
        for place in [&mut stays, &mut leaves, &mut CloseWaiter::default()] {
            assert!(!closing.register(place, &waker));
        }
        closing.unregister(&mut leaves);
        assert!(!closing.register(&mut stays, &waker));
        closing.close();
        assert_eq!(wakes.count(), 2);
        assert!(closing.is_closed() && closing.register(&mut leaves, &waker));
    }
}
