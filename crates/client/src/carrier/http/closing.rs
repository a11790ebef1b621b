use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use crate::slots::Slots;

/// Whether the connection was closed, by which every request ends that waits.
///
/// Every request comes by here, so that coming and going costs next to nothing: whoever waits has a place of its own.
#[derive(Debug, Default)]
pub(super) struct Closing {
    is_over: AtomicBool,
    waiting: Mutex<Slots<Waker>>,
}

/// Where somebody waits.
#[derive(Debug, Default)]
pub(super) struct Place(Option<usize>);

impl Closing {
    /// Reports whether the connection was closed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits at a place for the connection to be closed; reports whether it is already.
    pub(super) fn wait(&self, place: &mut Place, waker: &Waker) -> bool {
        let mut waiting = self.lock();
        // Looked at while nobody can be woken, so that the end is either seen here or tells us.
        if self.is_over() {
            return true;
        }
        match place.0.and_then(|at| waiting.get_mut(at)) {
            Some(known) => known.clone_from(waker),
            None => place.0 = Some(waiting.insert(waker.clone())),
        }
        false
    }

    /// Leaves a place for the next.
    pub(super) fn leave(&self, place: &mut Place) {
        if let Some(at) = place.0.take() {
            let waker = self.lock().remove(at);
            drop(waker);
        }
    }

    /// Closes the connection, and wakes everybody.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        self.is_over.store(true, Ordering::Release);
        let mut woken = std::mem::take(&mut *waiting);
        drop(waiting);
        woken.iter_mut().for_each(|waker| waker.wake_by_ref());
    }

    fn lock(&self) -> MutexGuard<'_, Slots<Waker>> {
        self.waiting.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakes::Wakes;

    #[test]
    fn the_end_wakes_whoever_waits_and_nobody_who_left() {
        let closing = Closing::default();
        let (waker, wakes) = Wakes::counted();
        let (mut stays, mut leaves) = (Place::default(), Place::default());
        for place in [&mut stays, &mut leaves, &mut Place::default()] {
            assert!(!closing.wait(place, &waker));
        }
        closing.leave(&mut leaves);
        assert!(!closing.wait(&mut stays, &waker));
        closing.close();
        assert_eq!(wakes.count(), 2);
        assert!(closing.is_over() && closing.wait(&mut leaves, &waker));
    }
}
