use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::config::pinned_era;
use trunkline_config::ServerConfig;
use trunkline_protocol::{Era, Revision};

use super::backoff::Backoff;
use super::connection::{Connection, Who};
use super::era::KnownEras;
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::listings::Listings;
use super::party::{ClientKey, Place};
use super::room::{Slot, Use};
use super::roots::RootsDigest;
use super::state::{Failure, Known, State, Unavailable};
use crate::catalogue_file::StoredServer;
use crate::registry::Catalogue;

/// Everything about a server that changes while it runs. The lock around it is held for a few instructions at a time.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) phase: Phase,
    pub(super) is_enabled: bool,
    pub(super) attempts: Vec<Attempt>,
    pub(super) connections: Vec<Arc<Connection>>,
    /// Connections that are on their way out.
    pub(super) ending: usize,
    /// What was found out by the newest connection.
    pub(super) known: Option<Arc<Known>>,
    pub(super) eras: KnownEras,
    /// What the predecessor or the previous run found out, on which its listings depend.
    previous_eras: KnownEras,
    pub(super) backoff: Backoff,
    pub(super) failure: Option<Failure>,
    /// Whether anybody has asked for what the server offers.
    pub(super) is_wanted: bool,
    /// Whether the last connection ended because nobody used it, so that there need not be another.
    pub(super) is_resting: bool,
    /// What it offers.
    pub(super) listings: Listings,
    /// Whether that is in the registry, so that lists have it.
    pub(super) is_shown: bool,
    pub(super) starts: u64,
    attempts_made: u64,
}

/// Whether a server may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// It was disconnected by hand.
    Disconnected,
    /// It is not configured any more.
    Removed,
}

/// A connection in the making.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) place: Place,
    pub(super) roots: Option<RootsDigest>,
    pub(super) done: watch::Receiver<Option<Done>>,
    pub(super) task: AbortHandle,
}

impl Attempt {
    /// Reports whether the connection will serve a party of this place; as long as nothing is known of the server, it may turn
    /// out to speak another era than is tried first.
    pub(super) fn serves(&self, place: &Place, is_unknown: bool) -> bool {
        let is_theirs = [&place.who, &Who::Nobody].contains(&&self.place.who);
        self.place.input == place.input && (is_unknown || self.place.era == place.era) && is_theirs
    }
}

/// What came of an attempt.
pub(super) type Done = Result<Arc<Connection>, Failure>;

/// What was taken off a desk.
pub(super) struct Taken {
    pub(super) attempts: Vec<AbortHandle>,
    pub(super) connections: Vec<Arc<Connection>>,
}

impl Desk {
    pub(super) fn new(is_enabled: bool) -> Self {
        Self {
            phase: Phase::Open,
            is_enabled,
            attempts: Vec::new(),
            connections: Vec::new(),
            ending: 0,
            known: None,
            eras: KnownEras::default(),
            previous_eras: KnownEras::default(),
            backoff: Backoff::default(),
            failure: None,
            is_wanted: false,
            is_resting: false,
            listings: Listings::default(),
            is_shown: false,
            starts: 0,
            attempts_made: 0,
        }
    }

    /// Takes over what the predecessor offered, so that there is no moment without it, and learns soon what is different.
    pub(super) fn inherit(&mut self, before: &Self) {
        let eras = if before.eras.is_empty() { &before.previous_eras } else { &before.eras };
        self.previous_eras = eras.clone();
        self.listings.inherit(&before.listings);
        self.is_shown = self.listings.is_provisional();
        self.is_wanted = before.is_wanted || self.is_shown;
    }

    /// Takes over what the server offered in the previous run, so that lists do not wait until it has started.
    pub(super) fn restore(&mut self, stored: &StoredServer) {
        let (mut eras, mut listings) = (Vec::new(), Vec::new());
        for stored in &stored.eras {
            let Some(revision) = Revision::parse(&stored.revision) else { continue };
            let known = Known::restored(revision, stored.keeps_sessions, stored.instructions.clone());
            eras.push(Arc::new(known));
            listings.extend(stored.listings(revision.era()));
        }
        self.known = eras.last().cloned();
        self.previous_eras = KnownEras::restored(eras, &stored.not_spoken(), Instant::now());
        self.listings.restore(listings);
        self.is_shown = self.listings.is_provisional();
    }

    /// Refuses a call that cannot be made at all.
    pub(super) fn check(&self) -> Result<(), Unavailable> {
        match self.phase {
            Phase::Open if self.is_enabled => Ok(()),
            Phase::Open => Err(Unavailable::Disabled),
            Phase::Disconnected => Err(Unavailable::Disconnected),
            Phase::Removed => Err(Unavailable::Removed),
        }
    }

