//! The contract of event stores.

use std::time::Duration;

use bytes::Bytes;

use super::expect_ok;
use crate::{EventId, EventLimits, EventReplay, EventStore, SessionId, StreamEvent, StreamId, Timestamp};

/// Checks that an event store does what [`EventStore`] promises.
///
/// `make` returns an empty store with the given limits; it is called many times.
///
/// # Panics
/// The store breaks a promise.
pub fn events<S: EventStore>(make: impl Fn(EventLimits) -> S) {
    let make = &|limits: EventLimits| -> Box<dyn EventStore> { Box::new(make(limits)) };
    replays_what_followed(make);
    replays_only_sent_positions(make);
    isolates_streams_and_sessions(make);
    bounds_the_events_of_a_session(make);
    bounds_the_bytes_of_a_session(make);
    leaves_no_hole_for_a_large_event(make);
    drops_old_events(make);
    forgets_a_session(make);
    bounds_all_sessions_together(make);
}

type MakeEventStore<'a> = &'a dyn Fn(EventLimits) -> Box<dyn EventStore>;

const START: Timestamp = Timestamp(1_700_000_000_000);
const AGE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(1);

fn limits() -> EventLimits {
    EventLimits { events: 8, bytes: 16 << 10, age: AGE, total_bytes: 1 << 20 }
}

fn id(stream: u64, seq: u64) -> EventId {
    EventId { stream: StreamId(stream), seq }
}

/// Creates an event with data that identifies its session.
fn event(session: SessionId, id: EventId) -> StreamEvent {
    StreamEvent { id, data: Bytes::from(format!("{session} {id}")) }
}

fn sized(id: EventId, size: usize) -> StreamEvent {
    StreamEvent { id, data: Bytes::from(vec![b'x'; size]) }
}

fn append(store: &dyn EventStore, session: SessionId, ids: impl IntoIterator<Item = EventId>) {
    for id in ids {
        expect_ok(store.append(session, event(session, id), START).wait());
    }
}

#[track_caller]
fn expect_replay(
    store: &dyn EventStore,
    session: SessionId,
    after: EventId,
    expected: &[EventId],
    why: &str,
) {
    let expected = expected.iter().map(|id| event(session, *id)).collect();
    assert_eq!(expect_ok(store.replay(session, after, START)), EventReplay::Events(expected), "{why}");
}

#[track_caller]
fn expect_gone(store: &dyn EventStore, session: SessionId, after: EventId, why: &str) {
    assert_eq!(expect_ok(store.replay(session, after, START)), EventReplay::Gone, "{why}");
}

fn replays_what_followed(make: MakeEventStore<'_>) {
    let store = make(limits());
    let session = SessionId::random();
    append(&*store, session, [id(1, 0), id(1, 1), id(1, 5)]);
    expect_replay(&*store, session, id(1, 0), &[id(1, 1), id(1, 5)], "later events are replayed in order");
    expect_replay(&*store, session, id(1, 0), &[id(1, 1), id(1, 5)], "a replay can be repeated");
    expect_replay(&*store, session, id(1, 5), &[], "nothing follows the newest event");
    append(&*store, session, [id(1, 6)]);
    expect_replay(&*store, session, id(1, 5), &[id(1, 6)], "an event is replayed as soon as it is appended");

    expect_ok(store.append(session, StreamEvent { id: id(2, 0), data: Bytes::new() }, START).wait());
    expect_replay(&*store, session, id(2, 0), &[], "an event without data is a position to resume from");
    append(&*store, session, [id(2, 1)]);
    expect_replay(&*store, session, id(2, 0), &[id(2, 1)], "what follows an event without data is replayed");
}

fn replays_only_sent_positions(make: MakeEventStore<'_>) {
    let store = make(limits());
    let session = SessionId::random();
    expect_gone(&*store, session, id(1, 0), "an empty store knows no position");
    append(&*store, session, [id(1, 1), id(1, 3)]);
    for unknown in [id(1, 0), id(1, 2), id(1, 4), id(2, 1), id(0, 1)] {
        expect_gone(
            &*store,
            session,
            unknown,
            "a position that was never sent is gone, not a place to guess from",
        );
    }
    expect_gone(&*store, SessionId::random(), id(1, 1), "a position belongs to its session");
}

fn isolates_streams_and_sessions(make: MakeEventStore<'_>) {
    let store = make(limits());
    let sessions = [SessionId::random(), SessionId::random()];
    for seq in 0..3 {
        for stream in [1, 2] {
            for session in sessions {
                append(&*store, session, [id(stream, seq)]);
            }
        }
    }
    for session in sessions {
        for stream in [1, 2] {
            let later = [id(stream, 1), id(stream, 2)];
            expect_replay(
                &*store,
                session,
                id(stream, 0),
                &later,
                "only the events of that stream and session are replayed",
            );
        }
    }
}

