use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OnceCell};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{InputRequest, Root};
use trunkline_protocol::{LoggingLevel, Method, Params, RawJson, Revision};

use super::ask::AskError;
use super::caller::Caller;
use super::locked_state::LockedCallState;
use super::notification::{CallNotification, PendingAction};
use super::received_input::ReceivedInput;
use super::scope::CallScope;
use crate::admission::BytePermit;
use crate::env::Secret;

/// The reason for most unsupported input requests.
pub(super) const UNDECLARED: &str = "the client did not declare the capability";

/// The state that a call's future shares with its exchange.
///
/// The lock is held for a few instructions at a time, never while a handler runs.
#[derive(Debug)]
pub(crate) struct CallState {
    method: Method,
    params: Params,
    scope: CallScope,
    /// The roots of a caller without a session, once a handler has requested them; with a session it is set once the call
    /// has waited for them in vain.
    roots: OnceLock<Box<OnceCell<Vec<Root>>>>,
    state: Mutex<LockedCallState>,
    cancel: Notify,
    /// Its number for an observer of the wire; zero without one.
    number: AtomicU64,
}

impl CallState {
    pub(crate) fn new(
        method: Method,
        params: Params,
        caller: Caller,
        answers: Vec<(String, RawJson)>,
        scope: CallScope,
    ) -> Arc<Self> {
        // One expression, so that it need not be moved: it is large, and every call makes one.
        Arc::new(Self {
            method,
            params,
            scope,
            roots: OnceLock::new(),
            state: Mutex::new(LockedCallState::new(caller, answers)),
            cancel: Notify::const_new(),
            number: AtomicU64::new(0),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LockedCallState> {
        self.state.lock()
    }

    /// Returns its number for an observer of the wire, if there is one.
    pub(crate) fn number(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.number.load(Ordering::Relaxed))
    }

    pub(crate) fn set_number(&self, number: NonZeroU64) {
        self.number.store(number.get(), Ordering::Relaxed);
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the arguments of a tool or prompt; absent ones are an empty object.
    pub(crate) fn arguments(&self) -> &RawJson {
        static NONE: RawJson = RawJson::EMPTY_OBJECT;
        self.params.get("arguments").filter(|raw| !raw.is_null()).unwrap_or(&NONE)
    }

    pub(crate) fn scope(&self) -> &CallScope {
        &self.scope
    }

    /// Returns the roots of a caller without a session, as far as they were requested; with a session, whether the call has
    /// waited for them in vain.
    pub(crate) fn roots(&self) -> &OnceCell<Vec<Root>> {
        self.roots.get_or_init(Box::default)
    }

    /// Returns the secrets that are redacted from everything that the call sends.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.lock().secrets.clone()
    }

    /// Holds the memory permit of a large request for as long as the call may hold any of it.
    pub(crate) fn hold_permit(&self, reserved: BytePermit) {
        self.lock().memory_permits.push(reserved);
    }

    /// Reports whether the call holds a large request.
    pub(crate) fn is_large(&self) -> bool {
        !self.lock().memory_permits.is_empty()
    }

    pub(crate) fn with_caller<T>(&self, read: impl FnOnce(&Caller) -> T) -> T {
        read(&self.lock().caller)
    }

    // Notifications of the handler.

    pub(crate) fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.lock();
        let wanted = state.suspended || state.caller.progress_token.is_some();
        // Progress must increase with each notification, as the protocol requires; and JSON has no non-finite
        // numbers.
        if !wanted || !progress.is_finite() || progress <= state.progress {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        state.progress = progress;
        let merge = state.suspended;
        state.notifications.push_progress(CallNotification::Progress { progress, total, message }, merge);
        wake(state.exchange_waker.take(), state);
    }

    pub(crate) fn report_log(
        &self,
        level: LoggingLevel,
        logger: Option<String>,
        data: impl FnOnce() -> RawJson,
    ) {
        let wanted = {
            let state = self.lock();
            state.suspended || state.caller.log_level.is_some_and(|wanted| level >= wanted)
        };
        if !wanted {
            return;
        }
        // The author's code makes the data, so that no lock is held meanwhile.
        let data = data();
        let mut state = self.lock();
        state.notifications.push_log(CallNotification::Log { level, logger, data });
        wake(state.exchange_waker.take(), state);
    }

    pub(crate) fn release_stream(&self, retry: Duration) {
        let mut state = self.lock();
        state.release_stream = Some(retry);
        wake(state.exchange_waker.take(), state);
    }

    // Operations of the exchange.

    /// Returns what the exchange must act on before the future is polled.
    pub(crate) fn urgent_action(&self) -> Option<PendingAction> {
        self.lock().urgent_action()
    }

    /// Returns what the exchange must act on while the future waits.
    ///
    /// The waker of the exchange is stored first, so that a later notification from another task is not missed.
    pub(crate) fn next_action(&self, waker: &Waker) -> Option<PendingAction> {
        let mut state = self.lock();
        match &mut state.exchange_waker {
            Some(known) if known.will_wake(waker) => {}
            slot => *slot = Some(waker.clone()),
        }
        if let Some(urgent) = state.urgent_action() {
            return Some(urgent);
        }
        if state.release_stream.is_some() {
            return state.release_stream.take().map(PendingAction::ReleaseStream);
        }
        let has_unsent = state.requests.iter().any(|entry| !entry.sent && entry.response.is_none());
        has_unsent.then_some(PendingAction::InputRequests)
    }

    /// Reports whether there is nothing that the exchange must act on before anything else.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        !state.cancelled && state.notifications.is_empty()
    }

    /// Takes the input requests that were not sent to the caller yet.
    pub(crate) fn take_unsent_requests(&self) -> Vec<(String, InputRequest)> {
        let mut state = self.lock();
        let unsent = state.requests.iter_mut().filter(|entry| !entry.sent && entry.response.is_none());
        unsent
            .map(|entry| {
                entry.sent = true;
                (entry.key.clone(), entry.request.clone())
            })
            .collect()
    }

    /// Delivers the response to the open input request with this key; returns false if there is none.
    pub(crate) fn deliver_response(&self, key: &str, outcome: Result<RawJson, AskError>) -> bool {
        let mut state = self.lock();
        let dialect = Dialect::of(state.caller.revision);
        let open = state.requests.iter_mut().find(|entry| entry.key == key && entry.response.is_none());
        let Some(entry) = open else { return false };
        let response = outcome.and_then(|raw| match entry.request.read_relayed_response(dialect, raw) {
            Ok((answer, raw)) => Ok(ReceivedInput { response: answer, raw }),
            Err(bad) => Err(AskError::Malformed(bad.to_string())),
        });
        let raw = response.as_ref().ok().map(|response| response.raw.clone());
        entry.response = Some(response);
        let waker = entry.waker.take();
        if let (Some(used), Some(raw)) = (&mut state.used_responses, raw) {
            used.push((key.to_owned(), raw));
        }
        wake(waker, state);
        true
    }

    /// Records that no exchange drives the call now.
    pub(crate) fn suspend(&self) {
        let mut state = self.lock();
        state.suspended = true;
        state.exchange_waker = None;
    }

    /// Attaches a new request to the call: the caller is that request's, and its responses go to the input requests.
    pub(crate) fn resume(&self, caller: Caller, answers: Vec<(String, RawJson)>) {
        let mut state = self.lock();
        state.suspended = false;
        state.add_secrets(&caller.env);
        state.caller = caller;
        let (for_open, early): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(key, _)| state.requests.iter().any(|entry| entry.key == *key));
        // A response is valid only with the request that it came with, so the rest of an earlier one is dropped.
        state.unused_responses = early;
        // An input request without a response is sent again in the next round.
        for entry in &mut state.requests {
            entry.sent = false;
        }
        drop(state);
        for (key, raw) in for_open {
            if self.is_well_formed(&key, &raw) {
                self.deliver_response(&key, Ok(raw));
            }
        }
        self.fail_unsupported();
    }

