use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::client_connection::ClientConnection;
use super::connect::ClientStream;
use super::draining::{DrainStatus, DrainingResponse};

/// How long the end of a response is waited for, once its last event was read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How many such responses are waited for. All are looked at when a connection is wanted and none is free.
const MAX_DRAINING: usize = 128;

/// Idle connections.
///
/// The one that was used last is used first, so that the others grow old and go.
#[derive(Debug)]
pub(super) struct ConnectionPool<S> {
    max_idle: usize,
    state: Mutex<PoolState<S>>,
    /// Wakes the sweeper when a connection expires before its next sweep.
    wake_sweeper: Arc<Notify>,
}

#[derive(Debug)]
struct PoolState<S> {
    idle: ExpiringQueue<Box<ClientConnection<S>>>,
    /// Connections with a response that has not ended yet.
    draining: ExpiringQueue<DrainingResponse<S>>,
    /// The task that closes what grows old, while there is anything.
    sweeper: Option<AbortHandle>,
    /// When it looks again.
    next_sweep: Option<Instant>,
}

/// What is kept, each until its time; the oldest in front.
type ExpiringQueue<T> = VecDeque<(T, Instant)>;

/// Evicted connections. Closing one is slow, so that it happens without the lock.
type EvictedConnections<S> = (Vec<Box<ClientConnection<S>>>, Vec<DrainingResponse<S>>);

impl<S> ConnectionPool<S> {
    pub(super) fn new(most: usize) -> Self {
        Self { max_idle: most, state: Mutex::default(), wake_sweeper: Arc::default() }
    }

    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        state.idle.len() + state.draining.len()
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<S>> {
        self.state.lock()
    }
}

impl<S: ClientStream> ConnectionPool<S> {
    /// Takes a connection that is not too old; whether its server has closed it meanwhile is seen by the next exchange.
    pub(super) fn take(&self) -> Option<Box<ClientConnection<S>>> {
        let (now, mut gone) = (Instant::now(), EvictedConnections::default());
        let mut state = self.lock();
        let taken = state.take_idle(now, &mut gone).or_else(|| state.take_drained(now, &mut gone));
        drop(state);
        taken
    }

    /// Keeps a connection for the next request, for as long as the server can be expected to keep it too.
    pub(super) fn put(self: &Arc<Self>, mut connection: Box<ClientConnection<S>>, keep: Duration) {
        if !keep.is_zero() {
            connection.shrink();
            self.store(keep, |state, until| state.idle.push_back((connection, until)));
        }
    }

    /// Keeps a connection with a response that is expected to end soon.
    pub(super) fn put_draining(self: &Arc<Self>, mut ending: DrainingResponse<S>, keep: Duration) {
        if !keep.is_zero() {
            ending.shrink();
            self.store(keep.min(DRAIN_TIMEOUT), |state, until| state.draining.push_back((ending, until)));
        }
    }

    /// Keeps a connection, and starts the sweeper if there is none.
    fn store(self: &Arc<Self>, keep: Duration, add: impl FnOnce(&mut PoolState<S>, Instant)) {
        let Some(until) = Instant::now().checked_add(keep).filter(|_| self.max_idle > 0) else { return };
        let mut state = self.lock();
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            // Outside of a runtime no sweeper could close the connection, and no request use it.
            let Ok(runtime) = Handle::try_current() else { return };
            let sweeping = sweep(Arc::downgrade(self), self.wake_sweeper.clone());
            state.sweeper = Some(runtime.spawn(sweeping).abort_handle());
        }
        if state.next_sweep.is_some_and(|looks_at| until < looks_at) {
            self.wake_sweeper.notify_one();
        }
        add(&mut state, until);
        let mut gone = EvictedConnections::default();
        state.evict_excess(self.max_idle, &mut gone);
        drop(state);
        drop(gone);
    }

    /// Drops expired connections; returns when the next one expires, if any is left.
    fn evict_expired(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let gone: EvictedConnections<S> =
            (drain_expired(&mut state.idle, now), drain_expired(&mut state.draining, now));
        let free = state.idle.iter().map(|(_, until)| *until);
        let next = free.chain(state.draining.iter().map(|(_, until)| *until)).min();
        state.next_sweep = next;
        if next.is_none() {
            state.sweeper = None;
        }
        drop(state);
        drop(gone);
        next
    }
}

impl<S> Default for PoolState<S> {
    fn default() -> Self {
        Self { idle: VecDeque::new(), draining: VecDeque::new(), sweeper: None, next_sweep: None }
    }
}

impl<S: ClientStream> PoolState<S> {
    /// Takes the connection that was used last.
    fn take_idle(
        &mut self,
        now: Instant,
        gone: &mut EvictedConnections<S>,
    ) -> Option<Box<ClientConnection<S>>> {
        while let Some((connection, until)) = self.idle.pop_back() {
            if now < until {
                return Some(connection);
            }
            gone.0.push(connection);
        }
        None
    }

    /// Takes a connection with a response that has ended meanwhile.
    fn take_drained(
        &mut self,
        now: Instant,
        gone: &mut EvictedConnections<S>,
    ) -> Option<Box<ClientConnection<S>>> {
        for index in (0..self.draining.len()).rev() {
            let Some((ending, until)) = self.draining.get_mut(index) else { break };
            let ended = if now < *until { ending.check() } else { DrainStatus::Failed };
            if ended == DrainStatus::Pending {
                continue;
            }
            let (ending, _) = self.draining.remove(index)?;
            if ended == DrainStatus::Done {
                return Some(ending.into_connection());
            }
            gone.1.push(ending);
        }
        None
    }

    /// Takes out what is one too many, the oldest; what still ends before what is free.
    fn evict_excess(&mut self, most: usize, gone: &mut EvictedConnections<S>) {
        if self.draining.len() <= MAX_DRAINING && self.idle.len() + self.draining.len() <= most {
            return;
        }
        match self.draining.pop_front() {
            Some((ending, _)) => gone.1.push(ending),
            None => gone.0.extend(self.idle.pop_front().map(|(connection, _)| connection)),
        }
    }
}

/// Takes out what is too old.
fn drain_expired<T>(kept: &mut ExpiringQueue<T>, now: Instant) -> Vec<T> {
    let (old, young): (ExpiringQueue<T>, _) =
        std::mem::take(kept).into_iter().partition(|(_, until)| *until <= now);
    *kept = young;
    old.into_iter().map(|(one, _)| one).collect()
}

impl<S> Drop for ConnectionPool<S> {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Closes connections that grow old, until there are none or the pool is gone.
async fn sweep<S: ClientStream>(pool: Weak<ConnectionPool<S>>, sooner: Arc<Notify>) {
    loop {
        let Some(next) = pool.upgrade().and_then(|pool| pool.evict_expired()) else { return };
        // Whichever comes first, it is looked again.
        let _ = tokio::time::timeout_at(next, sooner.notified()).await;
    }
}
