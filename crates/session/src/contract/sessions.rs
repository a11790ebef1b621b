//! The contract of session stores.

use std::collections::BTreeSet;
use std::time::Duration;

use trunkline_protocol::{LoggingLevel, RawJson, Revision};

use super::{block_on, contract_violation, expect_ok};
use crate::{
    Principal, RecordChange, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError, Timestamp,
};

/// Checks that a session store does what [`SessionStore`] promises.
///
/// `make` returns an empty store with the given limits; it is called many times.
///
/// # Panics
/// The store breaks a promise.
pub fn sessions<S: SessionStore>(make: impl Fn(SessionLimits) -> S) {
    let make = &|limits: SessionLimits| -> Box<dyn SessionStore> { Box::new(make(limits)) };
    returns_what_was_stored(make);
    returns_none_for_unknown_ids(make);
    returns_session_only_to_owner(make);
    refuses_a_duplicate(make);
    refuses_a_large_record(make);
    merges_changes(make);
    refreshes_what_has_changed(make);
    touches_several_sessions(make);
    bounds_the_total(make);
    bounds_named_principals_only(make);
    expires_idle_sessions(make);
    use_extends_idle_lifetime(make);
    expires_at_absolute_age(make);
    ignores_a_clock_that_steps_back(make);
    expires_each_session_once(make);
    lists_sessions_of_all_principals(make);
}

type MakeSessionStore<'a> = &'a dyn Fn(SessionLimits) -> Box<dyn SessionStore>;

const START: Timestamp = Timestamp(1_700_000_000_000);
const IDLE: Duration = Duration::from_secs(60);
const ABSOLUTE: Duration = Duration::from_secs(600);
const MOMENT: Duration = Duration::from_millis(1);

fn limits() -> SessionLimits {
    SessionLimits {
        total: 8,
        per_principal: 3,
        record_bytes: 1024,
        subscription_bytes: 64,
        total_bytes: 1 << 20,
        idle: IDLE,
        absolute: ABSOLUTE,
    }
}

fn named(name: &str) -> Principal {
    Principal::Named(name.into())
}

fn record(principal: &Principal) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: principal.clone(),
        revision: Revision::V2025_06_18,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: BTreeSet::new(),
        created: START,
    }
}

fn opened(store: &dyn SessionStore, principal: &Principal, now: Timestamp) -> SessionRecord {
    let record = SessionRecord { created: now, ..record(principal) };
    expect_ok(store.create(record.clone(), now));
    record
}

fn returns_what_was_stored(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let full = SessionRecord {
        capabilities: RawJson::from_text("capabilities \" \u{1f310} \\"),
        client: Some(RawJson::from_text("client")),
        log_level: Some(LoggingLevel::Warning),
        subscriptions: ["file:///a", "x:\n\""].map(str::to_owned).into(),
        ..record(&ada)
    };
    expect_ok(store.create(full.clone(), START));
    let found = expect_ok(store.get(full.id, &ada, START));
    assert_eq!(found.as_ref(), Some(&full), "a session comes back as it was stored");

    let changed = SessionRecord {
        log_level: Some(LoggingLevel::Debug),
        client: None,
        subscriptions: ["file:///b".to_owned()].into(),
        ..full
    };
    assert!(expect_ok(store.update(changed.clone(), START)), "an update finds its session");
    let found = expect_ok(store.get(changed.id, &ada, START));
    assert_eq!(found.as_ref(), Some(&changed), "an update replaces the record");
    assert_eq!(
        expect_ok(store.list(&ada, START)),
        [changed],
        "a principal's sessions are listed as they are stored"
    );
}

fn returns_none_for_unknown_ids(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let unknown = record(&Principal::Anonymous);
    let id = unknown.id;
    assert_eq!(expect_ok(store.get(id, &Principal::Anonymous, START)), None, "an unknown id has no session");
    assert!(!expect_ok(store.touch(id, START)), "an unknown id cannot be touched");
    assert!(!expect_ok(store.update(unknown, START)), "an update does not make a session");
    assert!(!expect_ok(store.delete(id, &Principal::Anonymous)), "an unknown id cannot be deleted");
    assert_eq!(expect_ok(store.expire(START)), [], "nothing expires from an empty store");
    assert_eq!(store.count(), 0, "asking for unknown ids takes up no room");
}

