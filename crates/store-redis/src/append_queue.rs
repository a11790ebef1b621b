//! A queue of writes that callers do not wait for when they make them: they are sent in order, and all that arrive while one
//! batch is being sent share the next one.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use trunkline_session::{BoxFuture, StoreError};

/// What a queue has to send.
pub(crate) trait QueuedWrites: Send + Sync + 'static {
    type Write: Send + 'static;

    /// Returns what a write counts in the limit of the queue, in bytes.
    fn cost(write: &Self::Write) -> usize;

    /// Sends writes, and returns the outcome of each in the same order.
    fn send(&self, writes: Vec<Self::Write>) -> impl Future<Output = Vec<Result<(), StoreError>>> + Send;
}

/// The most bytes that wait to be sent. Beyond it writes are refused.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// The most writes of one batch.
const MAX_BATCH: usize = 1_000;

pub(crate) struct AppendQueue<W: QueuedWrites> {
    writes: W,
    state: Mutex<AppendState<W::Write>>,
    runtime: tokio::runtime::Handle,
}

struct AppendState<T> {
    waiting: VecDeque<QueuedWrite<T>>,
    bytes: usize,
    /// Whether a task is sending.
    is_running: bool,
}

struct QueuedWrite<T> {
    /// Without one it is a place in the queue that a caller waits for.
    write: Option<T>,
    cost: usize,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl<W: QueuedWrites> AppendQueue<W> {
    pub(crate) fn new(writes: W, runtime: tokio::runtime::Handle) -> Self {
        let state = AppendState { waiting: VecDeque::new(), bytes: 0, is_running: false };
        Self { writes, state: Mutex::new(state), runtime }
    }

    pub(crate) fn writes(&self) -> &W {
        &self.writes
    }

    /// Queues a write; the future is ready when it is stored or has failed.
    pub(crate) fn push(self: &Arc<Self>, write: W::Write) -> BoxFuture<'static, Result<(), StoreError>> {
        let cost = W::cost(&write);
        self.enqueue(Some(write), cost)
    }

    /// Waits for all writes that are queued now.
    pub(crate) async fn flush(self: &Arc<Self>) {
        if self.is_idle() {
            return;
        }
        // Each write reports its own outcome.
        let _ = self.enqueue(None, 0).await;
    }

    fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !state.is_running && state.waiting.is_empty()
    }

    fn enqueue(
        self: &Arc<Self>,
        write: Option<W::Write>,
        cost: usize,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let (done, stored) = oneshot::channel();
        let mut state = self.state.lock();
        if state.bytes + cost > MAX_QUEUED_BYTES {
            let cause = "too much waits to be stored; Redis is too slow, or cannot be reached".to_owned();
            return Box::pin(ready(Err(StoreError::Unavailable(cause))));
        }
        state.bytes += cost;
        state.waiting.push_back(QueuedWrite { write, cost, done });
        if !std::mem::replace(&mut state.is_running, true) {
            let queue = self.clone();
            self.runtime.spawn(async move { queue.send_all().await });
        }
        drop(state);
        Box::pin(async move { stored.await.unwrap_or_else(|_| Err(ended())) })
    }

    async fn send_all(self: Arc<Self>) {
        let mut guard = RunningGuard { queue: &self, has_ended: false };
        while let Some(batch) = self.next_batch() {
            let (mut writes, mut waiters, mut places) = (Vec::new(), Vec::new(), Vec::new());
            for QueuedWrite { write, done, .. } in batch {
                match write {
                    Some(write) => {
                        writes.push(write);
                        waiters.push(done);
                    }
                    None => places.push(done),
                }
            }
            let outcomes = if writes.is_empty() { Vec::new() } else { self.writes.send(writes).await };
            let failure = common_failure(&outcomes);
            // A caller may be gone by now, which changes nothing.
            for (waiter, outcome) in waiters.into_iter().zip(outcomes) {
                let _ = waiter.send(outcome);
            }
            for place in places {
                let _ = place.send(Ok(()));
            }
            if let Some(failure) = failure {
                self.fail_waiting(&failure);
            }
        }
        guard.has_ended = true;
    }

    /// Fails what was queued while a whole batch failed: it has waited as long as an operation may take.
    fn fail_waiting(&self, failure: &StoreError) {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        state.bytes = 0;
        drop(state);
        for queued in waiting {
            let _ = queued.done.send(Err(failure.clone()));
        }
    }

    /// Takes what waits; `None`, and no task is sending any more, if nothing does.
    fn next_batch(&self) -> Option<Vec<QueuedWrite<W::Write>>> {
        let mut state = self.state.lock();
        let count = state.waiting.len().min(MAX_BATCH);
        if count == 0 {
            state.is_running = false;
            return None;
        }
        let batch: Vec<_> = state.waiting.drain(..count).collect();
        state.bytes -= batch.iter().map(|queued| queued.cost).sum::<usize>();
        Some(batch)
    }
}

/// Lets another task send if this one ends before its time, and fails what waits.
struct RunningGuard<'a, W: QueuedWrites> {
    queue: &'a AppendQueue<W>,
    has_ended: bool,
}

impl<W: QueuedWrites> Drop for RunningGuard<'_, W> {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = self.queue.state.lock();
            let waiting = std::mem::take(&mut state.waiting);
            (state.bytes, state.is_running) = (0, false);
            drop(state);
            drop(waiting);
        }
    }
}

/// Returns the error of a batch of which nothing succeeded because Redis failed.
fn common_failure(outcomes: &[Result<(), StoreError>]) -> Option<StoreError> {
    let failed = |outcome: &Result<(), StoreError>| matches!(outcome, Err(StoreError::Unavailable(_)));
    let first = outcomes.first()?.as_ref().err()?;
    outcomes.iter().all(failed).then(|| first.clone())
}

fn ended() -> StoreError {
    StoreError::Unavailable("the store's runtime has ended".to_owned())
}
