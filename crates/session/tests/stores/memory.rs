//! The contract, and what stores in memory promise beyond it.

use bytes::Bytes;
use trunkline_protocol::RawJson;
use trunkline_session::{
    EventId, EventLimits, EventStore, MemoryBusNetwork, MemoryEvents, MemorySessions, Principal, SessionId,
    SessionLimits, SessionRecord, SessionStore, StoreError, StreamEvent, StreamId, Timestamp, contract,
};

use super::{answer, now_ready, record};

#[test]
fn memory_bus_passes_the_contract_suite() {
    contract::bus(|limits| {
        let network = MemoryBusNetwork::new(limits);
        [(); 3].map(|()| network.join().unwrap())
    });
}

#[test]
fn memory_events_pass_the_contract_suite_of_claims() {
    contract::claims(MemoryEvents::new);
}

#[test]
fn memory_sessions_pass_the_contract_suite() {
    contract::sessions(MemorySessions::new);
}

#[test]
fn memory_events_pass_the_contract_suite() {
    contract::events(MemoryEvents::new);
}

#[test]
fn default_limits_bound_one_principal_but_not_anonymous_servers() {
    let limits = SessionLimits::default();
    let store = MemorySessions::new(limits.clone());
    let now = Timestamp(0);
    let create = |principal: &Principal| now_ready(store.create(record(principal, now), now));
    let ada = Principal::Named("ada".into());
    let of_ada = (0..limits.total).filter(|_| create(&ada).is_ok()).count();
    let of_anyone = (0..limits.total).filter(|_| create(&Principal::Anonymous).is_ok()).count();
    assert_eq!((of_ada, of_anyone), (100, 9_900));
}

