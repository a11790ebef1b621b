use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use trunkline_session::{
    BoxFuture, EventId, EventLimits, EventReplay, EventStore, LoggedEvent, OutboxClaim, ProcessId, RowKind,
    SessionId, StoreError, StoreReply, StreamEvent, Timestamp,
};

use crate::append_queue::{AppendQueue, QueuedWrites};
use crate::clock::milliseconds;
use crate::scripts::{EVENTS_APPEND, EVENTS_CLAIM, EVENTS_FORGET, EVENTS_REPLAY, ScriptCall};
use crate::store::{RedisCore, hexadecimal, run_on_store};
use crate::stored_event::{StoredEvent, position};

/// What an event counts in [`EventLimits::total_bytes`] besides its data: its place in a list, its times and its seal.
const EVENT_COST: usize = 192;

/// What a session with events counts: its list and its places in four indexes.
const SESSION_COST: usize = 512;

/// How long a claim is kept that is not renewed: longer than a session lives by default. Without one, any process appends.
const CLAIM_AGE: Duration = Duration::from_secs(26 * 60 * 60);

/// The events in Redis. An append is done when Redis has the event; all appends during one round trip share the next one.
#[derive(Clone)]
pub struct RedisEvents {
    queue: Arc<AppendQueue<EventWrites>>,
}

struct EventWrites {
    core: Arc<RedisCore>,
    limits: EventLimits,
}

enum EventWrite {
    Append { session: SessionId, event: StreamEvent, fence: Option<u64>, now: Timestamp },
    Forget(SessionId),
}

impl RedisEvents {
    pub(crate) fn new(core: Arc<RedisCore>, limits: EventLimits) -> Self {
        let runtime = core.link.runtime().clone();
        Self { queue: Arc::new(AppendQueue::new(EventWrites { core, limits }, runtime)) }
    }
}

impl EventWrites {
    /// Begins a call of a script on the events of a session. Its partition is in one slot.
    fn call(
        &self,
        script: &'static std::sync::LazyLock<redis::Script>,
        session: SessionId,
        now: Timestamp,
    ) -> ScriptCall {
        let key = session.row_key();
        let partition = u128::from_be_bytes(key) % u128::from(self.core.header().partitions);
        let base = format!("{{{}:events{partition}}}", self.core.prefix);
        let list = format!("{base}:{}", hexadecimal(key));
        let shared = ["order", "last", "sizes", "totals"].map(|name| format!("{base}:{name}"));
        let claim = format!("{base}:claim:{}", hexadecimal(key));
        let keys: Vec<String> = std::iter::once(list).chain(shared).chain([claim]).collect();
        self.core.timed(ScriptCall::new(script, &keys), now).arg(&key).arg(EVENT_COST).arg(SESSION_COST)
    }

    async fn claim(
        &self,
        session: SessionId,
        process: ProcessId,
        now: Timestamp,
    ) -> Result<OutboxClaim, StoreError> {
        let call = self
            .call(&EVENTS_CLAIM, session, now)
            .arg(process.to_string())
            .arg(&random_token()?)
            .arg(milliseconds(CLAIM_AGE));
        let (fence, previous): (u64, String) = self.core.link.call(&call).await?;
        Ok(OutboxClaim { fence, previous: ProcessId::parse(&previous) })
    }

    /// Stores events of one session, in their order.
    async fn append(
        &self,
        session: SessionId,
        events: &[(StreamEvent, Timestamp)],
        fence: Option<u64>,
    ) -> Result<(), StoreError> {
        let now = events.iter().map(|(_, now)| *now).max().unwrap_or_default();
        let token = random_token()?;
        let partitions = self.core.header().partitions as usize;
        let mut call = self
            .call(&EVENTS_APPEND, session, now)
            .arg(&token)
            .arg(milliseconds(self.limits.age))
            .arg(self.limits.events)
            .arg(self.limits.bytes)
            .arg(self.limits.total_bytes / partitions.max(1))
            .arg(fence.map_or_else(String::new, |fence| fence.to_string()));
        for (event, appended_at) in events {
            let length = event.data.len();
            let position = position(event.id);
            let is_too_large = length > self.limits.bytes;
            let sealed = if is_too_large {
                // It is not stored, and costs the stream its earlier events.
                Vec::new()
            } else {
                let logged = LoggedEvent { session, event: event.clone(), appended_at: *appended_at };
                self.core.seal(RowKind::Event, &binding(session, &position), &logged.to_bytes())?
            };
            call = call.arg(&position).arg(length).arg(sealed);
        }
        match self.core.link.call::<u8>(&call).await? {
            2 => Err(StoreError::ClaimLost),
            _ => Ok(()),
        }
    }

    async fn forget(&self, session: SessionId) -> Result<(), StoreError> {
        let call = self.call(&EVENTS_FORGET, session, Timestamp(0));
        self.core.link.call::<u8>(&call).await.map(drop)
    }

