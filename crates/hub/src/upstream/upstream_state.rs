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

/// The mutable state of an upstream. Its lock is held for a few instructions at a time.
#[derive(Debug)]
pub(super) struct UpstreamState {
    pub(super) phase: UpstreamPhase,
    pub(super) is_enabled: bool,
    pub(super) attempts: Vec<ConnectionAttempt>,
    pub(super) connections: Vec<Arc<UpstreamConnection>>,
    /// The number of connections that are closing.
    pub(super) closing: usize,
    /// What the newest connection learned about the server.
    pub(super) known_server: Option<Arc<KnownServer>>,
    pub(super) eras: KnownEras,
    /// What the predecessor or the previous run learned, on which the provisional listings depend.
    previous_eras: KnownEras,
    pub(super) backoff: Backoff,
    pub(super) failure: Option<UpstreamFailure>,
    /// Whether the server's lists were requested.
    pub(super) is_list_requested: bool,
    /// Whether the last connection was closed by the idle timeout, so that it is not reopened without need.
    pub(super) is_idle_stopped: bool,
    /// Its listings.
    pub(super) listings: UpstreamListings,
    /// Whether they are in the registry, from which list requests are answered.
    pub(super) is_in_registry: bool,
    pub(super) starts: u64,
    attempts_made: u64,
}

/// Whether a server may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamPhase {
    Active,
    /// It was disconnected manually.
    Disconnected,
    /// It is not configured any more.
    Removed,
}

/// A running attempt to connect.
#[derive(Debug)]
pub(super) struct ConnectionAttempt {
    pub(super) number: u64,
    pub(super) pool_key: PoolKey,
    pub(super) roots: Option<RootsDigest>,
    pub(super) outcome: watch::Receiver<Option<AttemptOutcome>>,
    pub(super) task: AbortHandle,
}

impl ConnectionAttempt {
    /// Reports whether the connection will belong to the pool of a key; as long as the server is unknown, it may turn
    /// out to support another era than the one tried first.
    pub(super) fn serves(&self, key: &PoolKey, is_unknown: bool) -> bool {
        let is_theirs = [&key.scope, &ConnectionScope::Unassigned].contains(&&self.pool_key.scope);
        self.pool_key.input == key.input && (is_unknown || self.pool_key.era == key.era) && is_theirs
    }
}

/// The outcome of an attempt.
pub(super) type AttemptOutcome = Result<Arc<UpstreamConnection>, UpstreamFailure>;

