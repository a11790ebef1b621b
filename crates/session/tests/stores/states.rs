//! State bags: the contract for stored ones, and what live ones promise.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use trunkline_session::{
    LiveStates, MemoryStates, Principal, StateHandle, StateLifetime, StateLimits, Timestamp, contract,
};

const NOW: Timestamp = Timestamp(1_000_000);

#[test]
fn memory_states_pass_the_contract_suite() {
    contract::states(MemoryStates::new);
}

#[test]
fn live_value_is_returned_only_to_its_owner_and_dropped_once() {
    let bags = LiveStates::new(StateLimits::default());
    let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
    let handle = bags.create(&ann, StateLifetime::Idle, Arc::new(7_u32), NOW);
    let value = bags.get(handle, &ann, NOW).unwrap();
    assert_eq!(value.downcast_ref::<u32>(), Some(&7));
    assert!(value.downcast_ref::<String>().is_none());
    for other in [&bob, &Principal::Anonymous, &Principal::Process] {
        assert!(bags.get(handle, other, NOW).is_none());
        assert!(!bags.delete(handle, other));
    }
    assert!(bags.get(StateHandle::random(), &ann, NOW).is_none());
    assert!(bags.delete(handle, &ann) && !bags.delete(handle, &ann));
    assert_eq!(bags.count(), 0);
    let kept = bags.create(&ann, StateLifetime::Session, Arc::new(()), NOW);
    bags.expire(NOW.plus(StateLimits::default().idle));
    assert_eq!(bags.count(), 1, "a session's bag waits for its end");
    bags.forget(kept);
    assert_eq!(bags.count(), 0);
}

/// Uses the table when it is dropped, like a value with a `Drop` that removes others.
struct Nosy(Arc<LiveStates>, Arc<AtomicUsize>);

impl Drop for Nosy {
    fn drop(&mut self) {
        self.0.count();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn removed_live_values_are_dropped_outside_the_lock() {
    let limits = StateLimits { total: 4, ..StateLimits::default() };
    let bags = Arc::new(LiveStates::new(limits));
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let nosy = Nosy(bags.clone(), dropped.clone());
        bags.create(&Principal::Anonymous, StateLifetime::Idle, Arc::new(nosy), NOW);
    }
    assert_eq!((bags.count(), dropped.load(Ordering::SeqCst)), (4, 6));
    bags.expire(NOW.plus(StateLimits::default().absolute));
    assert_eq!((bags.count(), dropped.load(Ordering::SeqCst)), (0, 10));
}

#[test]
fn live_states_without_expire_calls_stay_bounded() {
    let limits = StateLimits::default();
    let bags = LiveStates::new(limits.clone());
    for hour in 0..100 {
        let now = NOW.plus(limits.idle * hour);
        for _ in 0..5 {
            bags.create(&Principal::Anonymous, StateLifetime::Idle, Arc::new(()), now);
        }
        assert!(bags.count() <= 10, "what is over goes with what comes: {}", bags.count());
    }
}

#[test]
fn live_states_are_empty_after_eight_concurrent_threads() {
    let bags = LiveStates::new(StateLimits { total: 64, ..StateLimits::default() });
    thread::scope(|scope| {
        for thread in 0..8 {
            let (bags, owner) = (&bags, Principal::Named(format!("p{}", thread % 3).into()));
            scope.spawn(move || {
                for _ in 0..2_000 {
                    let handle = bags.create(&owner, StateLifetime::Idle, Arc::new(thread), NOW);
                    if let Some(value) = bags.get(handle, &owner, NOW) {
                        assert_eq!(value.downcast_ref::<i32>(), Some(&thread));
                    }
                    bags.delete(handle, &owner);
                }
            });
        }
    });
    assert_eq!(format!("{bags:?}"), "LiveStates { bags: 0, .. }");
}

#[test]
fn debug_output_of_state_stores_shows_no_contents() {
    let bags = LiveStates::new(StateLimits::default());
    bags.create(&Principal::Named("sentinel".into()), StateLifetime::Idle, Arc::new("sentinel"), NOW);
    let states = MemoryStates::new(StateLimits::default());
    assert!(!format!("{bags:?} {states:?}").contains("sentinel"));
}