    fn is_well_formed(&self, key: &str, raw: &RawJson) -> bool {
        let state = self.lock();
        state.requests.iter().any(|entry| entry.key == key && entry.request.read_response(raw).is_ok())
    }

    /// Fails the open input requests that the caller of the latest request does not support.
    fn fail_unsupported(&self) {
        let mut state = self.lock();
        let client = state.caller.capabilities();
        let mut wakers = Vec::new();
        for entry in state.requests.iter_mut().filter(|entry| entry.response.is_none()) {
            if !entry.request.is_supported_by(&client) {
                entry.response = Some(Err(AskError::unsupported(&entry.request, UNDECLARED)));
                wakers.extend(entry.waker.take());
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn revision(&self) -> Revision {
        self.lock().caller.revision
    }

    /// Returns the responses that came with the request and were not consumed by an input request.
    pub(crate) fn unused_responses(&self) -> Vec<(String, RawJson)> {
        self.lock().unused_responses.clone()
    }

    /// Starts to keep the consumed responses, so that the call can be replayed from its start.
    pub(crate) fn record_responses(&self) {
        self.lock().used_responses.get_or_insert_default();
    }

    /// Returns the responses consumed so far, if they are being kept.
    pub(crate) fn recorded_responses(&self) -> Option<Vec<(String, RawJson)>> {
        self.lock().used_responses.clone()
    }

    /// Adds the responses of earlier rounds before those that came with the request: an earlier response stays valid.
    pub(crate) fn replay_responses(&self, kept: Vec<(String, RawJson)>) {
        let mut state = self.lock();
        state.unused_responses.splice(0..0, kept);
    }

    /// Removes from input requests the parts that the caller did not declare support for.
    pub(crate) fn adapt_requests(
        &self,
        questions: Vec<(String, InputRequest)>,
    ) -> Vec<(String, InputRequest)> {
        let (client, revision) = self.with_caller(|caller| (caller.capabilities(), caller.revision));
        let suited = |question: InputRequest| question.adapted_to(&client, Dialect::of(revision));
        questions.into_iter().map(|(key, question)| (key, suited(question))).collect()
    }

    /// Returns the error of the first input request that the caller does not support.
    pub(crate) fn first_unsupported(&self, questions: &[(String, InputRequest)]) -> Option<AskError> {
        let client = self.with_caller(Caller::capabilities);
        let question = questions.iter().find(|(_, question)| !question.is_supported_by(&client));
        question.map(|(_, question)| AskError::unsupported(question, UNDECLARED))
    }

    pub(crate) fn cancel(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.cancelled, true) {
            return;
        }
        wake(state.exchange_waker.take(), state);
        self.cancel.notify_waiters();
    }

    /// Signals tasks that the handler has spawned to end; the caller still gets a response.
    pub(crate) fn abort(&self) {
        self.lock().aborted = true;
        self.cancel.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        let state = self.lock();
        state.cancelled || state.aborted
    }

    pub(crate) async fn cancelled(&self) {
        let notified = self.cancel.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}

/// Wakes a task after the lock is released, so that the task does not block on it.
pub(super) fn wake(waker: Option<Waker>, state: MutexGuard<'_, LockedCallState>) {
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
