use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OnceCell};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Question, Root};
use trunkline_protocol::{Level, Method, Params, Raw, Revision};

use super::ask::AskError;
use super::caller::Caller;
use super::given::Given;
use super::note::{Left, Note};
use super::state::State;
use super::surroundings::Surroundings;
use crate::env::Secret;
use crate::unanswered::Reserved;

/// Why most questions that cannot be put cannot be put.
pub(super) const UNDECLARED: &str = "the client did not declare the capability";

/// What a call's future and the exchange that carries it share.
///
/// The lock is held for a few instructions at a time, never while a handler runs.
#[derive(Debug)]
pub(crate) struct Shared {
    method: Method,
    params: Params,
    surroundings: Surroundings,
    /// The roots of a caller without a session, once somebody wants to know them.
    roots: OnceLock<Box<OnceCell<Vec<Root>>>>,
    state: Mutex<State>,
    cancel: Notify,
}

impl Shared {
    pub(crate) fn new(
        method: Method,
        params: Params,
        caller: Caller,
        answers: Vec<(String, Raw)>,
        surroundings: Surroundings,
    ) -> Arc<Self> {
        // One expression, so that it need not be moved: it is large, and every call makes one.
        Arc::new(Self {
            method,
            params,
            surroundings,
            roots: OnceLock::new(),
            state: Mutex::new(State::new(caller, answers)),
            cancel: Notify::const_new(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the arguments of a tool or prompt; absent ones are an empty object.
    pub(crate) fn arguments(&self) -> &Raw {
        static NONE: Raw = Raw::EMPTY_OBJECT;
        self.params.get("arguments").filter(|raw| !raw.is_null()).unwrap_or(&NONE)
    }

    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Returns the roots of a caller without a session, as far as they were asked for.
    pub(crate) fn roots(&self) -> &OnceCell<Vec<Root>> {
        self.roots.get_or_init(Box::default)
    }

    /// Returns the secrets that nothing which the call says may hold.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.lock().secrets.clone()
    }

    /// Keeps the room of a large request for as long as the call may hold any of it.
    pub(crate) fn keep(&self, reserved: Reserved) {
        let mut state = self.lock();
        match &mut state.reserved {
            Some(kept) => kept.join(reserved),
            none => *none = Some(reserved),
        }
    }

    /// Reports whether the call holds a large request.
    pub(crate) fn is_large(&self) -> bool {
        self.lock().reserved.is_some()
    }

    pub(crate) fn with_caller<T>(&self, read: impl FnOnce(&Caller) -> T) -> T {
        read(&self.lock().caller)
    }

    // What the handler says.

    pub(crate) fn note_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.lock();
        let wanted = state.parked || state.caller.progress_token.is_some();
        // Progress that does not advance would break the caller's expectation that it only rises; and JSON has no word for
        // what is not finite.
        if !wanted || !progress.is_finite() || progress <= state.progress {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        state.progress = progress;
        let merge = state.parked;
        state.notes.push_progress(Note::Progress { progress, total, message }, merge);
        wake(state.exchange.take(), state);
    }

    pub(crate) fn note_log(&self, level: Level, logger: Option<String>, data: impl FnOnce() -> Raw) {
        let wanted = {
            let state = self.lock();
            state.parked || state.caller.log_level.is_some_and(|wanted| level >= wanted)
        };
        if !wanted {
            return;
        }
        // The author's code makes the data, so that no lock is held meanwhile.
        let data = data();
        let mut state = self.lock();
        state.notes.push_log(Note::Log { level, logger, data });
        wake(state.exchange.take(), state);
    }

    pub(crate) fn release_stream(&self, retry: Duration) {
        let mut state = self.lock();
        state.release = Some(retry);
        wake(state.exchange.take(), state);
    }

    // What the exchange does.

    /// Looks at what the exchange must act on before the future is polled.
    pub(crate) fn urgent(&self) -> Left {
        self.lock().urgent()
    }

    /// Looks at all that the exchange must act on while the future waits.
    ///
    /// The exchange's task is remembered first, so that nothing is missed that is said from another task afterwards.
    pub(crate) fn rest(&self, waker: &Waker) -> Left {
        let mut state = self.lock();
        match &mut state.exchange {
            Some(known) if known.will_wake(waker) => {}
            slot => *slot = Some(waker.clone()),
        }
        match state.urgent() {
            Left::Nothing => {}
            urgent => return urgent,
        }
        if state.release.is_some() {
            return state.release.take().map_or(Left::Nothing, Left::Release);
        }
        let has_unsent = state.asked.iter().any(|asked| !asked.sent && asked.answer.is_none());
        if has_unsent { Left::Questions } else { Left::Nothing }
    }

    /// Reports whether there is nothing that the exchange must act on before anything else.
    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.lock();
        !state.cancelled && state.notes.is_empty()
    }

    /// Takes the questions that have not been put to the caller yet.
    pub(crate) fn take_unsent(&self) -> Vec<(String, Question)> {
        let mut state = self.lock();
        let unsent = state.asked.iter_mut().filter(|asked| !asked.sent && asked.answer.is_none());
        unsent
            .map(|asked| {
                asked.sent = true;
                (asked.key.clone(), asked.question.clone())
            })
            .collect()
    }

    /// Hands an answer to whoever asked under the key; returns false if nobody did.
    pub(crate) fn answer(&self, key: &str, outcome: Result<Raw, AskError>) -> bool {
        let mut state = self.lock();
        let dialect = Dialect::of(state.caller.revision);
        let open = state.asked.iter_mut().find(|asked| asked.key == key && asked.answer.is_none());
        let Some(asked) = open else { return false };
        let given = outcome.and_then(|raw| match asked.question.read_carried_answer(dialect, raw) {
            Ok((answer, raw)) => Ok(Given { answer, raw }),
            Err(bad) => Err(AskError::Malformed(bad.to_string())),
        });
        let keep = given.as_ref().ok().map(|given| given.raw.clone());
        asked.answer = Some(given);
        let asker = asked.asker.take();
        if let (Some(used), Some(raw)) = (&mut state.used, keep) {
            used.push((key.to_owned(), raw));
        }
        wake(asker, state);
        true
    }

    /// Notes that no exchange carries the call now.
    pub(crate) fn park(&self) {
        let mut state = self.lock();
        state.parked = true;
        state.exchange = None;
    }

    /// Gives the call a new request: the caller is that request's, and its answers are offered to the questions.
    pub(crate) fn resume(&self, caller: Caller, answers: Vec<(String, Raw)>) {
        let mut state = self.lock();
        state.parked = false;
        state.remember(&caller.env);
        state.caller = caller;
        let (for_open, early): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(key, _)| state.asked.iter().any(|asked| asked.key == *key));
        // An answer counts for the request that it came with, so what an earlier one left over is gone.
        state.answers = early;
        // A question that stays unanswered is put again in the next round.
        for asked in &mut state.asked {
            asked.sent = false;
        }
        drop(state);
        for (key, raw) in for_open {
            if self.is_well_formed(&key, &raw) {
                self.answer(&key, Ok(raw));
            }
        }
        self.fail_unsupported();
    }

    fn is_well_formed(&self, key: &str, raw: &Raw) -> bool {
        let state = self.lock();
        state.asked.iter().any(|asked| asked.key == key && asked.question.read_answer(raw).is_ok())
    }

    /// Fails the open questions that the caller of the latest request cannot be asked.
    fn fail_unsupported(&self) {
        let mut state = self.lock();
        let client = state.caller.capabilities();
        let mut askers = Vec::new();
        for asked in state.asked.iter_mut().filter(|asked| asked.answer.is_none()) {
            if !asked.question.allowed_by(&client) {
                asked.answer = Some(Err(AskError::unsupported(&asked.question, UNDECLARED)));
                askers.extend(asked.asker.take());
            }
        }
        drop(state);
        askers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn revision(&self) -> Revision {
        self.lock().caller.revision
    }

    /// Returns the answers that came with the request and that no question has taken.
    pub(crate) fn answers(&self) -> Vec<(String, Raw)> {
        self.lock().answers.clone()
    }

    /// Starts to keep the answers that are used, so that the call can be replayed from its start.
    pub(crate) fn keep_answers(&self) {
        self.lock().used.get_or_insert_default();
    }

    /// Returns the answers used so far, if they are being kept.
    pub(crate) fn kept_answers(&self) -> Option<Vec<(String, Raw)>> {
        self.lock().used.clone()
    }

    /// Offers the answers of earlier rounds, before those that came with the request: what was answered once stays so.
    pub(crate) fn offer_kept_answers(&self, kept: Vec<(String, Raw)>) {
        let mut state = self.lock();
        state.answers.splice(0..0, kept);
    }

    /// Leaves out of questions what the caller did not say that it takes.
    pub(crate) fn suited(&self, questions: Vec<(String, Question)>) -> Vec<(String, Question)> {
        let (client, revision) = self.with_caller(|caller| (caller.capabilities(), caller.revision));
        let suited = |question: Question| question.suited_to(&client, Dialect::of(revision));
        questions.into_iter().map(|(key, question)| (key, suited(question))).collect()
    }

    /// Finds the first question that the caller cannot be asked.
    pub(crate) fn first_unsupported(&self, questions: &[(String, Question)]) -> Option<AskError> {
        let client = self.with_caller(Caller::capabilities);
        let question = questions.iter().find(|(_, question)| !question.allowed_by(&client));
        question.map(|(_, question)| AskError::unsupported(question, UNDECLARED))
    }

    pub(crate) fn cancel(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.cancelled, true) {
            return;
        }
        wake(state.exchange.take(), state);
        self.cancel.notify_waiters();
    }

    /// Tells what the handler has started elsewhere to end; the caller still gets an answer.
    pub(crate) fn give_up(&self) {
        self.lock().given_up = true;
        self.cancel.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        let state = self.lock();
        state.cancelled || state.given_up
    }

    pub(crate) async fn cancelled(&self) {
        let notified = self.cancel.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}

/// Wakes a task after the lock is gone, so that the task does not run into it.
pub(super) fn wake(waker: Option<Waker>, state: MutexGuard<'_, State>) {
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
