//! The task that keeps a server connected which should be, and connecting by hand.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use trunkline_config::StartMode;

use super::Upstream;
use super::caller_profile::PoolKey;
use super::upstream_state::{UpstreamPhase, UpstreamState};

pub(super) fn spawn(upstream: &Arc<Upstream>) -> AbortHandle {
    let keeping = reconnect_loop(Arc::downgrade(upstream), upstream.change_counter.subscribe());
    tokio::spawn(keeping).abort_handle()
}

async fn reconnect_loop(upstream: Weak<Upstream>, mut pulse: watch::Receiver<u64>) {
    loop {
        let Some(due) = upstream.upgrade().map(|upstream| upstream.connect_if_due()) else { return };
        let again = async {
            match due {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = again => {}
            changed = pulse.changed() => if changed.is_err() { return },
        }
    }
}

impl Upstream {
    /// Connects if it is time to, and returns how long it is until then if not.
    fn connect_if_due(self: &Arc<Self>) -> Option<Duration> {
        let mut desk = self.lock();
        if !self.should_be_connected(&desk) || desk.usable().next().is_some() || !desk.attempts.is_empty() {
            return None;
        }
        let wait = desk.backoff.remaining(Instant::now());
        if !wait.is_zero() {
            return Some(wait);
        }
        drop(self.start_attempt(&mut desk, PoolKey::unassigned(), None));
        drop(desk);
        self.notify_changed();
        None
    }

    /// Reports whether a server is connected to without anybody calling it: because it is to be there from the start, or
    /// because it is not known yet what it offers. Whoever watches resources sees to it by itself.
    fn should_be_connected(&self, desk: &UpstreamState) -> bool {
        let is_eager = self.config.load().start == StartMode::Eager && !desk.is_idle_stopped;
        let is_unknown = desk.is_list_requested && desk.listings.is_empty();
        desk.is_offered() && (is_eager || is_unknown)
    }

    // By hand.

    /// Connects now, whatever was before, and says why not if that fails.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_manually(self: &Arc<Self>) -> Result<(), String> {
        self.update_state(|desk| {
            if desk.phase == UpstreamPhase::Disconnected {
                desk.phase = UpstreamPhase::Active;
            }
            desk.backoff.reset();
            desk.eras.forget_unsupported();
            desk.listings.forget_late();
        });
        self.connect_now().await
    }

    /// Connects, and says why not if that fails.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_now(self: &Arc<Self>) -> Result<(), String> {
        self.update_state(|desk| desk.is_list_requested = true);
        match self.lease_for_hub().await {
            Ok(_) => {
                self.wait_listed().await;
                // It may have turned out to be of no use, or be gone already.
                let desk = self.lock();
                let failure = desk.failure.as_ref().filter(|_| desk.usable().next().is_none());
                failure.map_or(Ok(()), |failure| Err(failure.reason.clone()))
            }
            // One that is switched off is not connected to, and that is no failure.
            Err(super::UpstreamUnavailable::Disabled) => Ok(()),
            Err(unavailable) => Err(unavailable.to_string()),
        }
    }

    /// Waits until a server that is connected has said what it offers.
    async fn wait_listed(&self) {
        let mut pulse = self.change_counter.subscribe();
        let listed = pulse.wait_for(|_| {
            let desk = self.lock();
            (desk.is_in_registry && !desk.listings.is_empty()) || desk.usable().next().is_none()
        });
        let _ = tokio::time::timeout(self.options.limits.listing_timeout, listed).await;
    }
}
