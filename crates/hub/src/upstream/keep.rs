//! The task that keeps a server connected which should be, and what waits for the first listing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use trunkline_config::Start;

use super::Upstream;
use super::desk::{Desk, Phase};
use super::input::InputSet;
use super::party::{Party, Place};

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
        let is_unknown = desk.is_wanted && (desk.catalogue.is_none() || desk.is_inherited);
        desk.offers() && (is_eager || is_unknown)
    }

    /// Waits until what the server offers is known, or it is certain that it will not be soon.
    pub(crate) async fn first_listing(self: &Arc<Self>, party: Option<&Party>) {
        let mut pulse = self.pulse.subscribe();
        loop {
            if self.is_settled(party) || pulse.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reports whether there is nothing to wait for; begins to connect where nobody has.
    fn is_settled(self: &Arc<Self>, party: Option<&Party>) -> bool {
        let mut desk = self.lock();
        if !desk.offers() || desk.is_shown || desk.is_late {
            return true;
        }
        desk.is_wanted = true;
        if desk.usable().next().is_some() || !desk.attempts.is_empty() {
            return false;
        }
        if desk.left_alone(Instant::now()).is_some() {
            return true;
        }
        let place = match party {
            Some(party) => self.place_of(party, &desk.eras),
            None => Place::nobodys(),
        };
        drop(self.start(&mut desk, place, party));
        drop(desk);
        self.beat();
        false
    }

    /// Notes that the first lists went out without the server.
    pub(crate) fn is_late(&self) {
        let mut desk = self.lock();
        desk.is_late = !desk.is_shown;
    }

    /// Reports whether it is not known yet what the server offers, although it should be.
    pub(crate) fn is_unlisted(&self) -> bool {
        let desk = self.lock();
        desk.offers() && !desk.is_shown && !desk.is_late
    }

    // For one caller.

    /// Reports whether what the server offers was learnt for clients that can be asked less than this one, so that there may
    /// be more for it.
    pub(crate) fn shows_less_than(&self, party: &Party) -> bool {
        let input = self.input_of(party);
        let desk = self.lock();
        desk.offers() && desk.is_shown && !desk.is_listed_for(input)
    }

    /// Waits until it is known what the server offers to somebody, or there is no connection for them.
    pub(crate) async fn listing_for(self: &Arc<Self>, party: &Party) {
        if !self.shows_less_than(party) {
            return;
        }
        let mut pulse = self.pulse.subscribe();
        let Ok(lease) = self.lease(party).await else { return };
        let listed = pulse.wait_for(|_| !self.shows_less_than(party));
        tokio::select! {
            // The sender is `self`, so that this waits and never fails.
            _ = listed => {}
            _ = lease.client().closed() => {}
        }
    }

    /// Notes that lists went out to somebody without what may be there for them.
    pub(crate) fn is_late_for(&self, party: &Party) {
        let input = self.input_of(party);
        self.lock().is_late_for(input);
    }

    fn input_of(&self, party: &Party) -> InputSet {
        self.place_of(party, &self.lock().eras).input
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
            desk.is_late = false;
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
            (desk.is_shown && !desk.is_inherited) || desk.usable().next().is_none()
        });
        let _ = tokio::time::timeout(self.options.limits.catalogue_within, listed).await;
    }
}
