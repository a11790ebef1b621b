//! The contract of state stores.

use std::time::Duration;

use trunkline_protocol::RawJson;

use super::{block_on, expect_ok};
use crate::{
    Principal, ReplaceOutcome, StateHandle, StateLifetime, StateLimits, StateRecord, StateStore, StoreError,
    StoredState, Timestamp,
};

/// Checks that a state store does what [`StateStore`] promises.
///
/// `make` returns an empty store with the given limits; it is called many times.
///
/// # Panics
/// The store breaks a promise.
pub fn states<S: StateStore>(make: impl Fn(StateLimits) -> S) {
    let make = &|| -> Box<dyn StateStore> { Box::new(make(limits())) };
    returns_what_was_stored(make);
    returns_state_only_to_owner(make);
    replaces_only_expected_version(make);
    rejects_oversized_values(make);
    expires_only_idle_state(make);
    expires_at_absolute_age(make);
    evicts_least_recently_used(make);
}

type MakeStateStore<'a> = &'a dyn Fn() -> Box<dyn StateStore>;

const START: Timestamp = Timestamp(1_700_000_000_000);
const IDLE: Duration = Duration::from_secs(60);
const ABSOLUTE: Duration = Duration::from_secs(600);
const MOMENT: Duration = Duration::from_millis(1);

fn limits() -> StateLimits {
    StateLimits { total: 6, per_principal: 3, bytes: 64, idle: IDLE, absolute: ABSOLUTE }
}

fn named(name: &str) -> Principal {
    Principal::Named(name.into())
}

fn created(store: &dyn StateStore, principal: &Principal, text: &str, now: Timestamp) -> StateHandle {
    let handle = StateHandle::random();
    let value = RawJson::from_text(text);
    let record = StateRecord { handle, principal: principal.clone(), lifetime: StateLifetime::Idle, value };
    expect_ok(store.create(record, now));
    handle
}

fn has(store: &dyn StateStore, handle: StateHandle, principal: &Principal, now: Timestamp) -> bool {
    expect_ok(store.get(handle, principal, now)).is_some()
}

fn returns_what_was_stored(make: MakeStateStore<'_>) {
    let store = make();
    let ada = named("ada");
    let handle = created(&*store, &ada, "one \" \u{1f310}", START);
    let found = expect_ok(store.get(handle, &ada, START));
    let expected = StoredState { value: RawJson::from_text("one \" \u{1f310}"), version: 0 };
    assert_eq!(found, Some(expected), "a bag comes back as it was stored");
    assert!(!has(&*store, StateHandle::random(), &ada, START), "an unknown handle has no bag");
    let again =
        StateRecord { handle, principal: ada.clone(), lifetime: StateLifetime::Idle, value: RawJson::NULL };
    assert_eq!(block_on(store.create(again, START)), Err(StoreError::Duplicate), "a handle has one bag");
    store.forget(handle);
    assert!(!has(&*store, handle, &ada, START), "a forgotten bag is gone");
    assert_eq!(store.count(), 0, "a forgotten bag takes up no room");
}

fn returns_state_only_to_owner(make: MakeStateStore<'_>) {
    let kinds =
        [Principal::Anonymous, Principal::Process, named("ada"), named("anonymous"), named("process")];
    let store = make();
    for owner in &kinds {
        let handle = created(&*store, owner, "own", START);
        for other in kinds.iter().filter(|other| *other != owner) {
            assert!(!has(&*store, handle, other, START), "a bag of {owner:?} is not given to {other:?}");
            let replaced = expect_ok(store.replace(handle, other, 0, RawJson::NULL, START));
            assert_eq!(replaced, ReplaceOutcome::Missing, "a bag of {owner:?} is not changed by {other:?}");
        }
        assert!(has(&*store, handle, owner, START), "a bag is given to {owner:?} who made it");
    }
}

fn replaces_only_expected_version(make: MakeStateStore<'_>) {
    let store = make();
    let ada = named("ada");
    let handle = created(&*store, &ada, "zero", START);
    for (expected, text, outcome) in [
        (1, "early", ReplaceOutcome::VersionMismatch),
        (0, "one", ReplaceOutcome::Done),
        (0, "late", ReplaceOutcome::VersionMismatch),
        (1, "two", ReplaceOutcome::Done),
    ] {
        let replaced = expect_ok(store.replace(handle, &ada, expected, RawJson::from_text(text), START));
        assert_eq!(replaced, outcome, "replacing version {expected} by {text:?}");
    }
    let found = expect_ok(store.get(handle, &ada, START));
    let expected = StoredState { value: RawJson::from_text("two"), version: 2 };
    assert_eq!(found, Some(expected), "a bag holds what replaced its value last");
    let unknown = expect_ok(store.replace(StateHandle::random(), &ada, 0, RawJson::NULL, START));
    assert_eq!(unknown, ReplaceOutcome::Missing, "replacing does not make a bag");
}