    /// Sends the writes of one session, in their order.
    async fn send_of_session(
        &self,
        writes: Vec<(usize, EventWrite)>,
    ) -> Vec<(usize, Result<(), StoreError>)> {
        let mut outcomes = Vec::new();
        let (mut places, mut events) = (Vec::new(), Vec::new());
        let mut writes = writes.into_iter().peekable();
        while let Some((place, write)) = writes.next() {
            let (session, fence) = match write {
                EventWrite::Append { session, event, fence, now } => {
                    places.push(place);
                    events.push((event, now));
                    (session, fence)
                }
                EventWrite::Forget(session) => {
                    outcomes.push((place, self.forget(session).await));
                    continue;
                }
            };
            let goes_on =
                matches!(writes.peek(), Some((_, EventWrite::Append { fence: next, .. })) if *next == fence);
            if !goes_on {
                let outcome = self.append(session, &std::mem::take(&mut events), fence).await;
                outcomes
                    .extend(std::mem::take(&mut places).into_iter().map(|place| (place, outcome.clone())));
            }
        }
        outcomes
    }

    async fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> Result<EventReplay, StoreError> {
        let call = self.call(&EVENTS_REPLAY, session, now);
        let (now, entries): (u64, Vec<Vec<u8>>) = self.core.link.call(&call).await?;
        let mut entries = entries
            .iter()
            .map(Vec::as_slice)
            .filter_map(StoredEvent::parse)
            .skip_while(|entry| Timestamp(now).since(entry.appended_at) >= self.limits.age);
        // Events are dropped oldest first, or a stream at a time: while one is stored, so are all later events of its stream.
        if !entries.any(|entry| entry.position == position(after)) {
            return Ok(EventReplay::Gone);
        }
        let mut events = Vec::new();
        for entry in entries.filter(|entry| entry.stream() == after.stream.0.to_le_bytes()) {
            let opened =
                RowKind::Event.open(&self.core.sealer, &binding(session, &entry.position), entry.sealed);
            let Some(opened) = opened else { return Ok(EventReplay::Gone) };
            let logged = LoggedEvent::from_bytes(&opened.plain);
            events.push(logged.map_err(|error| StoreError::Unavailable(error.to_string()))?.event);
        }
        Ok(EventReplay::Events(events))
    }
}

impl QueuedWrites for EventWrites {
    type Write = EventWrite;

    fn cost(write: &EventWrite) -> usize {
        match write {
            EventWrite::Append { event, .. } => EVENT_COST + event.data.len(),
            EventWrite::Forget(_) => EVENT_COST,
        }
    }

    async fn send(&self, writes: Vec<EventWrite>) -> Vec<Result<(), StoreError>> {
        let count = writes.len();
        let mut by_session: HashMap<SessionId, Vec<(usize, EventWrite)>> = HashMap::new();
        for (place, write) in writes.into_iter().enumerate() {
            let (EventWrite::Append { session, .. } | EventWrite::Forget(session)) = write;
            by_session.entry(session).or_default().push((place, write));
        }
        let sent = join_all(by_session.into_values().map(|writes| self.send_of_session(writes))).await;
        let mut outcomes = vec![Ok(()); count];
        for (place, outcome) in sent.into_iter().flatten() {
            if let Some(slot) = outcomes.get_mut(place) {
                *slot = outcome;
            }
        }
        outcomes
    }
}

fn random_token() -> Result<[u8; 8], StoreError> {
    let mut token = [0; 8];
    getrandom::fill(&mut token).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(token)
}

fn binding(session: SessionId, position: &[u8; 16]) -> Vec<u8> {
    [&session.row_key()[..], position].concat()
}

impl EventStore for RedisEvents {
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()> {
        StoreReply::Pending(self.queue.push(EventWrite::Append { session, event, fence: None, now }))
    }

    fn claim(
        &self,
        session: SessionId,
        process: ProcessId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<OutboxClaim, StoreError>> {
        let queue = self.queue.clone();
        run_on_store(&self.queue.writes().core, async move {
            // An earlier claim may be about to be forgotten.
            queue.flush().await;
            queue.writes().claim(session, process, now).await
        })
    }

    fn append_claimed(
        &self,
        session: SessionId,
        event: StreamEvent,
        fence: u64,
        now: Timestamp,
    ) -> StoreReply<()> {
        StoreReply::Pending(self.queue.push(EventWrite::Append { session, event, fence: Some(fence), now }))
    }

    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>> {
        let queue = self.queue.clone();
        run_on_store(&self.queue.writes().core, async move {
            queue.flush().await;
            queue.writes().replay(session, after, now).await
        })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        let queue = self.queue.clone();
        Box::pin(async move { queue.flush().await })
    }

    fn forget(&self, session: SessionId) {
        // Where it fails, the events expire.
        drop(self.queue.push(EventWrite::Forget(session)));
    }
}

impl fmt::Debug for RedisEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEvents").finish_non_exhaustive()
    }
}