fn returns_session_only_to_owner(make: MakeSessionStore<'_>) {
    let kinds =
        [Principal::Anonymous, Principal::Process, named("ada"), named("anonymous"), named("process")];
    let store = make(limits());
    for owner in &kinds {
        let own = opened(&*store, owner, START);
        for other in kinds.iter().filter(|other| *other != owner) {
            let found = expect_ok(store.get(own.id, other, START));
            assert_eq!(found, None, "a session of {owner:?} is not given to {other:?}");
            let stolen = SessionRecord { principal: other.clone(), ..own.clone() };
            assert!(
                !expect_ok(store.update(stolen, START)),
                "{other:?} cannot update a session of {owner:?}"
            );
            assert!(
                !expect_ok(store.delete(own.id, other)),
                "{other:?} cannot delete a session of {owner:?}"
            );
        }
        assert_eq!(
            expect_ok(store.list(owner, START)),
            [own],
            "{owner:?} sees its own sessions and no others"
        );
    }

    let store = make(limits());
    let own = opened(&*store, &named("ada"), START);
    let late = START.plus(IDLE - MOMENT);
    expect_ok(store.get(own.id, &named("eve"), late));
    expect_ok(store.update(SessionRecord { principal: named("eve"), ..own.clone() }, late));
    let found = expect_ok(store.get(own.id, &named("ada"), START.plus(IDLE)));
    assert_eq!(found, None, "another principal's requests do not keep a session alive");
}

fn refuses_a_duplicate(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let first = opened(&*store, &named("ada"), START);
    let second = SessionRecord { principal: named("eve"), ..first.clone() };
    assert_eq!(block_on(store.create(second, START)), Err(StoreError::Duplicate), "an id has one session");
    let found = expect_ok(store.get(first.id, &named("ada"), START));
    assert_eq!(found, Some(first), "a refused duplicate leaves the first session as it was");
    assert_eq!(expect_ok(store.list(&named("eve"), START)), [], "a refused session is not listed");
}

fn refuses_a_large_record(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let own = opened(&*store, &named("ada"), START);
    let large = || Some(RawJson::from_text(&"x".repeat(limits().record_bytes)));
    let fresh = SessionRecord { client: large(), ..record(&named("ada")) };
    assert_eq!(block_on(store.create(fresh, START)), Err(StoreError::TooLarge), "a large record is refused");
    let update = SessionRecord { client: large(), ..own.clone() };
    assert_eq!(block_on(store.update(update, START)), Err(StoreError::TooLarge), "a large update is refused");
    let watching =
        SessionRecord { subscriptions: ["x".repeat(limits().subscription_bytes + 1)].into(), ..own.clone() };
    let refused = block_on(store.update(watching, START));
    assert_eq!(refused, Err(StoreError::TooLarge), "more subscriptions than the limit are refused");
    assert_eq!(expect_ok(store.list(&named("ada"), START)), [own], "a refused record changes nothing");
}

fn merges_changes(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let own = opened(&*store, &ada, START);
    let subscribe = |uri: &str| RecordChange::Subscribe(uri.to_owned());
    let change = |changes: &[RecordChange]| expect_ok(store.change(own.id, &ada, changes, START));
    change(&[subscribe("x:a"), subscribe("x:b")]);
    change(&[RecordChange::LogLevel(LoggingLevel::Error)]);
    let changed = change(&[RecordChange::Unsubscribe("x:a".to_owned()), subscribe("x:c")]);
    let expected = SessionRecord {
        log_level: Some(LoggingLevel::Error),
        subscriptions: ["x:b", "x:c"].map(str::to_owned).into(),
        ..own.clone()
    };
    assert_eq!(changed.as_ref(), Some(&expected), "a change leaves the others alone");
    assert_eq!(expect_ok(store.get(own.id, &ada, START)), changed, "a change is stored");
    let large = [subscribe(&"x".repeat(limits().subscription_bytes + 1))];
    let refused = block_on(store.change(own.id, &ada, &large, START));
    assert_eq!(refused, Err(StoreError::TooLarge), "a change to more than the limit is refused");
    assert_eq!(expect_ok(store.get(own.id, &ada, START)), changed, "a refused change changes nothing");
    let stolen = expect_ok(store.change(own.id, &named("eve"), &[subscribe("x:e")], START));
    assert_eq!(stolen, None, "another principal changes nothing");
    let late = expect_ok(store.change(own.id, &ada, &[], START.plus(IDLE + store.idle_slack())));
    assert_eq!(late, None, "a change does not revive a session");
}