#[test]
fn session_records_together_are_bounded_in_bytes() {
    let now = Timestamp(0);
    // Every record has `{}`; a description of ten bytes is twelve in all.
    let store = MemorySessions::new(SessionLimits { total_bytes: 24, ..SessionLimits::default() });
    let small = record(&Principal::Anonymous, now);
    let described = || SessionRecord {
        client: Some(RawJson::parse(r#"{"a":"bc"}"#).unwrap()),
        ..record(&Principal::Anonymous, now)
    };
    let large = described();
    answer(store.create(large.clone(), now));
    answer(store.create(small.clone(), now));
    assert!(matches!(now_ready(store.create(described(), now)), Err(StoreError::Full)));
    // A record may grow as far as there is room, and shrink in any case.
    let grown = SessionRecord { client: large.client.clone(), ..small };
    assert!(answer(store.update(grown.clone(), now)));
    let more = SessionRecord { capabilities: RawJson::parse(r#"{"roots":{}}"#).unwrap(), ..grown.clone() };
    assert!(matches!(now_ready(store.update(more, now)), Err(StoreError::Full)));
    assert!(answer(store.update(SessionRecord { client: None, ..grown }, now)));
    assert!(answer(store.delete(large.id, &Principal::Anonymous)));
    answer(store.create(described(), now));
}

/// A sweep that looked at every session would need ten thousand million looks here, and never come to an end.
#[test]
fn expire_does_not_scan_a_hundred_thousand_sessions() {
    let count = 100_000;
    let limits = SessionLimits { total: count, ..SessionLimits::default() };
    let store = MemorySessions::new(limits.clone());
    for at in 0..count as u64 {
        let now = Timestamp(at);
        answer(store.create(record(&Principal::Anonymous, now), now));
    }
    let first_end = Timestamp(0).plus(limits.idle);
    let expired: usize = (0..count as u64)
        .map(|later| answer(store.expire(Timestamp(first_end.0 + later))).len())
        .inspect(|expired| assert_eq!(*expired, 1, "each sweep finds the one session that is over"))
        .sum();
    assert_eq!((expired, store.count()), (count, 0));
}

#[test]
fn expire_removes_every_expired_session() {
    let limits = SessionLimits::default();
    let store = MemorySessions::new(limits.clone());
    for at in [0, 1] {
        for _ in 0..limits.total / 2 {
            answer(store.create(record(&Principal::Anonymous, Timestamp(at)), Timestamp(at)));
        }
    }
    let end = Timestamp(0).plus(limits.idle);
    assert_eq!(answer(store.expire(end)).len(), limits.total / 2);
    assert_eq!(store.count(), limits.total / 2);
}

#[test]
fn session_store_is_empty_after_random_churn() {
    let limits = SessionLimits::default();
    let store = MemorySessions::new(limits.clone());
    let empty = format!("{store:?}");
    let ada = Principal::Named("ada".into());
    let mut now = Timestamp(0);
    for round in 0..9_000 {
        let own = record(&ada, now);
        answer(store.create(own.clone(), now));
        if round % 3 > 0 {
            // The sweep comes when the session would have ended had it not been used, and so looks at it once more.
            answer(store.touch(own.id, Timestamp(now.0 + 1)));
            now = now.plus(limits.idle);
            assert_eq!(answer(store.expire(now)), []);
        }
        if round % 3 == 1 {
            now = now.plus(limits.idle);
            assert_eq!(answer(store.expire(now)), [own.id]);
        } else {
            assert!(answer(store.delete(own.id, &ada)));
        }
        assert_eq!(format!("{store:?}"), empty);
    }
}

#[test]
fn debug_output_of_a_session_store_shows_no_contents() {
    let sessions = MemorySessions::new(SessionLimits::default());
    let events = MemoryEvents::new(EventLimits::default());
    let own = record(&Principal::Named("sentinel".into()), Timestamp(0));
    let event = StreamEvent { id: position(1, 1), data: Bytes::from_static(b"sentinel") };
    answer(events.append(own.id, event, Timestamp(0)).wait());
    let id = own.id.to_string();
    answer(sessions.create(own, Timestamp(0)));
    let output = format!("{sessions:?} {events:?}");
    assert!(!output.contains("sentinel") && !output.contains(&id), "{output}");
}

#[test]
fn rejected_events_use_no_memory() {
    let session = SessionId::random();
    for limits in [
        EventLimits { events: 0, ..EventLimits::default() },
        EventLimits { bytes: 0, ..EventLimits::default() },
        EventLimits { total_bytes: 0, ..EventLimits::default() },
    ] {
        let store = MemoryEvents::new(limits);
        answer(
            store
                .append(
                    session,
                    StreamEvent { id: position(1, 1), data: Bytes::from_static(b"x") },
                    Timestamp(0),
                )
                .wait(),
        );
        assert_eq!((store.count(), store.bytes()), (0, 0));
    }
}

#[test]
fn oversized_event_disables_replay_of_its_own_stream_only() {
    let limits = EventLimits::default();
    let store = MemoryEvents::new(limits.clone());
    let session = SessionId::random();
    for stream in [1, 2] {
        answer(
            store
                .append(session, StreamEvent { id: position(stream, 0), data: Bytes::new() }, Timestamp(0))
                .wait(),
        );
    }
    let large = Bytes::from(vec![b'x'; limits.bytes + 1]);
    answer(store.append(session, StreamEvent { id: position(1, 1), data: large }, Timestamp(0)).wait());
    assert_eq!(store.count(), 1);
}

#[test]
fn old_events_are_freed_by_expire_and_by_the_appends_of_other_sessions() {
    let limits = EventLimits { events: 3_000, ..EventLimits::default() };
    let late = Timestamp(0).plus(limits.age);
    let filled = || {
        let store = MemoryEvents::new(limits.clone());
        let session = SessionId::random();
        for seq in 0..2_500 {
            answer(
                store
                    .append(session, StreamEvent { id: position(1, seq), data: Bytes::new() }, Timestamp(0))
                    .wait(),
            );
        }
        assert_eq!(store.count(), 2_500);
        store
    };
    let store = filled();
    store.expire(late);
    assert_eq!((store.count(), store.bytes()), (0, 0));

    let store = filled();
    let other = SessionId::random();
    for seq in 0..200 {
        answer(store.append(other, StreamEvent { id: position(1, seq), data: Bytes::new() }, late).wait());
    }
    assert_eq!(store.count(), 200);
}

fn position(stream: u64, seq: u64) -> EventId {
    EventId { stream: StreamId(stream), seq }
}
