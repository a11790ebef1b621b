use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::slab::Slab;

/// The signal that the connection was closed, which ends every pending request.
///
/// Every request registers here, so that registering has to be cheap: each waiter has a slot of its own.
#[derive(Debug, Default)]
pub(super) struct CloseSignal {
    is_closed: AtomicBool,
    waiting: Mutex<Slab<Waker>>,
}

/// The slot of one waiter.
#[derive(Debug, Default)]
pub(super) struct CloseWaiter(Option<usize>);

impl CloseSignal {
    /// Reports whether the connection was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Registers a waiter for the end of the connection; reports whether it is closed already.
    pub(super) fn register(&self, waiter: &mut CloseWaiter, waker: &Waker) -> bool {
        let mut waiting = self.lock();
        // Checked under the lock that `close` takes, so that the end is either seen here or wakes this waiter.
        if self.is_closed() {
            return true;
        }
        match waiter.0.and_then(|at| waiting.get_mut(at)) {
            Some(known) => known.clone_from(waker),
            None => waiter.0 = Some(waiting.insert(waker.clone())),
        }
        false
    }

    /// Frees the slot of a waiter.
    pub(super) fn unregister(&self, waiter: &mut CloseWaiter) {
        if let Some(at) = waiter.0.take() {
            let waker = self.lock().remove(at);
            drop(waker);
        }
    }

    /// Closes the connection, and wakes all waiters.
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
    use trunkline_testing::WakeCounter;

    use super::*;

    #[test]
    fn close_signal_wakes_registered_waiters_only() {
        let closing = CloseSignal::default();
        let (waker, wakes) = WakeCounter::waker();
        let (mut stays, mut leaves) = (CloseWaiter::default(), CloseWaiter::default());
        for waiter in [&mut stays, &mut leaves, &mut CloseWaiter::default()] {
            assert!(!closing.register(waiter, &waker));
        }
        closing.unregister(&mut leaves);
        assert!(!closing.register(&mut stays, &waker));
        closing.close();
        assert_eq!(wakes.count(), 2);
        assert!(closing.is_closed() && closing.register(&mut leaves, &waker));
    }
}
