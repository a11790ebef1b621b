use std::io;
use std::task::{Context, Waker};

use parking_lot::Mutex;
use trunkline_session::Timestamp;

use super::ChannelServer;

/// How a channel is used, for an owner that closes idle ones in favour of other clients.
#[derive(Debug)]
pub(crate) struct ChannelActivity(Mutex<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    is_busy: bool,
    last_used: Timestamp,
    is_evicted: bool,
    /// The task of the channel.
    waker: Option<Waker>,
}

impl ChannelActivity {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(Mutex::new(ActivityState { is_busy: false, last_used: now, is_evicted: false, waker: None }))
    }

    /// Returns when the channel was last used; `None` while a call runs.
    pub(crate) fn idle_since(&self) -> Option<Timestamp> {
        let state = self.0.lock();
        (!state.is_busy).then_some(state.last_used)
    }

    /// Closes the channel, unless a call runs; reports whether it does.
    pub(crate) fn evict_if_idle(&self) -> bool {
        let mut state = self.0.lock();
        if state.is_busy {
            return false;
        }
        state.is_evicted = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Records that messages were taken or sent.
    fn record_use(&self, is_busy: bool, now: Timestamp) {
        let mut state = self.0.lock();
        (state.is_busy, state.last_used) = (is_busy, now);
    }

    /// Reports whether the channel is to be closed, and wakes the task once it is.
    fn poll_evicted(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        state.is_evicted
    }
}

impl<C> ChannelServer<C> {
    /// Checks that the channel was not closed in favour of another client.
    ///
    /// # Errors
    /// It was.
    pub(super) fn check_evicted(&self, cx: &Context<'_>) -> io::Result<()> {
        match &self.activity {
            Some(activity) if activity.poll_evicted(cx) => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "an idle channel was closed in favour of another client",
            )),
            _ => Ok(()),
        }
    }

    /// Records the use of the channel in one turn.
    pub(super) fn record_use(&self) {
        if let Some(activity) = &self.activity {
            activity.record_use(!self.calls.is_empty(), crate::server_core::now());
        }
    }
}