fn bounds_the_events_of_a_session(make: MakeEventStore<'_>) {
    let store = make(limits());
    let (busy, quiet) = (SessionId::random(), SessionId::random());
    append(&*store, quiet, [id(1, 0), id(1, 1)]);
    append(&*store, busy, (0..12).map(|seq| id(seq % 2, seq)));
    for dropped in 0..4 {
        expect_gone(
            &*store,
            busy,
            id(dropped % 2, dropped),
            "the oldest events of a session go when it has too many",
        );
    }
    expect_replay(&*store, busy, id(0, 4), &[id(0, 6), id(0, 8), id(0, 10)], "the newest events stay");
    expect_replay(&*store, busy, id(1, 9), &[id(1, 11)], "the newest events of each stream stay");
    expect_replay(&*store, quiet, id(1, 0), &[id(1, 1)], "one session's events do not push out another's");
}

fn bounds_the_bytes_of_a_session(make: MakeEventStore<'_>) {
    let store = make(limits());
    let session = SessionId::random();
    let half = limits().bytes / 2;
    for seq in 0..3 {
        expect_ok(store.append(session, sized(id(1, seq), half), START).wait());
    }
    expect_gone(&*store, session, id(1, 0), "the oldest events of a session go when it has too many bytes");
    let expected = EventReplay::Events(vec![sized(id(1, 2), half)]);
    assert_eq!(expect_ok(store.replay(session, id(1, 1), START)), expected, "what fits into the bytes stays");
    expect_ok(store.append(session, sized(id(1, 3), limits().bytes), START).wait());
    expect_gone(&*store, session, id(1, 2), "an event that takes all bytes pushes out all others");
    expect_replay(&*store, session, id(1, 3), &[], "an event that takes all bytes is kept");
}

fn leaves_no_hole_for_a_large_event(make: MakeEventStore<'_>) {
    let store = make(limits());
    let session = SessionId::random();
    append(&*store, session, [id(1, 0), id(1, 1)]);
    expect_ok(store.append(session, sized(id(1, 2), limits().bytes + 1), START).wait());
    append(&*store, session, [id(1, 3), id(1, 4)]);
    for before in [id(1, 0), id(1, 1), id(1, 2)] {
        expect_gone(&*store, session, before, "a replay never skips an event that was too large to keep");
    }
    expect_replay(&*store, session, id(1, 3), &[id(1, 4)], "a stream can be resumed after a large event");
}

fn drops_old_events(make: MakeEventStore<'_>) {
    let store = make(limits());
    let session = SessionId::random();
    let later = START.plus(AGE / 2);
    append(&*store, session, [id(1, 0)]);
    expect_ok(store.append(session, event(session, id(1, 1)), later).wait());
    expect_ok(store.append(session, event(session, id(1, 2)), later).wait());
    for sweep in [false, true] {
        if sweep {
            store.expire(START.plus(AGE));
        }
        let newest = || EventReplay::Events(vec![event(session, id(1, 2))]);
        let old = expect_ok(store.replay(session, id(1, 0), START.plus(AGE)));
        assert_eq!(old, EventReplay::Gone, "a position is gone at its age (swept: {sweep})");
        let young = expect_ok(store.replay(session, id(1, 1), later.plus(AGE - MOMENT)));
        assert_eq!(young, newest(), "a position lasts until its age (swept: {sweep})");
    }
    let old = expect_ok(store.replay(session, id(1, 1), later.plus(AGE)));
    assert_eq!(old, EventReplay::Gone, "every event has its own age");
}

fn forgets_a_session(make: MakeEventStore<'_>) {
    let store = make(limits());
    let (session, other) = (SessionId::random(), SessionId::random());
    for session in [session, other] {
        append(&*store, session, [id(1, 0), id(2, 0), id(1, 1)]);
    }
    store.forget(session);
    for known in [id(1, 0), id(2, 0), id(1, 1)] {
        expect_gone(&*store, session, known, "a forgotten session has no positions");
    }
    expect_replay(&*store, other, id(1, 0), &[id(1, 1)], "other sessions stay");
}

fn bounds_all_sessions_together(make: MakeEventStore<'_>) {
    let limits = EventLimits { total_bytes: 64 << 10, ..limits() };
    let store = make(limits.clone());
    let size = 4 << 10;
    let sessions: Vec<_> = (0..64).map(|_| SessionId::random()).collect();
    for (at, session) in (0..).zip(&sessions) {
        let now = START.plus(MOMENT * at);
        expect_ok(store.append(*session, sized(id(1, 0), 0), now).wait());
        expect_ok(store.append(*session, sized(id(1, 1), size), now).wait());
    }
    let kept: Vec<_> = sessions
        .iter()
        .map(|session| expect_ok(store.replay(*session, id(1, 0), START.plus(MOMENT * 64))))
        .map(|replay| replay == EventReplay::Events(vec![sized(id(1, 1), size)]))
        .collect();
    let count = kept.iter().filter(|kept| **kept).count();
    assert!(count * size <= limits.total_bytes, "all sessions together stay within the total");
    assert!(count >= 4, "a store makes use of the room it has");
    assert!(kept.is_sorted(), "the sessions with the oldest events lose them first");
}
