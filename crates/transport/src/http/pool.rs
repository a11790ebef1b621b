use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::ending::{Ended, Ending};
use super::link::Link;

/// How long the end of a response is waited for that has said all that matters.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Connections that nobody uses at the moment.
///
/// The one that was used last is used first, so that the others grow old and go.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    state: Mutex<State>,
    /// Tells the sweeper that something grows old before it looks again.
    sooner: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest in front.
    idle: VecDeque<Idle>,
    /// The task that closes what grows old, while there is anything.
    sweeper: Option<AbortHandle>,
    /// When it looks again.
    looks_at: Option<Instant>,
}

#[derive(Debug)]
struct Idle {
    kept: Kept,
    until: Instant,
}

#[derive(Debug)]
enum Kept {
    /// A connection that is free.
    Free(Box<Link>),
    /// A connection whose response is not quite over.
    Ending(Ending),
}

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), sooner: Arc::default() }
    }

    /// Takes a connection that is not too old; whether its server has left meanwhile is seen by whoever uses it.
    pub(super) fn take(&self) -> Option<Box<Link>> {
        let now = Instant::now();
        let mut state = self.lock();
        let mut index = state.idle.len();
        while let Some(before) = index.checked_sub(1) {
            index = before;
            let Some(Idle { kept, until }) = state.idle.remove(index) else { break };
            let free = match kept {
                _ if until <= now => None,
                Kept::Free(link) => Some(link),
                Kept::Ending(ending) => match ending.look() {
                    Ended::Free(link) => Some(link),
                    Ended::Wrong => None,
                    Ended::NotYet(ending) => {
                        state.idle.insert(index, Idle { kept: Kept::Ending(ending), until });
                        None
                    }
                },
            };
            if free.is_some() {
                return free;
            }
        }
        None
    }

    /// Keeps a connection for the next request, for as long as the server can be expected to keep it too.
    pub(super) fn give(self: &Arc<Self>, mut link: Box<Link>, keep: Duration) {
        if !keep.is_zero() {
            link.rest();
            self.keep(Kept::Free(link), keep);
        }
    }

    /// Keeps a connection whose response has said all that matters, in the expectation that it ends soon.
    pub(super) fn give_ending(self: &Arc<Self>, ending: Ending, keep: Duration) {
        if !keep.is_zero() {
            self.keep(Kept::Ending(ending), keep.min(ENDS_WITHIN));
        }
    }

    fn keep(self: &Arc<Self>, kept: Kept, keep: Duration) {
        let now = Instant::now();
        let Some(until) = now.checked_add(keep).filter(|_| self.most > 0) else { return };
        let mut state = self.lock();
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            // Outside of a runtime nobody could end what grows old, nor use it.
            let Ok(runtime) = Handle::try_current() else { return };
            let sweeping = sweep(Arc::downgrade(self), self.sooner.clone());
            state.sweeper = Some(runtime.spawn(sweeping).abort_handle());
        }
        if state.looks_at.is_some_and(|looks_at| until < looks_at) {
            self.sooner.notify_one();
        }
        let oldest = if state.idle.len() >= self.most { state.idle.pop_front() } else { None };
        state.idle.push_back(Idle { kept, until });
        drop(state);
        drop(oldest);
    }

    /// Drops what is too old; returns when to look again, unless nothing is left to look after.
    fn drop_old(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let (old, kept): (VecDeque<_>, _) =
            std::mem::take(&mut state.idle).into_iter().partition(|idle| idle.until <= now);
        state.idle = kept;
        let next = state.idle.iter().map(|idle| idle.until).min();
        state.looks_at = next;
        if next.is_none() {
            state.sweeper = None;
        }
        drop(state);
        drop(old);
        next
    }

    pub(super) fn len(&self) -> usize {
        self.lock().idle.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Closes connections that grow old, until there are none or the pool is gone.
async fn sweep(pool: Weak<Pool>, sooner: Arc<Notify>) {
    loop {
        let Some(next) = pool.upgrade().and_then(|pool| pool.drop_old()) else { return };
        // Whichever comes first, it is looked again.
        let _ = tokio::time::timeout_at(next, sooner.notified()).await;
    }
}
