use std::ops::{Deref, DerefMut};
use std::task::Waker;
use std::time::Duration;

use trunkline_protocol::RawJson;
use trunkline_protocol::model::InputRequest;

use super::ask::AskError;
use super::caller::Caller;
use super::notification::PendingAction;
use super::notification_queue::NotificationQueue;
use super::received_input::ReceivedInput;
use crate::admission::BytePermit;
use crate::env::{Env, Secret};

/// The most secrets that are redacted for one call.
const MAX_SECRETS: usize = 128;

/// The mutable state that a call's future shares with its exchange.
#[derive(Debug)]
pub(super) struct LockedCallState {
    pub(super) caller: Caller,
    pub(super) suspended: bool,
    pub(super) cancelled: bool,
    /// The server has aborted the handler, while the caller still waits for the response that reports it.
    pub(super) aborted: bool,
    pub(super) exchange_waker: Option<Waker>,
    lazy: Option<Box<LazyCallState>>,
}

/// The notifications and input requests of a call, and what came with its requests besides the caller.
///
/// Most calls only return a result. So this is allocated by the first write, and reads as empty before.
#[derive(Debug)]
pub(super) struct LazyCallState {
    /// The secrets of every request of the call.
    pub(super) secrets: Vec<Secret>,
    /// Responses that came with a request, by key, not yet consumed.
    pub(super) unused_responses: Vec<(String, RawJson)>,
    /// Consumed responses, kept while the call may have to be replayed from its start.
    pub(super) used_responses: Option<Vec<(String, RawJson)>>,
    pub(super) requests: Vec<PendingInput>,
    /// The keys of the input requests that an operator has answered.
    pub(super) operator_answers: Vec<String>,
    /// The ids of the URL elicitations that the client was sent, by key.
    pub(super) elicitations: Vec<(String, String)>,
    pub(super) unnamed_requests: usize,
    pub(super) notifications: NotificationQueue,
    pub(super) progress: f64,
    /// The memory permits of the call's requests, where these are large.
    pub(super) memory_permits: Vec<BytePermit>,
    pub(super) release_stream: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct PendingInput {
    pub(super) key: String,
    pub(super) request: InputRequest,
    pub(super) sent: bool,
    pub(super) response: Option<Result<ReceivedInput, AskError>>,
    pub(super) waker: Option<Waker>,
}

impl LockedCallState {
    pub(super) fn new(caller: Caller, answers: Vec<(String, RawJson)>) -> Self {
        let has_more = !answers.is_empty() || caller.env.secrets().next().is_some();
        let talk = has_more.then(|| {
            let secrets = caller.env.secrets().cloned().collect();
            Box::new(LazyCallState { secrets, unused_responses: answers, ..LazyCallState::EMPTY })
        });
        Self { caller, suspended: false, cancelled: false, aborted: false, exchange_waker: None, lazy: talk }
    }

    /// Returns the action that cannot wait for the future to be polled.
    pub(super) fn urgent_action(&mut self) -> Option<PendingAction> {
        if self.cancelled {
            return Some(PendingAction::Cancelled);
        }
        // Read first, since writing allocates.
        if self.notifications.is_empty() {
            return None;
        }
        self.notifications.pop().map(PendingAction::Notification)
    }

    /// Adds the secrets of one more request, up to the limit.
    pub(super) fn add_secrets(&mut self, env: &Env) {
        for secret in env.secrets() {
            if self.secrets.len() < MAX_SECRETS && !self.secrets.contains(secret) {
                self.secrets.push(secret.clone());
            }
        }
    }
}

impl Deref for LockedCallState {
    type Target = LazyCallState;

    fn deref(&self) -> &LazyCallState {
        static NONE: LazyCallState = LazyCallState::EMPTY;
        self.lazy.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for LockedCallState {
    fn deref_mut(&mut self) -> &mut LazyCallState {
        self.lazy.get_or_insert_with(|| Box::new(LazyCallState::EMPTY))
    }
}

impl LazyCallState {
    const EMPTY: Self = Self {
        secrets: Vec::new(),
        unused_responses: Vec::new(),
        used_responses: None,
        requests: Vec::new(),
        operator_answers: Vec::new(),
        elicitations: Vec::new(),
        unnamed_requests: 0,
        notifications: NotificationQueue::EMPTY,
        progress: f64::NEG_INFINITY,
        memory_permits: Vec::new(),
        release_stream: None,
    };
}