    /// Reports whether anything of the server is offered.
    pub(super) fn offers(&self) -> bool {
        self.phase == Phase::Open && self.is_enabled
    }

    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts_made += 1;
        self.attempts_made
    }

    /// Returns the connections that can be used.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.connections.iter().filter(|connection| !connection.is_closing())
    }

    /// Returns the connections over which somebody may be told of changes: their own, and those that are everybody's.
    pub(super) fn usable_to_watch(&self, who: &Who) -> Vec<Arc<Connection>> {
        let is_theirs = |known: &Who| known == who || *known == Who::Everybody;
        self.usable().filter(|connection| connection.is_whose(is_theirs)).cloned().collect()
    }

    /// Returns everything that counts against the connections that there may be; those that there are come first, in order.
    /// One that is free may be wanted, and then counts as in use.
    pub(super) fn slots(
        &self,
        is_wanted: impl Fn(&Connection) -> bool,
    ) -> impl Iterator<Item = Slot<ClientKey>> {
        let made = self.connections.iter().map(move |connection| {
            let state = match connection.state() {
                Use::Idle(_) if is_wanted(connection) => Use::Busy,
                state => state,
            };
            Slot { owner: connection.owner(), state }
        });
        let coming = self
            .attempts
            .iter()
            .map(|attempt| Slot { owner: attempt.place.owner.clone(), state: Use::Opening });
        let ending = std::iter::repeat_n(Slot { owner: None, state: Use::Ending }, self.ending);
        made.chain(coming).chain(ending)
    }

    /// Returns how long the server has to be left alone, and why.
    pub(super) fn left_alone(&self, now: Instant) -> Option<(Duration, Failure)> {
        let wait = self.backoff.remaining(now);
        self.failure.clone().filter(|_| !wait.is_zero()).map(|failure| (wait, failure))
    }

    /// Takes a connection off, and counts it among those that end; false if it is gone already.
    pub(super) fn begin_end(&mut self, connection: &Arc<Connection>) -> bool {
        let before = self.connections.len();
        self.connections.retain(|known| !Arc::ptr_eq(known, connection));
        let was_here = self.connections.len() < before;
        self.ending += usize::from(was_here);
        was_here
    }

    /// Takes everything off. Connections count as ending, since their minders end them.
    pub(super) fn take_slots(&mut self) -> Taken {
        let attempts = self.attempts.drain(..).map(|attempt| attempt.task).collect();
        Taken { attempts, connections: self.connections.clone() }
    }

    /// Reports whether there is neither a connection nor one that ends, or there may be one again.
    pub(super) fn is_settled_down(&self) -> bool {
        let is_quiet = self.connections.is_empty() && self.ending == 0 && self.attempts.is_empty();
        is_quiet || self.phase == Phase::Open
    }

    /// Takes over which eras the server speaks; reports whether less is offered because it does not speak one any more.
    pub(super) fn learn_eras(&mut self, wanted: Era, known: &Arc<Known>) -> bool {
        let now = Instant::now();
        self.eras.learn(wanted, known, now);
        let mut is_less = false;
        for era in self.eras.not_spoken(now) {
            is_less |= self.listings.drop_era(era);
        }
        is_less
    }

    /// Returns the key of the listing that a caller sees, given what is known of the server by now.
    pub(super) fn listing_key(&self, caller: ListingKey, config: &ServerConfig) -> ListingKey {
        let eras = if self.eras.is_empty() { &self.previous_eras } else { &self.eras };
        let known = |era| self.eras.of(era).or_else(|| self.previous_eras.of(era));
        let revision = |era| known(era).map(|known| known.revision);
        caller.at_upstream(config.share, pinned_era(config), eras.spoken(Instant::now()), revision)
    }

    /// Returns what a connection lists: what its own session is shown, or without sessions what each caller sees in its era, and
    /// without any caller what is there for those that declare nothing.
    pub(super) fn listed_over(&self, connection: &Connection, config: &ServerConfig) -> Vec<ListingKey> {
        let own = connection.listing_key();
        if connection.client.server().keeps_sessions() {
            return vec![own];
        }
        let mut keys: Vec<ListingKey> = Vec::new();
        for caller in self.listings.requested() {
            let key = self.listing_key(*caller, config);
            if key.era == own.era && !keys.contains(&key) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            keys.push(ListingKey { input: InputSet::default(), ..own });
        }
        keys
    }

    /// Takes over a listing; reports whether what is offered is different now.
    pub(super) fn take_catalogue(
        &mut self,
        shown: ListingKey,
        listed: Catalogue,
        config: &ServerConfig,
    ) -> bool {
        let is_different = self.listings.store(shown, listed);
        if is_different {
            // What has changed for one may have changed for all, and only a connection says whether it did.
            let connections = self.usable();
            let kept_current: Vec<_> =
                connections.flat_map(|connection| self.listed_over(connection, config)).collect();
            self.listings.retain(|known| known == shown || kept_current.contains(&known));
        }
        // Lists are answered from the registry, which does not have it yet.
        self.is_shown &= !is_different;
        is_different
    }

    /// Notes why there is no connection; reports whether less is offered because of it.
    pub(super) fn fail(&mut self, failure: Failure) -> bool {
        self.failure = Some(failure);
        self.is_resting = false;
        let is_less = self.listings.drop_provisional();
        self.is_shown &= !is_less;
        if self.listings.is_empty() {
            // Lists do not wait for what is not there.
            self.listings.set_late_for_all();
        }
        is_less
    }

    pub(super) fn state(&self) -> State {
        match self.phase {
            Phase::Disconnected | Phase::Removed => State::Disconnected,
            Phase::Open if !self.is_enabled => State::Disabled,
            Phase::Open if self.usable().next().is_some() => State::Ready,
            Phase::Open if !self.attempts.is_empty() => State::Connecting,
            Phase::Open => self.failure.as_ref().map_or(State::Pending, Failure::state),
        }
    }
}
