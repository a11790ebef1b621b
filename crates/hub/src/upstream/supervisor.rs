//! The supervisor of one upstream: watches its connections, and reconnects it with backoff.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};
use trunkline_config::StartMode;

use super::caller_profile::PoolKey;
use super::connection::UpstreamConnection;
use super::lifecycle::{IdleCause, UpstreamLifecycle};
use super::upstream_state::UpstreamState;
use super::{Upstream, connection_watch};

pub(super) fn spawn(upstream: &Arc<Upstream>) -> AbortHandle {
    let supervising = supervise(Arc::downgrade(upstream), upstream.change_counter.subscribe());
    tokio::spawn(supervising).abort_handle()
}

/// Supervises an upstream until it is dropped. Holds no strong reference to it while it waits.
///
/// Each connection is watched by a task, so that a slow list of one does not delay the others; they end with this one.
async fn supervise(upstream: Weak<Upstream>, mut state_changes: watch::Receiver<u64>) {
    let mut watches = JoinSet::new();
    loop {
        let Some((opened, due)) = upstream.upgrade().map(|upstream| upstream.supervise_once()) else {
            return;
        };
        for connection in opened {
            watches.spawn(connection_watch::watch(upstream.clone(), connection));
        }
        let retry = async {
            match due {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = retry => {}
            changed = state_changes.changed() => if changed.is_err() { return },
            Some(_) = watches.join_next() => {}
        }
    }
}

impl Upstream {
    /// Connects if it is due. Returns the new connections to watch, and the remaining backoff.
    fn supervise_once(self: &Arc<Self>) -> (Vec<Arc<UpstreamConnection>>, Option<Duration>) {
        let mut state = self.lock();
        let opened = std::mem::take(&mut state.unwatched);
        let due = self.connect_due(&state, Instant::now());
        if due != Some(Duration::ZERO) {
            return (opened, due);
        }
        drop(self.start_attempt(&mut state, PoolKey::unassigned(), None));
        drop(state);
        self.notify_changed();
        (opened, None)
    }

    /// Returns when the server has to be connected without a call, if it has to be: because it is eager, or because
    /// its lists were requested and are not known yet. Subscription tasks connect by themselves.
    fn connect_due(&self, state: &UpstreamState, now: Instant) -> Option<Duration> {
        if self.is_draining.load(Ordering::Acquire) {
            return None;
        }
        let is_eager = || self.config.load().start == StartMode::Eager;
        let is_unknown = state.is_list_requested && state.listings.is_empty();
        let (is_needed, wait) = match state.lifecycle() {
            UpstreamLifecycle::Idle(IdleCause::IdleTimeout) => (is_unknown, Duration::ZERO),
            UpstreamLifecycle::Idle(IdleCause::NotNeeded) => (is_unknown || is_eager(), Duration::ZERO),
            UpstreamLifecycle::BackingOff(delay) => {
                (is_unknown || is_eager(), delay.until.saturating_duration_since(now))
            }
            UpstreamLifecycle::Connecting { .. }
            | UpstreamLifecycle::Ready { .. }
            | UpstreamLifecycle::NeedsAuth(_)
            | UpstreamLifecycle::Disconnected
            | UpstreamLifecycle::Removed => return None,
        };
        (is_needed && state.is_offered()).then_some(wait)
    }
}
