use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::link::Link;

/// Connections that nobody uses at the moment.
///
/// The one that was used last is used first, so that the others grow old and go.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest in front.
    idle: VecDeque<Idle>,
    is_swept: bool,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    until: Instant,
}

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    /// Takes a connection that can still be used.
    pub(super) fn take(&self) -> Option<Link> {
        loop {
            let newest = self.lock().idle.pop_back()?;
            let Idle { mut link, until } = newest;
            if Instant::now() < until && link.is_reusable() {
                return Some(link);
            }
        }
    }

    /// Keeps a connection for the next request, for as long as the server can be expected to keep it too.
    pub(super) fn give(self: &Arc<Self>, mut link: Link, keep: Duration) {
        if keep.is_zero() || !link.is_reusable() {
            return;
        }
        // Outside of a runtime nobody could end what grows old, nor use it.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.lock();
        let oldest = if state.idle.len() >= self.most { state.idle.pop_front() } else { None };
        state.idle.push_back(Idle { link, until: Instant::now() + keep });
        let is_swept = std::mem::replace(&mut state.is_swept, true);
        drop(state);
        drop(oldest);
        if !is_swept {
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops what is too old; returns when to look again, unless nothing is left to look after.
    fn drop_old(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let (old, kept): (VecDeque<_>, _) =
            std::mem::take(&mut state.idle).into_iter().partition(|idle| idle.until <= now);
        state.idle = kept;
        let next = state.idle.iter().map(|idle| idle.until).min();
        state.is_swept = next.is_some();
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

/// Closes connections that grow old, until there are none or the pool is gone.
async fn sweep(pool: Weak<Pool>) {
    loop {
        let Some(next) = pool.upgrade().and_then(|pool| pool.drop_old()) else { return };
        tokio::time::sleep_until(next).await;
    }
}