fn refreshes_what_has_changed(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let own = opened(&*store, &ada, START);
    let refresh = |known| expect_ok(store.refresh(own.id, &ada, known, START));
    let Some(found) = refresh(None) else { contract_violation("a refresh finds its session") };
    assert_eq!(found.record.as_ref(), Some(&own), "a refresh without a known version returns the record");
    if found.version.is_some() {
        let again = refresh(found.version).map(|found| found.record);
        assert_eq!(again, Some(None), "a known record is left out");
    }
    let level = [RecordChange::LogLevel(LoggingLevel::Alert)];
    let changed = expect_ok(store.change(own.id, &ada, &level, START));
    let refreshed = refresh(found.version).and_then(|found| found.record);
    assert_eq!(refreshed, changed, "a changed record is returned whatever is known");
    let other = expect_ok(store.refresh(own.id, &named("eve"), found.version, START));
    assert_eq!(other, None, "a refresh finds the sessions of its principal alone");
}

fn touches_several_sessions(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let kept = [named("ada"), named("eve")].map(|owner| opened(&*store, &owner, START).id);
    let idle = opened(&*store, &named("bob"), START).id;
    let unknown = SessionId::random();
    let later = START.plus(IDLE - MOMENT);
    let missing = expect_ok(store.touch_all(&[kept[0], unknown, kept[1]], later));
    assert_eq!(missing, [unknown], "the sessions that do not exist are returned");
    assert_eq!(expect_ok(store.expire(START.plus(IDLE))), [idle], "each touched session lives on");
}

fn bounds_the_total(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let all: Vec<_> = (0..limits().total).map(|_| opened(&*store, &Principal::Anonymous, START)).collect();
    assert_eq!(store.count(), limits().total, "anonymous sessions are bounded by the total only");
    for principal in [Principal::Anonymous, Principal::Process, named("ada")] {
        let refused = block_on(store.create(record(&principal), START));
        assert_eq!(refused, Err(StoreError::Full), "a full store takes no session of {principal:?}");
    }
    let Some(first) = all.first() else { return };
    assert!(expect_ok(store.delete(first.id, &Principal::Anonymous)), "a session can be deleted");
    assert!(!expect_ok(store.delete(first.id, &Principal::Anonymous)), "a session is deleted once");
    let found = expect_ok(store.get(first.id, &Principal::Anonymous, START));
    assert_eq!(found, None, "a deleted session is gone");
    opened(&*store, &named("ada"), START);
    assert_eq!(store.count(), limits().total, "a deleted session makes room for one");
}

fn bounds_named_principals_only(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let (ada, eve) = (named("ada"), named("eve"));
    let refuses = |why: &str, now| {
        let refused = block_on(store.create(SessionRecord { created: now, ..record(&ada) }, now));
        assert_eq!(refused, Err(StoreError::PrincipalQuotaExceeded), "{why}");
    };
    let own: Vec<_> = (0..limits().per_principal).map(|_| opened(&*store, &ada, START)).collect();
    refuses("a principal has at most so many sessions", START);
    opened(&*store, &eve, START);

    let Some(first) = own.first() else { return };
    expect_ok(store.delete(first.id, &ada));
    expect_ok(store.delete(first.id, &ada));
    opened(&*store, &ada, START);
    refuses("a session deleted twice makes room for one", START);

    let later = START.plus(IDLE);
    assert_eq!(
        expect_ok(store.expire(later)).len(),
        limits().per_principal + 1,
        "every idle session expires"
    );
    for _ in 0..limits().per_principal {
        opened(&*store, &ada, later);
    }
    refuses("expired sessions make room for as many", later);
}

fn expires_idle_sessions(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let own = opened(&*store, &ada, START);
    let end = START.plus(IDLE);
    assert_eq!(
        expect_ok(store.list(&ada, START.plus(IDLE - MOMENT))).len(),
        1,
        "a session lives until its limit"
    );
    assert_eq!(
        expect_ok(store.list(&ada, end)),
        [],
        "an idle session is not listed, and listing does not keep it alive"
    );
    assert_eq!(expect_ok(store.get(own.id, &ada, end)), None, "an idle session is over before it is swept");
    assert!(!expect_ok(store.touch(own.id, end)), "a touch does not revive a session");
    assert!(!expect_ok(store.update(own.clone(), end)), "an update does not revive a session");
    assert_eq!(
        expect_ok(store.expire(end)),
        [own.id],
        "what was done to it after its end has not kept it alive"
    );
}

