mod calls;
mod questions;
mod streams;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::{Id, Level, Raw, Revision};
use trunkline_session::{Principal, SessionId, SessionRecord, StreamId, Timestamp};

use self::questions::Open;
pub(crate) use self::streams::StreamState;
use super::stand::Stand;
use crate::call::{Caller, SessionKeep, Shared};
use crate::change::{Listener, Subscription};
use crate::metrics::process::Present;

/// A session on this node: what its record says, and what is under way in it.
///
/// Idle, it holds empty tables that have allocated nothing.
pub(crate) struct LiveSession {
    record: SessionRecord,
    level: AtomicU8,
    used: AtomicU64,
    told_store: AtomicU64,
    /// The client has said that it is initialized.
    confirmed: AtomicBool,
    keep: Arc<SessionKeep>,
    desk: Mutex<Desk>,
    _present: Present,
}

/// What is under way.
#[derive(Default)]
struct Desk {
    /// The number that was given last, to a question or a stream; none has been given yet if this is `None`.
    number: Option<u64>,
    standing: HashMap<StreamId, Arc<Stand>>,
    ended: bool,
    /// The client sends no more, so that it can answer nothing.
    is_mute: bool,
    questions: HashMap<Id, Open>,
    own_question: Option<Id>,
    calls: HashMap<Id, Arc<Shared>>,
    /// Calls that were cancelled and are not known: perhaps one has begun, and has not entered yet.
    cancelled: VecDeque<Id>,
    streams: HashMap<StreamId, Arc<StreamState>>,
    watch: Option<Arc<Subscription>>,
}

impl Desk {
    /// Returns a number that nothing in the session has.
    ///
    /// They begin anywhere: a session that lives again, here or on another node, does not know those that were given before,
    /// and an answer or a position which comes late must not be taken for one that belongs to something new. The highest
    /// bits stay free.
    fn next_number(&mut self) -> u64 {
        let number = match self.number {
            Some(last) => last + 1,
            None => getrandom::u64().unwrap_or_default() >> 2,
        };
        *self.number.insert(number)
    }
}

impl LiveSession {
    pub(crate) fn new(record: SessionRecord, keep: SessionKeep, now: Timestamp) -> Self {
        let level = record.log_level.unwrap_or(Level::Info);
        Self {
            record,
            level: AtomicU8::new(level as u8),
            used: AtomicU64::new(now.0),
            told_store: AtomicU64::new(now.0),
            confirmed: AtomicBool::new(false),
            keep: Arc::new(keep),
            desk: Mutex::default(),
            _present: Present::session(),
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.record.id
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.record.principal
    }

    pub(crate) fn revision(&self) -> Revision {
        self.record.revision
    }

    /// Returns who is told of changes in it.
    pub(crate) fn listener(&self) -> Listener {
        Listener { principal: self.record.principal.clone(), session: Some(self.record.id), connection: None }
    }

    /// Returns what the session keeps for its calls.
    pub(crate) fn keep(&self) -> &Arc<SessionKeep> {
        &self.keep
    }

    pub(crate) fn created(&self) -> Timestamp {
        self.record.created
    }

    /// Returns the record as it should be stored now.
    pub(crate) fn record(&self) -> SessionRecord {
        SessionRecord { log_level: self.level(), ..self.record.clone() }
    }

    /// Describes the caller of a request of this session.
    pub(crate) fn caller(&self, request: &Id, progress_token: Option<Raw>) -> Caller {
        Caller {
            principal: self.record.principal.clone(),
            revision: self.record.revision,
            capabilities: self.record.capabilities.clone(),
            client: self.record.client.clone(),
            request_id: Some(request.clone()),
            session: Some(self.record.id),
            connection: None,
            bag: Some(self.keep.bags.name()),
            log_level: self.level(),
            progress_token,
            env: self.keep.env.clone(),
        }
    }

    /// Takes note that the client has said that it is initialized.
    pub(crate) fn confirm(&self) {
        self.confirmed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }

    pub(crate) fn level(&self) -> Option<Level> {
        Level::ALL.get(usize::from(self.level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn use_now(&self, now: Timestamp) {
        self.used.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> Timestamp {
        Timestamp(self.used.load(Ordering::Relaxed))
    }

    /// Notes that the store hears now that the session is in use.
    pub(crate) fn tell_store(&self, now: Timestamp) {
        self.told_store.store(now.0, Ordering::Relaxed);
    }

    /// Returns when the store last heard that the session is in use.
    pub(crate) fn told_store(&self) -> Timestamp {
        Timestamp(self.told_store.load(Ordering::Relaxed))
    }

    /// Reports whether a call runs or a stream stands, so that silence does not mean that the client is gone.
    pub(crate) fn is_busy(&self) -> bool {
        let desk = self.lock();
        !desk.standing.is_empty() || !desk.calls.is_empty()
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Ends the session: its calls are cancelled and its streams are woken to find it ended.
    pub(crate) fn end(&self) {
        let (calls, streams, questions, watch) = {
            let mut desk = self.lock();
            if std::mem::replace(&mut desk.ended, true) {
                return;
            }
            (
                std::mem::take(&mut desk.calls),
                std::mem::take(&mut desk.streams),
                std::mem::take(&mut desk.questions),
                desk.watch.take(),
            )
        };
        tracing::info!(session = %self.id().short(), "session ended");
        calls.values().for_each(|call| call.cancel());
        streams.values().for_each(|stream| stream.grown.notify_waiters());
        questions.into_values().for_each(Open::give_up);
        self.keep.bags.end();
        if let Some(watch) = watch {
            watch.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock()
    }
}
