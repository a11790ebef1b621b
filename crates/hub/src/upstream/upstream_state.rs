use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::config::pinned_era;
use trunkline_config::ServerConfig;
use trunkline_protocol::{Era, Revision};

use super::backoff::Backoff;
use super::caller_profile::{ClientKey, PoolKey};
use super::connection::{ConnectionScope, UpstreamConnection};
use super::era::KnownEras;
use super::eviction::{ConnectionSlot, SlotUse};
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::listing_store::UpstreamListings;
use super::roots::RootsDigest;
use super::status::{KnownServer, UpstreamFailure, UpstreamHealth, UpstreamUnavailable};
use crate::catalogue_file::StoredServer;
use crate::registry::UpstreamCatalogue;

/// Everything about a server that changes while it runs. The lock around it is held for a few instructions at a time.
#[derive(Debug)]
pub(super) struct UpstreamState {
    pub(super) phase: UpstreamPhase,
    pub(super) is_enabled: bool,
    pub(super) attempts: Vec<ConnectionAttempt>,
    pub(super) connections: Vec<Arc<UpstreamConnection>>,
    /// Connections that are on their way out.
    pub(super) closing: usize,
    /// What was found out by the newest connection.
    pub(super) known_server: Option<Arc<KnownServer>>,
    pub(super) eras: KnownEras,
    /// What the predecessor or the previous run found out, on which its listings depend.
    previous_eras: KnownEras,
    pub(super) backoff: Backoff,
    pub(super) failure: Option<UpstreamFailure>,
    /// Whether anybody has asked for what the server offers.
    pub(super) is_list_requested: bool,
    /// Whether the last connection ended because nobody used it, so that there need not be another.
    pub(super) is_idle_stopped: bool,
    /// What it offers.
    pub(super) listings: UpstreamListings,
    /// Whether that is in the registry, so that lists have it.
    pub(super) is_in_registry: bool,
    pub(super) starts: u64,
    attempts_made: u64,
}

/// Whether a server may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamPhase {
    Active,
    /// It was disconnected by hand.
    Disconnected,
    /// It is not configured any more.
    Removed,
}

/// A connection in the making.
#[derive(Debug)]
pub(super) struct ConnectionAttempt {
    pub(super) number: u64,
    pub(super) pool_key: PoolKey,
    pub(super) roots: Option<RootsDigest>,
    pub(super) outcome: watch::Receiver<Option<AttemptOutcome>>,
    pub(super) task: AbortHandle,
}

impl ConnectionAttempt {
    /// Reports whether the connection will serve a party of this place; as long as nothing is known of the server, it may turn
    /// out to speak another era than is tried first.
    pub(super) fn serves(&self, place: &PoolKey, is_unknown: bool) -> bool {
        let is_theirs = [&place.scope, &ConnectionScope::Unassigned].contains(&&self.pool_key.scope);
        self.pool_key.input == place.input && (is_unknown || self.pool_key.era == place.era) && is_theirs
    }
}

/// What came of an attempt.
pub(super) type AttemptOutcome = Result<Arc<UpstreamConnection>, UpstreamFailure>;

/// What was taken off a desk.
pub(super) struct RemovedConnections {
    pub(super) attempts: Vec<AbortHandle>,
    pub(super) connections: Vec<Arc<UpstreamConnection>>,
}

impl UpstreamState {
    pub(super) fn new(is_enabled: bool) -> Self {
        Self {
            phase: UpstreamPhase::Active,
            is_enabled,
            attempts: Vec::new(),
            connections: Vec::new(),
            closing: 0,
            known_server: None,
            eras: KnownEras::default(),
            previous_eras: KnownEras::default(),
            backoff: Backoff::default(),
            failure: None,
            is_list_requested: false,
            is_idle_stopped: false,
            listings: UpstreamListings::default(),
            is_in_registry: false,
            starts: 0,
            attempts_made: 0,
        }
    }

    /// Takes over what the predecessor offered, so that there is no moment without it, and learns soon what is different.
    pub(super) fn inherit(&mut self, before: &Self) {
        let eras = if before.eras.is_empty() { &before.previous_eras } else { &before.eras };
        self.previous_eras = eras.clone();
        self.listings.inherit(&before.listings);
        self.is_in_registry = self.listings.is_provisional();
        self.is_list_requested = before.is_list_requested || self.is_in_registry;
    }

    /// Takes over what the server offered in the previous run, so that lists do not wait until it has started.
    pub(super) fn restore(&mut self, stored: &StoredServer) {
        let (mut eras, mut listings) = (Vec::new(), Vec::new());
        for stored in &stored.eras {
            let Some(revision) = Revision::parse(&stored.revision) else { continue };
            let known = KnownServer::restored(revision, stored.keeps_sessions, stored.instructions.clone());
            eras.push(Arc::new(known));
            listings.extend(stored.listings(revision.era()));
        }
        self.known_server = eras.last().cloned();
        self.previous_eras = KnownEras::restored(eras, &stored.not_spoken(), Instant::now());
        self.listings.restore(listings);
        self.is_in_registry = self.listings.is_provisional();
    }

    /// Refuses a call that cannot be made at all.
    pub(super) fn check(&self) -> Result<(), UpstreamUnavailable> {
        match self.phase {
            UpstreamPhase::Active if self.is_enabled => Ok(()),
            UpstreamPhase::Active => Err(UpstreamUnavailable::Disabled),
            UpstreamPhase::Disconnected => Err(UpstreamUnavailable::Disconnected),
            UpstreamPhase::Removed => Err(UpstreamUnavailable::Removed),
        }
    }

