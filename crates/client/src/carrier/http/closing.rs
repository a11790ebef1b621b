use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Whether the connection was closed, by which every request ends that waits.
///
/// Every request comes by here, so that coming and going costs next to nothing: whoever waits has a place of its own.
#[derive(Debug, Default)]
pub(super) struct Closing {
    is_over: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    places: Vec<Option<Waker>>,
    free: Vec<usize>,
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
        let at = *place.0.get_or_insert_with(|| waiting.take_place());
        match waiting.places.get_mut(at) {
            Some(Some(known)) => known.clone_from(waker),
            Some(none) => *none = Some(waker.clone()),
            None => {}
        }
        false
    }

    /// Leaves a place for the next.
    pub(super) fn leave(&self, place: &mut Place) {
        let Some(at) = place.0.take() else { return };
        let mut waiting = self.lock();
        let waker = waiting.places.get_mut(at).and_then(Option::take);
        waiting.free.push(at);
        drop(waiting);
        drop(waker);
    }

    /// Closes the connection, and wakes everybody.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        self.is_over.store(true, Ordering::Release);
        let wakers: Vec<_> = waiting.places.iter_mut().filter_map(Option::take).collect();
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
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

    #[test]
    fn a_place_that_was_left_is_used_again() {
        let closing = Closing::default();
        for _ in 0..1000 {
            let mut place = Place::default();
            assert!(!closing.wait(&mut place, Waker::noop()));
            closing.leave(&mut place);
        }
        assert_eq!(closing.lock().places.len(), 1);
    }
}
