use std::io;
use std::task::{Context, Waker};

use parking_lot::Mutex;
use trunkline_session::Timestamp;

use super::ChannelServer;

/// Why its owner closes a channel.
#[derive(Clone, Copy, Debug)]
enum ChannelClosing {
    /// Another client needs its place.
    Evicted,
    /// An operator has ended its session.
    Ended,
}

/// How a channel is used, for an owner that closes idle ones in favour of other clients.
#[derive(Debug)]
pub(crate) struct ChannelActivity(Mutex<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    is_busy: bool,
    last_used: Timestamp,
    closing: Option<ChannelClosing>,
    /// The task of the channel.
    waker: Option<Waker>,
}

impl ChannelActivity {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(Mutex::new(ActivityState { is_busy: false, last_used: now, closing: None, waker: None }))
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
        state.closing = Some(ChannelClosing::Evicted);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Closes the channel with its calls.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock();
        state.closing.get_or_insert(ChannelClosing::Ended);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Records that messages were taken or sent.
    fn record_use(&self, is_busy: bool, now: Timestamp) {
        let mut state = self.0.lock();
        (state.is_busy, state.last_used) = (is_busy, now);
    }

    /// Returns why the channel is to be closed, if it is, and wakes the task once it is.
    fn poll_closing(&self, cx: &Context<'_>) -> Option<ChannelClosing> {
        let mut state = self.0.lock();
        if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        state.closing
    }
}

impl<C> ChannelServer<C> {
    /// Checks that the channel was closed neither in favour of another client nor by an operator.
    ///
    /// # Errors
    /// It was.
    pub(super) fn check_closing(&self, cx: &Context<'_>) -> io::Result<()> {
        match self.activity.as_ref().and_then(|activity| activity.poll_closing(cx)) {
            None => Ok(()),
            Some(ChannelClosing::Evicted) => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "an idle channel was closed in favour of another client",
            )),
            Some(ChannelClosing::Ended) => {
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, "an operator has ended the session"))
            }
        }
    }

    /// Records the use of the channel in one turn.
    pub(super) fn record_use(&self) {
        if let Some(activity) = &self.activity {
            activity.record_use(!self.calls.is_empty(), crate::server_core::now());
        }
    }
}