fn rejects_oversized_values(make: MakeStateStore<'_>) {
    let store = make();
    let ada = named("ada");
    let large = RawJson::from_text(&"x".repeat(limits().bytes));
    let record = StateRecord {
        handle: StateHandle::random(),
        principal: ada.clone(),
        lifetime: StateLifetime::Idle,
        value: large.clone(),
    };
    assert_eq!(block_on(store.create(record, START)), Err(StoreError::TooLarge), "a large bag is refused");
    let handle = created(&*store, &ada, "small", START);
    let replaced = block_on(store.replace(handle, &ada, 0, large, START));
    assert_eq!(replaced, Err(StoreError::TooLarge), "a large value is refused");
    let found = expect_ok(store.get(handle, &ada, START));
    assert_eq!(found.map(|found| found.version), Some(0), "a refused value changes nothing");
}

fn expires_only_idle_state(make: MakeStateStore<'_>) {
    let store = make();
    let ada = named("ada");
    let (used, idle) = (created(&*store, &ada, "used", START), created(&*store, &ada, "idle", START));
    let kept = StateHandle::random();
    let lifetime = StateLifetime::Session;
    let record = StateRecord { handle: kept, principal: ada.clone(), lifetime, value: RawJson::NULL };
    expect_ok(store.create(record, START));
    let almost = START.plus(IDLE - MOMENT);
    assert!(has(&*store, used, &ada, almost), "a bag lives until its limit");
    let end = START.plus(IDLE);
    assert!(!has(&*store, idle, &ada, end), "an idle bag is over before it is swept");
    let replaced = expect_ok(store.replace(idle, &ada, 0, RawJson::NULL, end));
    assert_eq!(replaced, ReplaceOutcome::Missing, "nothing revives a bag");
    assert!(has(&*store, used, &ada, end), "use starts the idle clock again");
    expect_ok(store.expire(end));
    assert_eq!(store.count(), 2, "exactly the idle bag expires");
    expect_ok(store.expire(START.plus(IDLE * 4)));
    assert_eq!(store.count(), 1, "a bag that was used expires later");
    assert!(has(&*store, kept, &ada, START.plus(IDLE * 4)), "a session's bag does not expire by idleness");
}

fn expires_at_absolute_age(make: MakeStateStore<'_>) {
    let store = make();
    let ada = named("ada");
    let own = created(&*store, &ada, "own", START);
    let kept = StateHandle::random();
    let lifetime = StateLifetime::Session;
    let record = StateRecord { handle: kept, principal: ada.clone(), lifetime, value: RawJson::NULL };
    expect_ok(store.create(record, START));
    let mut now = START;
    while now.plus(IDLE / 2) < START.plus(ABSOLUTE) {
        now = now.plus(IDLE / 2);
        assert!(has(&*store, own, &ada, now), "a bag that is used lives to its absolute age");
    }
    let end = START.plus(ABSOLUTE);
    for handle in [own, kept] {
        assert!(!has(&*store, handle, &ada, end), "use does not carry a bag past its absolute age");
    }
    expect_ok(store.expire(end.plus(IDLE)));
    assert_eq!(store.count(), 0, "a bag expires after its absolute age");
}

fn evicts_least_recently_used(make: MakeStateStore<'_>) {
    let store = make();
    let (ada, eve) = (named("ada"), named("eve"));
    let of_eve = created(&*store, &eve, "eve's", START);
    let own: Vec<_> = (0..limits().per_principal).map(|_| created(&*store, &ada, "own", START)).collect();
    let [first, second, ..] = own.as_slice() else { return };
    assert!(has(&*store, *first, &ada, START), "a principal has as many bags as it may");
    created(&*store, &ada, "one more", START);
    assert!(has(&*store, *first, &ada, START), "a bag that was used stays");
    assert!(!has(&*store, *second, &ada, START), "the least recently used of the principal's own goes");
    assert!(has(&*store, of_eve, &eve, START), "another principal's bag stays, however old it is");
    for _ in 0..limits().total {
        created(&*store, &Principal::Anonymous, "anyone's", START);
    }
    assert_eq!(store.count(), limits().total, "there are never more bags than there may be");
    assert!(!has(&*store, of_eve, &eve, START), "beyond the total the least recently used of all goes");
}
