//! Eight threads on one store: nothing is lost, nothing is left, no bound is passed.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use trunkline_session::{
    EventId, EventLimits, EventReplay, EventStore, MemoryEvents, MemorySessions, Principal, SessionId,
    SessionLimits, SessionStore, StoreError, StreamEvent, StreamId, Timestamp,
};

use super::{answer, now_ready, record};

const THREADS: u64 = 8;
const OPERATIONS: u64 = 10_000;

/// A small generator, so that a failing run can be repeated from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn on_eight_threads(work: impl Fn(u64, Dice) + Sync) {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (work, start) = (&work, &start);
            scope.spawn(move || {
                start.wait();
                work(thread, Dice(0x9e37_79b9_7f4a_7c15 ^ (thread + 1)));
            });
        }
    });
}

#[test]
fn session_store_is_empty_after_eight_concurrent_threads() {
    let limits = SessionLimits {
        total: 200,
        per_principal: 40,
        idle: Duration::from_millis(500),
        absolute: Duration::from_millis(3_000),
        ..SessionLimits::default()
    };
    let store = MemorySessions::new(limits.clone());
    let empty = format!("{store:?}");
    on_eight_threads(|thread, dice| churn_sessions(&store, &limits, thread, dice));

    let end = Timestamp(2 * OPERATIONS).plus(limits.absolute);
    answer(store.expire(end));
    assert_eq!(store.count(), 0);
    assert_eq!(format!("{store:?}"), empty);
}

fn churn_sessions(store: &MemorySessions, limits: &SessionLimits, thread: u64, mut dice: Dice) {
    // Pairs of threads share a principal, so that its count is contended; the last pair is anonymous.
    let own = match thread / 2 {
        3 => Principal::Anonymous,
        pair => Principal::Named(format!("principal {pair}").into()),
    };
    let stranger = Principal::Named("stranger".into());
    let mut ids: Vec<SessionId> = Vec::new();
    for step in 0..OPERATIONS {
        let now = Timestamp(step);
        let picked = ids.get(dice.roll(64) as usize).copied().unwrap_or_else(SessionId::random);
        match dice.roll(10) {
            0..4 => match now_ready(store.create(record(&own, now), now)) {
                Ok(()) | Err(StoreError::Full | StoreError::PrincipalQuotaExceeded) => {}
                Err(error) => unreachable!("{error}"),
            },
            4 => {
                let found = answer(store.get(picked, &own, now));
                assert!(found.is_none_or(|found| found.principal == own));
                assert_eq!(now_ready(store.get(picked, &stranger, now)), Ok(None));
            }
            5 => drop(answer(store.touch(picked, now))),
            6 | 7 => drop(answer(store.delete(picked, &own))),
            8 => drop(answer(store.expire(now))),
            _ => {
                let listed = answer(store.list(&own, now));
                assert!(own == Principal::Anonymous || listed.len() <= limits.per_principal);
                ids = listed.iter().map(|record| record.id).collect();
            }
        }
        assert!(store.count() <= limits.total);
    }
}

#[test]
fn event_store_is_empty_after_eight_concurrent_threads() {
    let limits =
        EventLimits { events: 32, bytes: 4 << 10, age: Duration::from_millis(400), total_bytes: 48 << 10 };
    let store = MemoryEvents::new(limits.clone());
    // Threads share sessions but not streams, as the events of a stream come from one caller.
    let sessions: Vec<_> = (0..4).map(|_| SessionId::random()).collect();
    on_eight_threads(|thread, dice| churn_events(&store, &limits, &sessions, thread, dice));

    for session in sessions {
        store.forget(session);
    }
    assert_eq!((store.count(), store.bytes()), (0, 0));
}

fn churn_events(
    store: &MemoryEvents,
    limits: &EventLimits,
    sessions: &[SessionId],
    thread: u64,
    mut dice: Dice,
) {
    for step in 0..OPERATIONS {
        let now = Timestamp(step);
        let session = *sessions.get(dice.roll(4) as usize).expect("there are four sessions");
        let stream = StreamId(thread * 2 + dice.roll(2));
        match dice.roll(16) {
            0 | 1 if dice.roll(8) == 0 => store.forget(session),
            2 => store.expire(now),
            3..6 => {
                let after = EventId { stream, seq: step.saturating_sub(dice.roll(64)) };
                if let EventReplay::Events(events) = answer(store.replay(session, after, now)) {
                    assert!(events.iter().all(|event| event.id.stream == stream && event.id.seq > after.seq));
                    assert!(
                        events.iter().all(|event| event.data.starts_with(session.to_string().as_bytes()))
                    );
                    assert!(events.is_sorted_by_key(|event| event.id.seq));
                }
            }
            _ => {
                let data = format!("{session}{}", ".".repeat(dice.roll(200) as usize));
                answer(
                    store
                        .append(
                            session,
                            StreamEvent { id: EventId { stream, seq: step }, data: Bytes::from(data) },
                            now,
                        )
                        .wait(),
                );
            }
        }
        assert!(store.bytes() <= limits.total_bytes);
    }
}