    /// Reports whether anything of the server is offered.
    pub(super) fn is_offered(&self) -> bool {
        self.phase == UpstreamPhase::Active && self.is_enabled
    }

    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts_made += 1;
        self.attempts_made
    }

    /// Returns the connections that can be used.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Arc<UpstreamConnection>> {
        self.connections.iter().filter(|connection| !connection.is_closing())
    }

    /// Returns the connections over which somebody may be told of changes: their own, and those that are everybody's.
    pub(super) fn usable_for_subscription(&self, who: &ConnectionScope) -> Vec<Arc<UpstreamConnection>> {
        let is_theirs = |known: &ConnectionScope| known == who || *known == ConnectionScope::Shared;
        self.usable().filter(|connection| connection.matches_scope(is_theirs)).cloned().collect()
    }

    /// Returns everything that counts against the connections that there may be; those that there are come first, in order.
    /// One that is free may be wanted, and then counts as in use.
    pub(super) fn slots(
        &self,
        is_wanted: impl Fn(&UpstreamConnection) -> bool,
    ) -> impl Iterator<Item = ConnectionSlot<ClientKey>> {
        let made = self.connections.iter().map(move |connection| {
            let state = match connection.slot_use() {
                SlotUse::Idle(_) if is_wanted(connection) => SlotUse::Busy,
                state => state,
            };
            ConnectionSlot { owner: connection.owner(), state }
        });
        let coming = self
            .attempts
            .iter()
            .map(|attempt| ConnectionSlot { owner: attempt.pool_key.owner.clone(), state: SlotUse::Opening });
        let ending =
            std::iter::repeat_n(ConnectionSlot { owner: None, state: SlotUse::Ending }, self.closing);
        made.chain(coming).chain(ending)
    }

    /// Returns how long the server has to be left alone, and why.
    pub(super) fn retry_after(&self, now: Instant) -> Option<(Duration, UpstreamFailure)> {
        let wait = self.backoff.remaining(now);
        self.failure.clone().filter(|_| !wait.is_zero()).map(|failure| (wait, failure))
    }

    /// Takes a connection off, and counts it among those that end; false if it is gone already.
    pub(super) fn begin_close(&mut self, connection: &Arc<UpstreamConnection>) -> bool {
        let before = self.connections.len();
        self.connections.retain(|known| !Arc::ptr_eq(known, connection));
        let was_here = self.connections.len() < before;
        self.closing += usize::from(was_here);
        was_here
    }

    /// Takes everything off. Connections count as ending, since their minders end them.
    pub(super) fn take_all(&mut self) -> RemovedConnections {
        let attempts = self.attempts.drain(..).map(|attempt| attempt.task).collect();
        RemovedConnections { attempts, connections: self.connections.clone() }
    }

    /// Reports whether there is neither a connection nor one that ends, or there may be one again.
    pub(super) fn is_drained(&self) -> bool {
        let is_quiet = self.connections.is_empty() && self.closing == 0 && self.attempts.is_empty();
        is_quiet || self.phase == UpstreamPhase::Active
    }

    /// Takes over which eras the server speaks; reports whether less is offered because it does not speak one any more.
    pub(super) fn learn_eras(&mut self, wanted: Era, known: &Arc<KnownServer>) -> bool {
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
        let known = |era| self.eras.known_in(era).or_else(|| self.previous_eras.known_in(era));
        let revision = |era| known(era).map(|known| known.revision);
        caller.at_upstream(config.sharing, pinned_era(config), eras.supported(Instant::now()), revision)
    }

    /// Returns what a connection lists: what its own session is shown, or without sessions what each caller sees in its era, and
    /// without any caller what is there for those that declare nothing.
    pub(super) fn listing_capabilities(
        &self,
        connection: &UpstreamConnection,
        config: &ServerConfig,
    ) -> Vec<ListingKey> {
        let own = connection.listing_key();
        if connection.client.server().is_stateful() {
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
    pub(super) fn store_catalogue(
        &mut self,
        shown: ListingKey,
        listed: UpstreamCatalogue,
        config: &ServerConfig,
    ) -> bool {
        let is_different = self.listings.store(shown, listed);
        if is_different {
            // What has changed for one may have changed for all, and only a connection says whether it did.
            let connections = self.usable();
            let kept_current: Vec<_> =
                connections.flat_map(|connection| self.listing_capabilities(connection, config)).collect();
            self.listings.retain(|known| known == shown || kept_current.contains(&known));
        }
        // Lists are answered from the registry, which does not have it yet.
        self.is_in_registry &= !is_different;
        is_different
    }

    /// Notes why there is no connection; reports whether less is offered because of it.
    pub(super) fn record_failure(&mut self, failure: UpstreamFailure) -> bool {
        self.failure = Some(failure);
        self.is_idle_stopped = false;
        let is_less = self.listings.drop_provisional();
        self.is_in_registry &= !is_less;
        if self.listings.is_empty() {
            // Lists do not wait for what is not there.
            self.listings.set_late_for_all();
        }
        is_less
    }

    pub(super) fn health(&self) -> UpstreamHealth {
        match self.phase {
            UpstreamPhase::Disconnected | UpstreamPhase::Removed => UpstreamHealth::Disconnected,
            UpstreamPhase::Active if !self.is_enabled => UpstreamHealth::Disabled,
            UpstreamPhase::Active if self.usable().next().is_some() => UpstreamHealth::Ready,
            UpstreamPhase::Active if !self.attempts.is_empty() => UpstreamHealth::Connecting,
            UpstreamPhase::Active => {
                self.failure.as_ref().map_or(UpstreamHealth::Pending, UpstreamFailure::health)
            }
        }
    }
}
