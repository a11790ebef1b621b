use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use trunkline_session::Principal;

use crate::call::Running;
use crate::limits::Limits;
use crate::shutdown::Shutdown;

/// Where calls wait for the request that brings the answers to their questions.
///
/// A parked call goes on being polled, by a task of its own that also ends it when its time is over or the server drains.
/// Ending an entry is dropping it: the task then drops the call, which cancels it.
#[derive(Clone, Debug)]
pub(crate) struct Lot {
    places: Arc<Mutex<Places>>,
    parked_for: Duration,
    most: usize,
    most_per_principal: usize,
    shutdown: Shutdown,
}

#[derive(Debug, Default)]
struct Places {
    arrivals: u64,
    by_number: HashMap<u128, Place>,
}

#[derive(Debug)]
struct Place {
    arrival: u64,
    principal: Principal,
    round: u32,
    /// Whether it holds a large request.
    is_large: bool,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// A live call: its task hands it over to whoever sends a way back.
    Call(oneshot::Sender<oneshot::Sender<Running>>),
    /// A continuation too large to travel through the client; its task only keeps the time.
    Bytes(
        Bytes,
        #[expect(dead_code, reason = "dropping it ends the task that keeps the time")] oneshot::Sender<()>,
    ),
}

/// What was parked.
pub(crate) enum Reclaimed {
    Call(Running),
    Bytes(Bytes),
}

impl Lot {
    pub(crate) fn new(limits: &Limits, shutdown: Shutdown) -> Self {
        Self {
            places: Arc::default(),
            parked_for: limits.parked_for,
            most: limits.parked,
            most_per_principal: limits.parked_per_principal,
            shutdown,
        }
    }

    /// Parks a call and returns its number; `None` only if the operating system gives no random bytes.
    pub(crate) fn park(&self, principal: &Principal, round: u32, mut running: Running) -> Option<u128> {
        running.shared().park();
        let is_large = running.shared().is_large();
        let (reclaim, mut wanted) = oneshot::channel::<oneshot::Sender<Running>>();
        let number = self.place(principal, round, is_large, Held::Call(reclaim))?;
        let (lot, parked_for) = (self.clone(), self.parked_for);
        tokio::spawn(async move {
            let over = tokio::time::sleep(parked_for);
            tokio::pin!(over);
            let mut draining = std::pin::pin!(lot.shutdown.draining());
            let mut ended = false;
            loop {
                tokio::select! {
                    biased;
                    way_back = &mut wanted => {
                        if let Ok(way_back) = way_back {
                            // Nobody waits any more if the request that came was itself given up.
                            let _ = way_back.send(running);
                        }
                        break;
                    }
                    () = &mut over => break,
                    () = &mut draining => break,
                    () = std::future::poll_fn(|cx| running.poll_parked(cx)), if !ended => ended = true,
                }
            }
            lot.forget(number);
        });
        Some(number)
    }

    /// Parks a continuation that is too large to travel.
    pub(crate) fn park_bytes(&self, principal: &Principal, round: u32, bytes: Bytes) -> Option<u128> {
        let (alive, gone) = oneshot::channel::<()>();
        let number = self.place(principal, round, false, Held::Bytes(bytes, alive))?;
        let (lot, parked_for) = (self.clone(), self.parked_for);
        tokio::spawn(async move {
            tokio::select! {
                _ = gone => return,
                () = tokio::time::sleep(parked_for) => {}
                () = lot.shutdown.draining() => {}
            }
            lot.forget(number);
        });
        Some(number)
    }

    /// Takes a call out, if it is that principal's and in that round. Each round can be taken once.
    pub(crate) async fn reclaim(&self, number: u128, principal: &Principal, round: u32) -> Option<Reclaimed> {
        let held = {
            let mut places = self.lock();
            let place = places.by_number.get(&number)?;
            if place.principal != *principal || place.round != round {
                return None;
            }
            places.by_number.remove(&number)?.held
        };
        match held {
            Held::Bytes(bytes, _) => Some(Reclaimed::Bytes(bytes)),
            Held::Call(reclaim) => {
                let (way_back, running) = oneshot::channel();
                reclaim.send(way_back).ok()?;
                running.await.ok().map(Reclaimed::Call)
            }
        }
    }

    /// Returns how many calls are parked.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_number.len()
    }

    /// Ends the oldest call that holds a large request, if there is one.
    pub(crate) fn end_oldest_large(&self) {
        let place = remove_oldest(&mut self.lock(), |place| place.is_large);
        drop(place);
    }

    fn place(&self, principal: &Principal, round: u32, is_large: bool, held: Held) -> Option<u128> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let number = u128::from_le_bytes(bytes);
        let mut places = self.lock();
        places.arrivals += 1;
        let place = Place { arrival: places.arrivals, principal: principal.clone(), round, is_large, held };
        places.by_number.insert(number, place);
        let evicted = self.make_room(&mut places, principal);
        drop(places);
        drop(evicted);
        Some(number)
    }

    /// Removes the oldest places until the caps hold; the newest is never refused.
    fn make_room(&self, places: &mut Places, principal: &Principal) -> Vec<Place> {
        let mut evicted = Vec::new();
        if matches!(principal, Principal::Named(_)) {
            let of_principal =
                places.by_number.values().filter(|place| place.principal == *principal).count();
            if of_principal > self.most_per_principal {
                evicted.extend(remove_oldest(places, |place| place.principal == *principal));
            }
        }
        if places.by_number.len() > self.most {
            evicted.extend(remove_oldest(places, |_| true));
        }
        evicted
    }

    fn forget(&self, number: u128) {
        let place = self.lock().by_number.remove(&number);
        drop(place);
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock()
    }
}

fn remove_oldest(places: &mut Places, eligible: impl Fn(&Place) -> bool) -> Option<Place> {
    let candidates = places.by_number.iter().filter(|(_, place)| eligible(place));
    let number = *candidates.min_by_key(|(_, place)| place.arrival)?.0;
    places.by_number.remove(&number)
}
