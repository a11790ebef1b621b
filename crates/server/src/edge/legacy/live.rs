use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use trunkline_protocol::model::Question;
use trunkline_protocol::{Era, Id, Level, Raw, Refusal, Response, Revision, emit};
use trunkline_session::{EventStore, Principal, SessionId, SessionRecord, StreamId, Timestamp};

use super::stand::{Carrier, Stand};
use crate::call::{AskError, Caller, Handler, SessionKeep, Shared};
use crate::change::{Filter, Listener, Subscription};
use crate::metrics::process::Present;

/// The most questions that one session may have open.
const MOST_QUESTIONS: usize = 256;

/// The most cancellations of unknown calls that one session remembers.
const MOST_CANCELLED: usize = 16;

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

/// A question that was put to the client.
struct Open {
    /// The call that asked, and the key of its question; the session itself has neither.
    asker: Option<(Arc<Shared>, String)>,
    /// The change that an answer to a question for roots is not older than.
    roots: Option<u64>,
}

/// A stream that a client may come back to while its call still runs.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) grown: Notify,
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
        Listener { principal: self.record.principal.clone(), session: Some(self.record.id) }
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

    // Time.

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

    // Calls.

    pub(crate) fn has_call(&self, id: &Id) -> bool {
        self.lock().calls.contains_key(id)
    }

    /// Announces a call, whose cancellation counts from now on; returns false if another call has its id.
    pub(crate) fn announce(&self, id: &Id) -> bool {
        let mut desk = self.lock();
        if !desk.cancelled.is_empty() {
            // That was meant for one which had this id before.
            desk.cancelled.retain(|cancelled| cancelled != id);
        }
        !desk.calls.contains_key(id)
    }

    /// Makes a call known, so that the client can cancel it and the session's end ends it; returns false if another call has
    /// its id.
    pub(crate) fn enter(&self, id: &Id, call: &Arc<Shared>) -> bool {
        let mut desk = self.lock();
        if desk.ended || desk.cancelled.contains(id) {
            drop(desk);
            call.cancel();
            return true;
        }
        match desk.calls.entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(call.clone());
                true
            }
        }
    }

    /// Forgets a call and the questions that it left open.
    pub(crate) fn leave(&self, id: &Id, questions: &[Id]) {
        let mut desk = self.lock();
        desk.calls.remove(id);
        for question in questions {
            desk.questions.remove(question);
        }
    }

    pub(crate) fn cancel(&self, id: &Id) {
        let mut desk = self.lock();
        let call = desk.calls.get(id).cloned();
        if call.is_none() {
            if desk.cancelled.len() >= MOST_CANCELLED {
                desk.cancelled.pop_front();
            }
            desk.cancelled.push_back(id.detached());
        }
        drop(desk);
        if let Some(call) = call {
            call.cancel();
        }
    }

    // Questions.

    /// Registers a question and returns the id under which it is put to the client.
    pub(crate) fn put(&self, shared: &Arc<Shared>, key: &str, is_roots: bool) -> Result<Id, AskError> {
        let roots = is_roots.then(|| self.keep.roots.change());
        self.register(Open { asker: Some((shared.clone(), key.to_owned())), roots })
    }

    /// Returns the request by which the session itself asks for its client's roots, if it should do so now.
    pub(crate) fn ask_roots(&self) -> Option<String> {
        let change = self.keep.roots.begin()?;
        let id = self.register(Open { asker: None, roots: Some(change) }).ok()?;
        let mut desk = self.lock();
        // Only the latest question of the session's own is waited for, however many go unanswered.
        if let Some(before) = desk.own_question.replace(id.clone()) {
            desk.questions.remove(&before);
        }
        drop(desk);
        Some(emit::request(&id, Question::Roots.method(), Some(&Raw::EMPTY_OBJECT)))
    }

    fn register(&self, open: Open) -> Result<Id, AskError> {
        let mut desk = self.lock();
        if desk.ended || desk.is_mute || desk.questions.len() >= MOST_QUESTIONS {
            return Err(AskError::Ended);
        }
        let id = Id::from_text(&format!("trunkline-{:x}", desk.next_number()));
        desk.questions.insert(id.clone(), open);
        Ok(id)
    }

    /// Reports whether a call waits for an answer of the client.
    pub(crate) fn is_asking(&self) -> bool {
        self.lock().questions.values().any(|open| open.asker.is_some())
    }

    /// Reports whether one of these questions has no answer yet.
    pub(crate) fn awaits(&self, questions: &[Id]) -> bool {
        let desk = self.lock();
        questions.iter().any(|id| desk.questions.contains_key(id))
    }

    /// Fails those of these questions that have no answer yet.
    pub(crate) fn abandon(&self, questions: &[Id]) {
        let open: Vec<_> = {
            let mut desk = self.lock();
            questions.iter().filter_map(|id| desk.questions.remove(id)).collect()
        };
        for (shared, key) in open.into_iter().filter_map(|open| open.asker) {
            shared.answer(&key, Err(AskError::Ended));
        }
    }

    /// Fails every question that has no answer yet, and each that is put from now on: the client sends no more.
    pub(crate) fn ask_no_more(&self) {
        let questions = {
            let mut desk = self.lock();
            desk.is_mute = true;
            std::mem::take(&mut desk.questions)
        };
        for Open { asker, roots } in questions.into_values() {
            // Calls that wait for the roots have those that are known.
            if let Some(change) = roots {
                self.keep.roots.learn(change, None);
            }
            if let Some((shared, key)) = asker {
                shared.answer(&key, Err(AskError::Ended));
            }
        }
    }

    /// Hands a client's response to the call that asked; one that nobody waits for is dropped.
    pub(crate) fn answer(&self, response: Response) {
        let open = response.id.and_then(|id| self.lock().questions.remove(&id));
        let Some(Open { asker, roots }) = open else { return };
        if let Some(change) = roots {
            self.keep.roots.learn(change, response.outcome.as_ref().ok());
        }
        if let Some((shared, key)) = asker {
            shared.answer(&key, response.outcome.map_err(|error| AskError::Refused(refusal(&error))));
        }
    }

    // Streams.

    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.lock().next_number())
    }

    pub(crate) fn open_stream(&self) -> (StreamId, Arc<StreamState>) {
        let stream = self.new_stream();
        let state = Arc::new(StreamState::default());
        self.lock().streams.insert(stream, state.clone());
        (stream, state)
    }

    pub(crate) fn stream(&self, stream: StreamId) -> Option<Arc<StreamState>> {
        self.lock().streams.get(&stream).cloned()
    }

    pub(crate) fn close_stream(&self, stream: StreamId) {
        let state = self.lock().streams.remove(&stream);
        if let Some(state) = state {
            state.grown.notify_waiters();
        }
    }

    /// Carries a standing stream from an event on; one that has a carrier already is taken over from it, wherever it is.
    pub(crate) fn stand(
        self: &Arc<Self>,
        stream: StreamId,
        next: u64,
        most: usize,
        events: &Arc<dyn EventStore>,
    ) -> Result<Carrier, Refusal> {
        let mut desk = self.lock();
        if desk.ended {
            return Err(Refusal::SESSION_NOT_FOUND);
        }
        let (stand, number) = match desk.standing.get(&stream) {
            Some(stand) => (stand.clone(), stand.take_over()),
            None if desk.standing.len() >= most => return Err(Refusal::TOO_MANY),
            None => {
                let stand = Arc::new(Stand::new(next));
                desk.standing.insert(stream, stand.clone());
                (stand, 0)
            }
        };
        drop(desk);
        Ok(Carrier::new(self.clone(), events.clone(), stream, stand, number))
    }

    /// Forgets a standing stream whose carrier ends, unless another has taken it over.
    pub(super) fn sit(&self, stream: StreamId, carrier: u64) {
        let mut desk = self.lock();
        if desk.standing.get(&stream).is_some_and(|stand| stand.is_carried_by(carrier)) {
            desk.standing.remove(&stream);
        }
    }

    /// Returns the session's subscription, which begins with its first use.
    pub(crate) fn watch(&self, handler: &dyn Handler) -> Arc<Subscription> {
        if let Some(watch) = &self.lock().watch {
            return watch.clone();
        }
        let fresh = Arc::new(handler.watch(Filter { listener: Some(self.listener()), ..Filter::lists() }));
        let watch = self.lock().watch.get_or_insert(fresh).clone();
        self.keep.speak_through(&watch);
        watch
    }

    // The end.

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
        for (shared, key) in questions.into_values().filter_map(|open| open.asker) {
            shared.answer(&key, Err(AskError::Ended));
        }
        self.keep.bags.end();
        if let Some(watch) = watch {
            watch.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a client's error, with no more of its sentence than anybody needs.
fn refusal(error: &Raw) -> Refusal {
    let members = error.members().unwrap_or_default();
    let code = members.get("code").and_then(|code| code.get().ok());
    let message = members.text("message");
    let message =
        message.map_or_else(|| "no reason given".to_owned(), |text| text.chars().take(500).collect());
    let internal = Refusal::INTERNAL.code(Era::Legacy);
    Refusal::carried(code.unwrap_or(internal), message, members.get("data").map(Raw::detached))
}
