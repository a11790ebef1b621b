//! The contract of event stores that several processes share.

use bytes::Bytes;

use super::{block_on, expect_ok};
use crate::{
    EventId, EventLimits, EventReplay, EventStore, ProcessId, SessionId, StoreError, StreamEvent, StreamId,
    Timestamp,
};

const START: Timestamp = Timestamp(1_700_000_000_000);

/// Checks that an event store keeps what it promises of claims.
///
/// `make` returns an empty store with the given limits.
///
/// # Panics
/// The store breaks a promise.
pub fn claims<S: EventStore>(make: impl Fn(EventLimits) -> S) {
    let store = make(EventLimits::default());
    let (session, other) = (SessionId::random(), SessionId::random());
    let [first, second] = [1, 2].map(ProcessId::from_bits);
    let event = |seq| {
        let id = EventId { stream: StreamId(1), seq };
        StreamEvent { id, data: Bytes::from(format!("event {seq}")) }
    };
    let claim = |session, process| expect_ok(store.claim(session, process, START));
    let append =
        |session, seq, fence| block_on(store.append_claimed(session, event(seq), fence, START).wait());

    let begun = claim(session, first);
    assert_eq!(begun.previous, None, "the first claim takes nothing over");
    assert_eq!(append(session, 0, begun.fence), Ok(()), "the owner appends");
    let again = claim(session, first);
    assert_eq!(again.previous, Some(first), "a claim names the owner before it");
    assert_eq!(append(session, 1, again.fence), Ok(()), "the owner appends under its newest claim");
    let taken = claim(session, second);
    assert_eq!(taken.previous, Some(first), "a claim takes over from another process");
    assert!(taken.fence > again.fence, "a later claim has a higher fence");
    for fence in [begun.fence, again.fence] {
        let refused = append(session, 2, fence);
        assert_eq!(refused, Err(StoreError::ClaimLost), "an earlier owner appends nothing");
    }
    assert_eq!(append(session, 2, taken.fence), Ok(()), "the new owner appends");
    let replayed = expect_ok(store.replay(session, event(0).id, START));
    let expected = EventReplay::Events(vec![event(1), event(2)]);
    assert_eq!(replayed, expected, "exactly what was accepted is replayed");
    assert_eq!(claim(other, second).previous, None, "a claim concerns one session");
    store.forget(session);
    assert_eq!(claim(session, second).previous, None, "the claim ends with the events of its session");
}
