//! The rows that are to be written, and the callers that wait for them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use trunkline_session::{BoxFuture, SessionId, StateHandle, StoreError};

/// How long a change that no caller waits for, such as an idle clock, may stay unwritten.
const LAZY_DELAY: Duration = Duration::from_secs(5);

/// How long the writer waits after a failure before it tries again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Rows of which the file may differ from memory.
///
/// The writer takes their content from memory when it writes them, so that a row which changes often is written once.
#[derive(Debug, Default)]
pub(crate) struct DirtyRows {
    pub(crate) sessions: HashSet<SessionId>,
    /// The sessions of the events, by the events' serials.
    pub(crate) events: HashMap<u64, SessionId>,
    pub(crate) states: HashSet<StateHandle>,
    pub(crate) header: bool,
}

impl DirtyRows {
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.events.is_empty() && self.states.is_empty() && !self.header
    }

    fn merge(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.events.extend(other.events);
        self.states.extend(other.states);
        self.header |= other.header;
    }
}

type CommitWaiter = oneshot::Sender<Result<(), StoreError>>;

#[derive(Debug, Default)]
struct QueueState {
    dirty: DirtyRows,
    waiters: Vec<CommitWaiter>,
    /// Why the last write failed; no change is accepted until one succeeds.
    failure: Option<String>,
    closing: bool,
    /// The writer has ended.
    ended: bool,
}

/// One transaction's work.
#[derive(Debug)]
pub(crate) struct WriteBatch {
    pub(crate) dirty: DirtyRows,
    waiters: Vec<CommitWaiter>,
}

#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl WriteQueue {
    /// Refuses a change while the file cannot be written: accepted changes would use up memory until it can.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let state = self.state.lock();
        match &state.failure {
            Some(failure) => Err(StoreError::Unavailable(failure.clone())),
            None if state.ended => Err(ended()),
            None => Ok(()),
        }
    }

    /// Marks rows; they are written with the next commit, or a few seconds later.
    pub(crate) fn mark(&self, change: impl FnOnce(&mut DirtyRows)) {
        let mut state = self.state.lock();
        let was_empty = state.dirty.is_empty();
        change(&mut state.dirty);
        if was_empty {
            self.changed.notify_one();
        }
    }

    /// Requests that everything marked so far is written; the future is ready when it is.
    pub(crate) fn commit(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut state = self.state.lock();
        if state.ended {
            return Box::pin(std::future::ready(Err(ended())));
        }
        if let Some(failure) = &state.failure {
            return Box::pin(std::future::ready(Err(StoreError::Unavailable(failure.clone()))));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiters.push(sender);
        self.changed.notify_one();
        Box::pin(async move { receiver.await.unwrap_or_else(|_| Err(ended())) })
    }

    /// Waits for work; `None` when the store is closed and everything is written.
    pub(crate) fn next_batch(&self) -> Option<WriteBatch> {
        let mut state = self.state.lock();
        if state.failure.is_some() && !state.closing {
            self.changed.wait_for(&mut state, RETRY_DELAY);
        }
        while state.waiters.is_empty() && state.failure.is_none() && !state.closing {
            if state.dirty.is_empty() {
                self.changed.wait(&mut state);
            } else if self.changed.wait_for(&mut state, LAZY_DELAY).timed_out() {
                break;
            }
        }
        if state.closing && state.waiters.is_empty() && state.dirty.is_empty() {
            return None;
        }
        let (dirty, waiters) = (std::mem::take(&mut state.dirty), std::mem::take(&mut state.waiters));
        Some(WriteBatch { dirty, waiters })
    }

    /// Reports the outcome of a batch; returns whether the writer goes on.
    pub(crate) fn finish(&self, batch: WriteBatch, outcome: Result<(), String>) -> bool {
        let mut state = self.state.lock();
        let result = match outcome {
            Ok(()) => {
                state.failure = None;
                Ok(())
            }
            Err(failure) => {
                // Rows are written again from memory, so that it does not matter how far the failed attempt came.
                state.dirty.merge(batch.dirty);
                state.failure = Some(failure.clone());
                Err(StoreError::Unavailable(failure))
            }
        };
        let goes_on = result.is_ok() || !state.closing;
        drop(state);
        for waiter in batch.waiters {
            // The caller may be gone by now, which changes nothing.
            let _ = waiter.send(result.clone());
        }
        goes_on
    }

    /// Lets the writer write what is left and end.
    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_one();
    }

    /// Fails all waiting callers: there is no writer any more.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        drop(waiters);
    }
}

fn ended() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
