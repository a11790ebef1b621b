use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What an address costs beside its own bytes.
const EACH: usize = 64;

/// The addresses of resources that are watched, all callers together within one bound.
#[derive(Debug)]
pub(crate) struct Watched {
    most: usize,
    held: AtomicUsize,
}

/// Room for the addresses of one subscriber, as long as it watches them.
#[derive(Debug)]
pub(crate) struct WatchedRoom {
    watched: Arc<Watched>,
    bytes: usize,
}

impl Watched {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: AtomicUsize::new(0) })
    }

    /// Makes room for nothing yet.
    pub(crate) fn room(self: &Arc<Self>) -> WatchedRoom {
        WatchedRoom { watched: self.clone(), bytes: 0 }
    }
}

impl WatchedRoom {
    /// Makes room for one more address; reports whether there is any.
    pub(crate) fn take(&mut self, uri: &str) -> bool {
        let more = uri.len() + EACH;
        let within = |held: usize| held.checked_add(more).filter(|held| *held <= self.watched.most);
        let taken = self.watched.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok();
        self.bytes += if taken { more } else { 0 };
        taken
    }

    /// Gives back the room of an address.
    pub(crate) fn give_back(&mut self, uri: &str) {
        let less = self.bytes.min(uri.len() + EACH);
        self.bytes -= less;
        self.watched.held.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for WatchedRoom {
    fn drop(&mut self) {
        self.watched.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_for_each_address_and_given_back_with_it() {
        let watched = Watched::new(2 * (EACH + 10));
        let held = || watched.held.load(Ordering::Relaxed);
        let (mut one, mut other) = (watched.room(), watched.room());
        assert!(one.take("0123456789") && other.take("0123456789"));
        assert!(!one.take("") && !other.take(""));
        one.give_back("0123456789");
        assert_eq!(held(), EACH + 10);
        assert!(other.take("0"));
        drop(other);
        assert_eq!(held(), 0);
        one.give_back("never taken");
        assert_eq!(held(), 0);
    }
}
