use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::Question;
use trunkline_protocol::{Level, Method, Params, Raw, Revision};

use super::ask::{Ask, AskError, Asking};
use super::caller::Caller;
use super::given::{Given, Put};
use super::note::Note;

/// The notes of one call that wait for its exchange; beyond this, logs are dropped and progress is coalesced.
const MOST_NOTES: usize = 64;

/// Why most questions that cannot be put cannot be put.
const UNDECLARED: &str = "the client did not declare the capability";

/// What a call's future and the exchange that carries it share.
///
/// The lock is held for a few instructions at a time, never while a handler runs.
#[derive(Debug)]
pub(crate) struct Shared {
    method: Method,
    params: Params,
    state: Mutex<State>,
    cancel: Notify,
}

#[derive(Debug)]
struct State {
    caller: Caller,
    /// Answers that came with a request, by key, not yet used.
    answers: Vec<(String, Raw)>,
    /// Answers that were used, kept while the call may have to be replayed from its start.
    used: Option<Vec<(String, Raw)>>,
    asked: Vec<Asked>,
    unnamed: usize,
    notes: VecDeque<Note>,
    progress: f64,
    parked: bool,
    release: Option<Duration>,
    cancelled: bool,
    /// The server has ended the handler, while the caller still waits for the answer that says so.
    given_up: bool,
    exchange: Option<Waker>,
}

#[derive(Debug)]
struct Asked {
    key: String,
    question: Question,
    sent: bool,
    answer: Option<Result<Given, AskError>>,
    asker: Option<Waker>,
}

