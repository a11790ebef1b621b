use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use trunkline_http1::server::DrainSignal;

/// Shuts a server down: first gracefully, then at once.
///
/// Clones share one state. Draining ends subscriptions and standalone streams, and accepts no new connections and no new
/// calls on channels, while running calls may finish; stopping ends those too. A request that still arrives on an open HTTP
/// connection is served.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    state: Arc<ShutdownState>,
}

#[derive(Debug, Default)]
struct ShutdownState {
    phase: AtomicU8,
    draining: Arc<Notify>,
    stopping: Arc<Notify>,
}

/// What a draining server does with a new call, which depends on its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainPolicy {
    /// Refuses it: a channel ends after the calls that run, and its client knows which were answered.
    Refuse,
    /// Serves it: a balancer that sent it over an open HTTP connection could not know that the server drains, and may not
    /// send it elsewhere. Its connection closes behind the response.
    Serve,
}

const DRAINING: u8 = 1;
const STOPPING: u8 = 2;

impl Shutdown {
    /// Makes a handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to drain.
    pub fn drain(&self) {
        self.state.phase.fetch_max(DRAINING, Ordering::SeqCst);
        self.state.draining.notify_waiters();
    }

    /// Stops at once.
    pub fn stop(&self) {
        self.state.phase.fetch_max(STOPPING, Ordering::SeqCst);
        self.state.draining.notify_waiters();
        self.state.stopping.notify_waiters();
    }

    /// Reports whether draining has begun.
    pub fn is_draining(&self) -> bool {
        self.state.phase.load(Ordering::SeqCst) >= DRAINING
    }

    /// Reports whether the server must stop at once.
    pub fn is_stopping(&self) -> bool {
        self.state.phase.load(Ordering::SeqCst) >= STOPPING
    }

    /// Reports whether a new call of a transport with this policy is refused.
    pub(crate) fn refuses_calls(&self, policy: DrainPolicy) -> bool {
        match policy {
            DrainPolicy::Refuse => self.is_draining(),
            DrainPolicy::Serve => self.is_stopping(),
        }
    }

    /// Waits until draining begins.
    pub async fn draining(&self) {
        wait(&self.state.draining, || self.is_draining()).await;
    }

    /// Waits until the server must stop at once.
    pub async fn stopping(&self) {
        wait(&self.state.stopping, || self.is_stopping()).await;
    }

    /// Returns a future that a stream can hold; ready when draining begins after this was called.
    pub(crate) fn watch_draining(&self) -> OwnedNotified {
        self.state.draining.clone().notified_owned()
    }

    /// Returns a future that a driver can hold; ready when the server must stop after this was called.
    pub(crate) fn watch_stopping(&self) -> OwnedNotified {
        self.state.stopping.clone().notified_owned()
    }
}

impl DrainSignal for Shutdown {
    type Draining = OwnedNotified;

    fn is_draining(&self) -> bool {
        self.is_draining()
    }

    fn watch_draining(&self) -> OwnedNotified {
        self.watch_draining()
    }
}

async fn wait(notify: &Notify, done: impl Fn() -> bool) {
    let notified = notify.notified();
    if !done() {
        notified.await;
    }
}
