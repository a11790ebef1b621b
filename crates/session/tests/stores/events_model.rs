//! Random operations on the event store, compared with a list of everything that was ever sent.

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use trunkline_session::{
    EventId, EventLimits, EventReplay, EventStore, MemoryEvents, SessionId, StreamEvent, StreamId, Timestamp,
};

use super::answer;

const SESSIONS: usize = 3;

fn limits(total_bytes: usize) -> EventLimits {
    EventLimits { events: 6, bytes: 100, age: Duration::from_millis(30), total_bytes }
}

#[derive(Clone, Debug)]
enum Op {
    Append { session: usize, stream: u64, gap: u64, size: usize },
    Forget { session: usize },
    Expire,
    Wait { milliseconds: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let (session, stream) = (0..SESSIONS, 0..3_u64);
    // Most events are small; one in ten is larger than a session may keep.
    let size = prop_oneof![9 => 0..60_usize, 1 => 90..120_usize];
    prop_oneof![
        12 => (session.clone(), stream, 1..3_u64, size)
            .prop_map(|(session, stream, gap, size)| Op::Append { session, stream, gap, size }),
        1 => session.prop_map(|session| Op::Forget { session }),
        1 => Just(Op::Expire),
        4 => (0..10_u64).prop_map(|milliseconds| Op::Wait { milliseconds }),
    ]
}

/// The bound across sessions that a run is made with.
#[derive(Clone, Copy)]
enum Total {
    /// It is never reached, so that each session keeps exactly what its own limits allow.
    Ample,
    /// It may cost any session any event, and one that went leaves others of its session more room.
    Short,
}

struct Sent {
    session: usize,
    event: StreamEvent,
    at: Timestamp,
    /// Whether a store without a bound across sessions would still keep the event.
    kept: bool,
    /// Whether the event is too old or was forgotten, so that no store may show it.
    ended: bool,
}

/// The store beside a list of everything that was ever sent.
struct Pair {
    store: MemoryEvents,
    limits: EventLimits,
    ids: [SessionId; SESSIONS],
    sent: Vec<Sent>,
    now: Timestamp,
}

impl Pair {
    fn new(limits: EventLimits) -> Self {
        let ids = [(); SESSIONS].map(|()| SessionId::random());
        Self {
            store: MemoryEvents::new(limits.clone()),
            limits,
            ids,
            sent: Vec::new(),
            now: Timestamp(1_000),
        }
    }

    fn id(&self, session: usize) -> SessionId {
        *self.ids.get(session).expect("operations name sessions that exist")
    }

    fn end_where(&mut self, is_ended: impl Fn(&Sent) -> bool) {
        for sent in self.sent.iter_mut().filter(|sent| is_ended(sent)) {
            (sent.kept, sent.ended) = (false, true);
        }
    }

    fn append(&mut self, session: usize, stream: u64, gap: u64, size: usize) {
        let of_stream = |sent: &&Sent| sent.session == session && sent.event.id.stream.0 == stream;
        let last = self.sent.iter().rev().find(of_stream).map_or(0, |sent| sent.event.id.seq);
        let id = EventId { stream: StreamId(stream), seq: last + gap };
        // The data names the stream and the position of the event, so that the test finds misplaced events.
        let mut data = format!("{session}/{id}:").into_bytes();
        data.resize(size, b'.');
        let event = StreamEvent { id, data: Bytes::from(data) };
        answer(self.store.append(self.id(session), event.clone(), self.now).wait());

        let fits = size <= self.limits.bytes;
        self.sent.push(Sent { session, event, at: self.now, kept: fits, ended: false });
        if !fits {
            self.end_where(|sent| sent.session == session && sent.event.id.stream.0 == stream);
        }
        while self.is_over_limits(session) {
            let oldest = self.sent.iter_mut().find(|sent| sent.kept && sent.session == session);
            oldest.expect("a session over its limits has events").kept = false;
        }
    }

    fn is_over_limits(&self, session: usize) -> bool {
        let own = || self.sent.iter().filter(|sent| sent.kept && sent.session == session);
        own().count() > self.limits.events
            || own().map(|sent| sent.event.data.len()).sum::<usize>() > self.limits.bytes
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Append { session, stream, gap, size } => self.append(session, stream, gap, size),
            Op::Forget { session } => {
                self.store.forget(self.id(session));
                self.end_where(|sent| sent.session == session);
            }
            Op::Expire => self.store.expire(self.now),
            Op::Wait { milliseconds } => self.now = self.now.plus(Duration::from_millis(milliseconds)),
        }
        let (now, age) = (self.now, self.limits.age);
        self.end_where(|sent| now.since(sent.at) >= age);
    }

    /// Returns what a replay after one event must be if that position is still known.
    fn truth(&self, position: &Sent) -> EventReplay {
        let after = position.event.id;
        let followed = |sent: &&Sent| {
            sent.session == position.session
                && sent.event.id.stream == after.stream
                && sent.event.id.seq > after.seq
        };
        EventReplay::Events(self.sent.iter().filter(followed).map(|sent| sent.event.clone()).collect())
    }

    /// Requests a replay from every position that was ever sent, and from the positions between them.
    fn check_replays(&self, total: Total) -> Result<(), TestCaseError> {
        for position in &self.sent {
            let session = self.id(position.session);
            let found = answer(self.store.replay(session, position.event.id, self.now));
            let is_known = match total {
                Total::Ample => position.kept,
                Total::Short => !position.ended && found != EventReplay::Gone,
            };
            let expected = if is_known { self.truth(position) } else { EventReplay::Gone };
            prop_assert_eq!(found, expected, "after {}", position.event.id);
            let between = EventId { seq: position.event.id.seq + 1, ..position.event.id };
            let was_sent = |sent: &Sent| sent.session == position.session && sent.event.id == between;
            if !self.sent.iter().any(was_sent) {
                let found = answer(self.store.replay(session, between, self.now));
                prop_assert_eq!(found, EventReplay::Gone, "{} was never sent", between);
            }
        }
        Ok(())
    }

    fn check_emptied(&mut self) -> Result<(), TestCaseError> {
        for session in 0..SESSIONS {
            self.run(&Op::Forget { session });
        }
        prop_assert_eq!(self.store.count(), 0);
        let empty = MemoryEvents::new(self.limits.clone());
        prop_assert_eq!(format!("{:?}", self.store), format!("{empty:?}"), "nothing is left in any index");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn replay_returns_exactly_the_later_events_of_its_stream(ops in vec(op(), 1..120)) {
        let mut pair = Pair::new(limits(1 << 20));
        for op in &ops {
            pair.run(op);
            pair.check_replays(Total::Ample)?;
        }
        pair.check_emptied()?;
    }

    #[test]
    fn replay_never_mixes_streams_at_the_total_limit(
        ops in vec(op(), 1..120),
        total_bytes in 0..4_000_usize,
    ) {
        let mut pair = Pair::new(limits(total_bytes));
        for op in &ops {
            pair.run(op);
            prop_assert!(pair.store.bytes() <= total_bytes);
            pair.check_replays(Total::Short)?;
        }
        pair.check_emptied()?;
    }
}