impl Shared {
    pub(crate) fn new(method: Method, params: Params, caller: Caller, answers: Vec<(String, Raw)>) -> Self {
        let state = State {
            caller,
            answers,
            used: None,
            asked: Vec::new(),
            unnamed: 0,
            notes: VecDeque::new(),
            progress: f64::NEG_INFINITY,
            parked: false,
            release: None,
            cancelled: false,
            given_up: false,
            exchange: None,
        };
        Self { method, params, state: Mutex::new(state), cancel: Notify::const_new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn with_caller<T>(&self, read: impl FnOnce(&Caller) -> T) -> T {
        read(&self.lock().caller)
    }

    // What the handler says.

    pub(crate) fn note_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.lock();
        let wanted = state.parked || state.caller.progress_token.is_some();
        // Progress that does not advance would break the caller's expectation that it only rises.
        if !wanted || progress.is_nan() || progress <= state.progress {
            return;
        }
        state.progress = progress;
        let note = Note::Progress { progress, total, message };
        let full = state.notes.len() >= MOST_NOTES;
        let latest = state.notes.iter().rposition(|note| matches!(note, Note::Progress { .. }));
        match latest.filter(|_| full || state.parked).and_then(|at| state.notes.get_mut(at)) {
            Some(latest) => *latest = note,
            None if full => {}
            None => state.notes.push_back(note),
        }
        wake(state.exchange.take(), state);
    }

    pub(crate) fn note_log(&self, level: Level, logger: Option<String>, data: impl FnOnce() -> Raw) {
        let mut state = self.lock();
        let wanted = state.parked || state.caller.log_level.is_some_and(|wanted| level >= wanted);
        if !wanted {
            return;
        }
        if state.notes.len() >= MOST_NOTES {
            let oldest = state.notes.iter().position(|note| matches!(note, Note::Log { .. }));
            if oldest.and_then(|at| state.notes.remove(at)).is_none() {
                return;
            }
        }
        state.notes.push_back(Note::Log { level, logger, data: data() });
        wake(state.exchange.take(), state);
    }

    pub(crate) fn release_stream(&self, retry: Duration) {
        let mut state = self.lock();
        state.release = Some(retry);
        wake(state.exchange.take(), state);
    }

    // What the handler asks.

    /// Takes the answer that came with the request, or puts the question; returns the key that it was put under.
    pub(crate) fn put(&self, key: Option<String>, question: Question) -> Result<Put, AskError> {
        let mut state = self.lock();
        if !self.method.may_ask() {
            return Err(AskError::unsupported(&question, "this method cannot put questions"));
        }
        let key = key.unwrap_or_else(|| {
            state.unnamed += 1;
            format!("q{}", state.unnamed)
        });
        if state.asked.iter().any(|asked| asked.key == key) {
            return Err(AskError::KeyInUse(key));
        }
        if let Some(at) = state.answers.iter().position(|(given, _)| *given == key) {
            let (key, raw) = state.answers.remove(at);
            // A malformed answer is not an error: the question is simply put again.
            if let Ok(answer) = question.read_answer(&raw) {
                if let Some(used) = &mut state.used {
                    used.push((key, raw.clone()));
                }
                return Ok(Put::Answered(Given { answer, raw }));
            }
        }
        if !question.allowed_by(&state.caller.capabilities()) {
            return Err(AskError::unsupported(&question, UNDECLARED));
        }
        state.asked.push(Asked { key: key.clone(), question, sent: false, answer: None, asker: None });
        Ok(Put::Open(key))
    }

    pub(crate) fn poll_answer(&self, key: &str, cx: &mut TaskContext<'_>) -> Poll<Result<Given, AskError>> {
        let mut state = self.lock();
        let Some(at) = state.asked.iter().position(|asked| asked.key == key) else {
            return Poll::Ready(Err(AskError::Ended));
        };
        let Some(asked) = state.asked.get_mut(at) else { return Poll::Pending };
        if asked.answer.is_none() {
            asked.asker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let answer = state.asked.remove(at).answer;
        Poll::Ready(answer.unwrap_or(Err(AskError::Ended)))
    }

    /// Puts questions whose answers are kept for the next time that the handler is called.
    pub(crate) async fn collect(
        self: &Arc<Self>,
        questions: Vec<(String, Question)>,
    ) -> Result<(), AskError> {
        let mut asked: Vec<_> = questions
            .into_iter()
            .map(|(key, question)| (key.clone(), Asking::new(self.clone(), Ask::raw(key, question))))
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        // Every question is polled in every turn, so that all of them are put before the round closes.
        std::future::poll_fn(|cx| {
            let mut failed = None;
            asked.retain_mut(|(key, asking)| match Pin::new(asking).poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(raw)) => {
                    answers.push((std::mem::take(key), raw));
                    false
                }
                Poll::Ready(Err(error)) => {
                    failed.get_or_insert(error);
                    false
                }
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if asked.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await?;
        // As in the other era, a round's answers are all that the next call of the handler is given.
        self.lock().answers = answers;
        Ok(())
    }

    pub(crate) fn has_open_questions(&self) -> bool {
        self.lock().asked.iter().any(|asked| asked.answer.is_none())
    }

    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().asked.retain(|asked| asked.key != key);
    }

    // What the exchange does.

    /// Looks at what the exchange must act on before anything else.
    pub(crate) fn urgent(&self) -> Urgent {
        let mut state = self.lock();
        if state.cancelled {
            return Urgent::Cancelled;
        }
        state.notes.pop_front().map_or(Urgent::Nothing, Urgent::Note)
    }

    pub(crate) fn take_release(&self) -> Option<Duration> {
        self.lock().release.take()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.lock().asked.iter().any(|asked| !asked.sent && asked.answer.is_none())
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
        let given = outcome.and_then(|raw| match asked.question.read_legacy_answer(dialect, &raw) {
            Ok(answer) => Ok(Given { answer, raw }),
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

    /// Remembers the exchange's task, so that what happens outside the future's own polls is noticed.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut state = self.lock();
        match &mut state.exchange {
            Some(known) if known.will_wake(waker) => {}
            slot => *slot = Some(waker.clone()),
        }
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

/// What an exchange must act on before it polls a call again.
pub(crate) enum Urgent {
    Cancelled,
    Note(Note),
    Nothing,
}

/// Wakes a task after the lock is gone, so that the task does not run into it.
fn wake(waker: Option<Waker>, state: MutexGuard<'_, State>) {
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