/// The attempts and connections that were removed from a state.
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

    /// Inherits the predecessor's listings, so that the items never disappear, and requests new lists.
    pub(super) fn inherit(&mut self, before: &Self) {
        let eras = if before.eras.is_empty() { &before.previous_eras } else { &before.eras };
        self.previous_eras = eras.clone();
        self.listings.inherit(&before.listings);
        self.is_in_registry = self.listings.is_provisional();
        self.is_list_requested = before.is_list_requested || self.is_in_registry;
    }

    /// Restores the listings of the previous run, so that list requests do not wait until the server has started.
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

    /// Checks that the server is enabled and may be connected.
    pub(super) fn check(&self) -> Result<(), UpstreamUnavailable> {
        match self.phase {
            UpstreamPhase::Active if self.is_enabled => Ok(()),
            UpstreamPhase::Active => Err(UpstreamUnavailable::Disabled),
            UpstreamPhase::Disconnected => Err(UpstreamUnavailable::Disconnected),
            UpstreamPhase::Removed => Err(UpstreamUnavailable::Removed),
        }
    }

    /// Reports whether the server's items are exposed.
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

    /// Returns the connections for subscriptions of a scope: its own, and the shared ones.
    pub(super) fn usable_for_subscription(&self, scope: &ConnectionScope) -> Vec<Arc<UpstreamConnection>> {
        let is_theirs = |known: &ConnectionScope| known == scope || *known == ConnectionScope::Shared;
        self.usable().filter(|connection| connection.matches_scope(is_theirs)).cloned().collect()
    }

    /// Returns all slots that count against the connection limit; the open connections come first, in order. An idle
    /// connection that is wanted counts as busy.
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

    /// Returns the remaining backoff, with the failure that caused it.
    pub(super) fn retry_after(&self, now: Instant) -> Option<(Duration, UpstreamFailure)> {
        let wait = self.backoff.remaining(now);
        self.failure.clone().filter(|_| !wait.is_zero()).map(|failure| (wait, failure))
    }

    /// Removes a connection and counts it as closing; false if it was removed already.
    pub(super) fn begin_close(&mut self, connection: &Arc<UpstreamConnection>) -> bool {
        let before = self.connections.len();
        self.connections.retain(|known| !Arc::ptr_eq(known, connection));
        let was_here = self.connections.len() < before;
        self.closing += usize::from(was_here);
        was_here
    }

    /// Removes all attempts, and returns them with the connections. The connections stay until their supervisors
    /// close them.
    pub(super) fn take_all(&mut self) -> RemovedConnections {
        let attempts = self.attempts.drain(..).map(|attempt| attempt.task).collect();
        RemovedConnections { attempts, connections: self.connections.clone() }
    }

    /// Reports whether no connection is open, closing or being opened, or whether the server is active again.
    pub(super) fn is_drained(&self) -> bool {
        let is_quiet = self.connections.is_empty() && self.closing == 0 && self.attempts.is_empty();
        is_quiet || self.phase == UpstreamPhase::Active
    }

    /// Records the eras that the server supports; reports whether listings were dropped because it does not support
    /// one any more.
    pub(super) fn learn_eras(&mut self, wanted: Era, known: &Arc<KnownServer>) -> bool {
        let now = Instant::now();
        self.eras.learn(wanted, known, now);
        let mut is_less = false;
        for era in self.eras.not_spoken(now) {
            is_less |= self.listings.drop_era(era);
        }
        is_less
    }

    /// Returns the key of the listing that a caller sees, from the current knowledge of the server.
    pub(super) fn listing_key(&self, caller: ListingKey, config: &ServerConfig) -> ListingKey {
        let eras = if self.eras.is_empty() { &self.previous_eras } else { &self.eras };
        let known = |era| self.eras.known_in(era).or_else(|| self.previous_eras.known_in(era));
        let revision = |era| known(era).map(|known| known.revision);
        caller.at_upstream(config.sharing, pinned_era(config), eras.supported(Instant::now()), revision)
    }

    /// Returns the keys of the listings that a connection fetches: its own for a stateful server, otherwise those of
    /// the requesting callers in its era, or without any caller the one for no capabilities.
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

    /// Stores a listing; reports whether it differs from the previous one.
    pub(super) fn store_catalogue(
        &mut self,
        shown: ListingKey,
        listed: UpstreamCatalogue,
        config: &ServerConfig,
    ) -> bool {
        let is_different = self.listings.store(shown, listed);
        if is_different {
            // A change for one key may be a change for all, and listings without a connection would stay outdated.
            let connections = self.usable();
            let kept_current: Vec<_> =
                connections.flat_map(|connection| self.listing_capabilities(connection, config)).collect();
            self.listings.retain(|known| known == shown || kept_current.contains(&known));
        }
        // List requests are answered from the registry, which does not have it yet.
        self.is_in_registry &= !is_different;
        is_different
    }

    /// Records why there is no connection; reports whether provisional listings were dropped because of it.
    pub(super) fn record_failure(&mut self, failure: UpstreamFailure) -> bool {
        self.failure = Some(failure);
        self.is_idle_stopped = false;
        let is_less = self.listings.drop_provisional();
        self.is_in_registry &= !is_less;
        if self.listings.is_empty() {
            // List requests do not wait for a server that failed.
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
