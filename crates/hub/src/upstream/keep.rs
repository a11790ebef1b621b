//! The task that keeps a server connected which should be, and connecting by hand.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use trunkline_config::Start;

use super::Upstream;
use super::desk::{Desk, Phase};
use super::party::Place;

pub(super) fn spawn(upstream: &Arc<Upstream>) -> AbortHandle {
    let keeping = keep(Arc::downgrade(upstream), upstream.pulse.subscribe());
    tokio::spawn(keeping).abort_handle()
}

async fn keep(upstream: Weak<Upstream>, mut pulse: watch::Receiver<u64>) {
    loop {
        let Some(due) = upstream.upgrade().map(|upstream| upstream.tend()) else { return };
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
    fn tend(self: &Arc<Self>) -> Option<Duration> {
        let mut desk = self.lock();
        if !self.should_be_connected(&desk) || desk.usable().next().is_some() || !desk.attempts.is_empty() {
            return None;
        }
        let wait = desk.backoff.remaining(Instant::now());
        if !wait.is_zero() {
            return Some(wait);
        }
        drop(self.start(&mut desk, Place::nobodys(), None));
        drop(desk);
        self.beat();
        None
    }

    /// Reports whether a server is connected to without anybody calling it: because it is to be there from the start, or
    /// because it is not known yet what it offers. Whoever watches resources sees to it by itself.
    fn should_be_connected(&self, desk: &Desk) -> bool {
        let is_eager = self.config.load().start == Start::Eager && !desk.is_resting;
        let is_unknown = desk.is_wanted && desk.listings.is_empty();
        desk.offers() && (is_eager || is_unknown)
    }

    // By hand.

    /// Connects now, whatever was before, and says why not if that fails.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_by_hand(self: &Arc<Self>) -> Result<(), String> {
        self.change(|desk| {
            if desk.phase == Phase::Disconnected {
                desk.phase = Phase::Open;
            }
            desk.backoff.forget();
            desk.eras.forget_spoken();
            desk.listings.forget_late();
        });
        self.connect_now().await
    }

    /// Connects, and says why not if that fails.
    ///
    /// # Errors
    /// The reason.
    pub(crate) async fn connect_now(self: &Arc<Self>) -> Result<(), String> {
        self.change(|desk| desk.is_wanted = true);
        match self.lease_to_hub().await {
            Ok(_) => {
                self.listed().await;
                // It may have turned out to be of no use, or be gone already.
                let desk = self.lock();
                let failure = desk.failure.as_ref().filter(|_| desk.usable().next().is_none());
                failure.map_or(Ok(()), |failure| Err(failure.reason.clone()))
            }
            // One that is switched off is not connected to, and that is no failure.
            Err(super::Unavailable::Disabled) => Ok(()),
            Err(unavailable) => Err(unavailable.to_string()),
        }
    }

    /// Waits until a server that is connected has said what it offers.
    async fn listed(&self) {
        let mut pulse = self.pulse.subscribe();
        let listed = pulse.wait_for(|_| {
            let desk = self.lock();
            (desk.is_shown && !desk.listings.is_empty()) || desk.usable().next().is_none()
        });
        let _ = tokio::time::timeout(self.options.limits.catalogue_within, listed).await;
    }
}
