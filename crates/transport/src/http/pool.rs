use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::ending::{Ended, Ending};
use super::link::Link;

/// How long the end of a response is waited for that has said all that matters.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// How many such responses are waited for. All are looked at when a connection is wanted and none is free.
const MOST_ENDING: usize = 128;

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
    free: Kept<Box<Link>>,
    /// Connections whose response is not quite over.
    ending: Kept<Ending>,
    /// The task that closes what grows old, while there is anything.
    sweeper: Option<AbortHandle>,
    /// When it looks again.
    looks_at: Option<Instant>,
}

/// What is kept, each until its time; the oldest in front.
type Kept<T> = VecDeque<(T, Instant)>;

/// What nobody wants any more. To close a connection takes its time, for which no lock is held.
type Gone = (Vec<Box<Link>>, Vec<Ending>);

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), sooner: Arc::default() }
    }

    /// Takes a connection that is not too old; whether its server has left meanwhile is seen by whoever uses it.
    pub(super) fn take(&self) -> Option<Box<Link>> {
        let (now, mut gone) = (Instant::now(), Gone::default());
        let mut state = self.lock();
        let taken = state.take_free(now, &mut gone).or_else(|| state.take_ended(now, &mut gone));
        drop(state);
        taken
    }

    /// Keeps a connection for the next request, for as long as the server can be expected to keep it too.
    pub(super) fn give(self: &Arc<Self>, mut link: Box<Link>, keep: Duration) {
        if !keep.is_zero() {
            link.rest();
            self.keep(keep, |state, until| state.free.push_back((link, until)));
        }
    }

    /// Keeps a connection whose response has said all that matters, in the expectation that it ends soon.
    pub(super) fn give_ending(self: &Arc<Self>, mut ending: Ending, keep: Duration) {
        if !keep.is_zero() {
            ending.rest();
            self.keep(keep.min(ENDS_WITHIN), |state, until| state.ending.push_back((ending, until)));
        }
    }

    /// Has something kept, and somebody look after it.
    fn keep(self: &Arc<Self>, keep: Duration, add: impl FnOnce(&mut State, Instant)) {
        let Some(until) = Instant::now().checked_add(keep).filter(|_| self.most > 0) else { return };
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
        add(&mut state, until);
        let mut gone = Gone::default();
        state.take_excess(self.most, &mut gone);
        drop(state);
        drop(gone);
    }

    /// Drops what is too old; returns when to look again, unless nothing is left to look after.
    fn drop_old(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let gone: Gone = (drain_old(&mut state.free, now), drain_old(&mut state.ending, now));
        let free = state.free.iter().map(|(_, until)| *until);
        let next = free.chain(state.ending.iter().map(|(_, until)| *until)).min();
        state.looks_at = next;
        if next.is_none() {
            state.sweeper = None;
        }
        drop(state);
        drop(gone);
        next
    }

    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        state.free.len() + state.ending.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Takes the connection that was used last.
    fn take_free(&mut self, now: Instant, gone: &mut Gone) -> Option<Box<Link>> {
        while let Some((link, until)) = self.free.pop_back() {
            if now < until {
                return Some(link);
            }
            gone.0.push(link);
        }
        None
    }

    /// Takes a connection whose response has ended meanwhile.
    fn take_ended(&mut self, now: Instant, gone: &mut Gone) -> Option<Box<Link>> {
        for index in (0..self.ending.len()).rev() {
            let Some((ending, until)) = self.ending.get_mut(index) else { break };
            let ended = if now < *until { ending.look() } else { Ended::Wrong };
            if ended == Ended::NotYet {
                continue;
            }
            let (ending, _) = self.ending.remove(index)?;
            if ended == Ended::Free {
                return Some(ending.into_link());
            }
            gone.1.push(ending);
        }
        None
    }

    /// Takes out what is one too many, the oldest; what still ends before what is free.
    fn take_excess(&mut self, most: usize, gone: &mut Gone) {
        if self.ending.len() <= MOST_ENDING && self.free.len() + self.ending.len() <= most {
            return;
        }
        match self.ending.pop_front() {
            Some((ending, _)) => gone.1.push(ending),
            None => gone.0.extend(self.free.pop_front().map(|(link, _)| link)),
        }
    }
}

/// Takes out what is too old.
fn drain_old<T>(kept: &mut Kept<T>, now: Instant) -> Vec<T> {
    let (old, young): (Kept<T>, _) = std::mem::take(kept).into_iter().partition(|(_, until)| *until <= now);
    *kept = young;
    old.into_iter().map(|(one, _)| one).collect()
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