fn use_extends_idle_lifetime(make: MakeSessionStore<'_>) {
    type SessionUse = fn(&dyn SessionStore, &SessionRecord, Timestamp) -> bool;
    let uses: [(&str, SessionUse); 3] = [
        ("get", |store, own, now| expect_ok(store.get(own.id, &own.principal, now)).is_some()),
        ("touch", |store, own, now| expect_ok(store.touch(own.id, now))),
        ("update", |store, own, now| expect_ok(store.update(own.clone(), now))),
    ];
    for (name, used) in uses {
        let store = make(limits());
        let own = opened(&*store, &named("ada"), START);
        let mut now = START;
        for _ in 0..5 {
            now = now.plus(IDLE - MOMENT);
            assert_eq!(expect_ok(store.expire(now)), [], "a session that is used is never expired");
            assert!(used(&*store, &own, now), "`{name}` finds a session that was used in time");
        }
        assert_eq!(
            expect_ok(store.expire(now.plus(IDLE + store.idle_slack()))),
            [own.id],
            "`{name}` starts the idle clock again, no more"
        );
    }
}

fn expires_at_absolute_age(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let own = opened(&*store, &ada, START);
    let end = START.plus(ABSOLUTE);
    let mut now = START;
    while now.plus(IDLE / 2) < end {
        now = now.plus(IDLE / 2);
        let younger = SessionRecord { created: now, ..own.clone() };
        assert!(expect_ok(store.update(younger, now)), "a session that is used lives to its absolute age");
    }
    let found = expect_ok(store.get(own.id, &ada, now)).map(|found| found.created);
    assert_eq!(found, Some(START), "an update does not make a session younger");
    assert_eq!(
        expect_ok(store.get(own.id, &ada, end)),
        None,
        "use does not carry a session past its absolute age"
    );
    assert_eq!(expect_ok(store.expire(end)), [own.id], "a session expires at its absolute age");
}

fn ignores_a_clock_that_steps_back(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let ada = named("ada");
    let own = opened(&*store, &ada, START.plus(IDLE));
    assert!(expect_ok(store.touch(own.id, START)), "a session from the future can be used");
    let end = START.plus(IDLE * 2);
    let listed = expect_ok(store.list(&ada, START.plus(IDLE * 2 - MOMENT)));
    assert_eq!(listed.len(), 1, "a clock that steps back does not end a session early");
    assert_eq!(expect_ok(store.expire(end)), [own.id], "nor does it prolong the session");
}

fn expires_each_session_once(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let principals = [Principal::Anonymous, Principal::Process, named("ada"), named("eve")];
    let opened_at =
        |now| principals.iter().map(|owner| opened(&*store, owner, now).id).collect::<BTreeSet<_>>();
    let early = opened_at(START);
    let late = opened_at(START.plus(IDLE / 2));
    for (now, expected) in [
        (START.plus(IDLE - MOMENT), BTreeSet::new()),
        (START.plus(IDLE), early),
        (START.plus(IDLE), BTreeSet::new()),
        (START.plus(IDLE * 2), late),
        (START.plus(IDLE * 9), BTreeSet::new()),
    ] {
        let expired = expect_ok(store.expire(now));
        assert_eq!(expired.len(), expected.len(), "a session is reported once");
        assert_eq!(
            expired.into_iter().collect::<BTreeSet<_>>(),
            expected,
            "exactly the sessions that are over expire"
        );
    }
    assert_eq!(store.count(), 0, "expired sessions take up no room");
}

fn lists_sessions_of_all_principals(make: MakeSessionStore<'_>) {
    let store = make(limits());
    let owners = [named("ada"), named("eve"), Principal::Anonymous];
    let mut expected: Vec<_> = owners.iter().map(|owner| opened(&*store, owner, START)).collect();
    expected.sort_by_key(|record| record.id);
    let listed = |most, now| {
        let mut listed = expect_ok(store.list_all(most, now));
        listed.sort_by_key(|record| record.id);
        listed
    };
    assert_eq!(listed(usize::MAX, START), expected, "sessions of all principals are listed");
    assert_eq!(listed(2, START).len(), 2, "no more are listed than requested");
    let end = START.plus(IDLE);
    assert_eq!(listed(usize::MAX, end), [], "listing neither returns expired sessions nor keeps any alive");
}
