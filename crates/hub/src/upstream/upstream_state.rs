use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::SupportedEras;
use trunkline_client::config::pinned_era;
use trunkline_config::ServerConfig;
use trunkline_protocol::{Era, Revision};

use super::backoff::Backoff;
use super::caller_profile::{ClientKey, PoolKey};
use super::connection::UpstreamConnection;
use super::connection_scope::ConnectionScope;
use super::era::KnownEras;
use super::eviction::{ConnectionSlot, SlotUse};
use super::input::InputSet;
use super::lifecycle::{IdleCause, LifecycleEvent, PoolRest, RetryDelay, UpstreamLifecycle};
use super::listing_key::ListingKey;
use super::listing_memory::ListingShare;
use super::listing_store::UpstreamListings;
use super::roots::RootsDigest;
use super::status::{KnownServer, UpstreamConnectionState, UpstreamFailure, UpstreamUnavailable};
use crate::limits::HubLimits;
use crate::listings_file::StoredServer;
use crate::registry::UpstreamListing;

/// The mutable state of an upstream. Its lock is held for a few instructions at a time.
#[derive(Debug)]
pub(super) struct UpstreamState {
    /// Changed only by [`UpstreamState::apply`].
    lifecycle: UpstreamLifecycle,
    /// The operator's switch: whether its items are exposed. Connections are not affected.
    pub(super) is_enabled: bool,
    pub(super) attempts: Vec<ConnectionAttempt>,
    pub(super) connections: Vec<Arc<UpstreamConnection>>,
    /// New connections that the supervisor has yet to watch.
    pub(super) unwatched: Vec<Arc<UpstreamConnection>>,
    /// The number of connections that are closing.
    pub(super) closing: usize,
    /// What the newest connection learned about the server.
    pub(super) known_server: Option<Arc<KnownServer>>,
    pub(super) eras: KnownEras,
    /// What the predecessor or the previous run learned, on which the provisional listings depend.
    previous_eras: KnownEras,
    /// What the previous run learned of the same server, so that an era that it does not support is not tried again
    /// after every restart.
    restored_eras: KnownEras,
    pub(super) backoff: Backoff,
    /// Whether the server's lists were requested.
    pub(super) is_list_requested: bool,
    /// Its listings.
    pub(super) listings: UpstreamListings,
    /// Whether they are in the registry, from which list requests are answered.
    pub(super) is_in_registry: bool,
    pub(super) starts: u64,
    attempts_made: u64,
    /// When the lists for all callers were last fetched.
    pub(super) listed_at: Option<Instant>,
    /// When they may be fetched again because of the connection of a single caller.
    pub(super) relist_due: Option<Instant>,
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
        let is_session = self.pool_key.input == key.input && self.pool_key.variables == key.variables;
        is_session && (is_unknown || self.pool_key.era == key.era) && is_theirs
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
    pub(super) fn new(is_enabled: bool, listings: ListingShare) -> Self {
        Self {
            lifecycle: UpstreamLifecycle::Idle(IdleCause::NotNeeded),
            is_enabled,
            attempts: Vec::new(),
            connections: Vec::new(),
            unwatched: Vec::new(),
            closing: 0,
            known_server: None,
            eras: KnownEras::default(),
            previous_eras: KnownEras::default(),
            restored_eras: KnownEras::default(),
            backoff: Backoff::default(),
            is_list_requested: false,
            listings: UpstreamListings::within(listings),
            is_in_registry: false,
            starts: 0,
            attempts_made: 0,
            listed_at: None,
            relist_due: None,
        }
    }

    /// Inherits the predecessor's listings, so that the items never disappear, and requests new lists.
    pub(super) fn inherit(&mut self, before: &mut Self) {
        let eras = if before.eras.is_empty() { &before.previous_eras } else { &before.eras };
        self.previous_eras = eras.clone();
        self.listings.inherit(&mut before.listings);
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
        let (now, not_spoken) = (Instant::now(), stored.not_spoken());
        self.restored_eras = KnownEras::restored(eras.clone(), &not_spoken, now, stored.probe_age());
        self.previous_eras = KnownEras::restored(eras, &not_spoken, now, Duration::ZERO);
        self.listings.restore(listings);
        self.is_in_registry = self.listings.is_provisional();
    }

    pub(super) fn lifecycle(&self) -> &UpstreamLifecycle {
        &self.lifecycle
    }

    /// Changes the connection state by an event.
    pub(super) fn apply(&mut self, event: LifecycleEvent) {
        let before = std::mem::replace(&mut self.lifecycle, UpstreamLifecycle::Removed);
        self.lifecycle = before.next(event);
    }

    /// Checks that the server is enabled and may be connected.
    pub(super) fn check(&self) -> Result<(), UpstreamUnavailable> {
        match self.lifecycle {
            UpstreamLifecycle::Disconnected => Err(UpstreamUnavailable::Disconnected),
            UpstreamLifecycle::Removed => Err(UpstreamUnavailable::Removed),
            _ if self.is_enabled => Ok(()),
            _ => Err(UpstreamUnavailable::Disabled),
        }
    }

    /// Reports whether the server's items are exposed.
    pub(super) fn is_offered(&self) -> bool {
        self.lifecycle.is_active() && self.is_enabled
    }

    fn pool_rest(&self) -> PoolRest {
        match self.usable().next() {
            Some(_) => PoolRest::Usable,
            None if self.attempts.is_empty() => PoolRest::Empty,
            None => PoolRest::Opening,
        }
    }

    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts_made += 1;
        self.attempts_made
    }

    /// Adds a running attempt.
    pub(super) fn add_attempt(&mut self, attempt: ConnectionAttempt) {
        self.attempts.push(attempt);
        self.apply(LifecycleEvent::AttemptStarted);
    }

    /// Removes an attempt; false if it was removed already.
    pub(super) fn remove_attempt(&mut self, number: u64) -> bool {
        let before = self.attempts.len();
        self.attempts.retain(|attempt| attempt.number != number);
        self.attempts.len() < before
    }

    /// Adds an open connection, which the supervisor watches from now on.
    pub(super) fn add_connection(&mut self, connection: &Arc<UpstreamConnection>) {
        self.connections.push(connection.clone());
        self.unwatched.push(connection.clone());
    }

    /// Requests that a connection is closed; no new lease of it is granted.
    pub(super) fn request_close(&mut self, connection: &UpstreamConnection, cause: IdleCause) {
        connection.request_close();
        self.apply(LifecycleEvent::ConnectionClosing(cause, self.pool_rest()));
    }

    /// Returns the connections that can be used.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Arc<UpstreamConnection>> {
        self.connections.iter().filter(|connection| !connection.is_closing())
    }

    /// Returns the connections for subscriptions of a scope: its own, and the shared ones.
    pub(super) fn usable_for_subscription(&self, scope: &ConnectionScope) -> Vec<Arc<UpstreamConnection>> {
        let is_theirs = |known: &ConnectionScope| known == scope || *known == ConnectionScope::Shared;
        let usable = self.usable().filter(|connection| !connection.has_caller_variables());
        usable.filter(|connection| connection.matches_scope(is_theirs)).cloned().collect()
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
        is_quiet || self.lifecycle.is_active()
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

    /// Returns the eras that the server supports, as far as this run and the previous one know.
    pub(super) fn supported_eras(&self, now: Instant) -> SupportedEras {
        self.restored_eras.supported(now).merge(self.eras.supported(now))
    }

    /// Forgets the unsupported eras, so that they are tried again.
    pub(super) fn forget_unsupported_eras(&mut self) {
        self.eras.forget_unsupported();
        self.restored_eras.forget_unsupported();
    }

    /// Returns the key of the listing that a caller sees, from the current knowledge of the server.
    pub(super) fn listing_key(&self, caller: ListingKey, config: &ServerConfig) -> ListingKey {
        let now = Instant::now();
        let supported = match self.eras.is_empty() {
            true => self.previous_eras.supported(now),
            false => self.supported_eras(now),
        };
        let known = |era| self.eras.known_in(era).or_else(|| self.previous_eras.known_in(era));
        let revision = |era| known(era).map(|known| known.revision);
        caller.at_upstream(config.sharing, pinned_era(config), supported, revision)
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
    pub(super) fn store_listing(
        &mut self,
        shown: ListingKey,
        listed: UpstreamListing,
        config: &ServerConfig,
    ) -> bool {
        let is_different = self.listings.store(shown, listed);
        self.listed_at = Some(Instant::now());
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

    /// Records a failed attempt; reports whether provisional listings were dropped because of it.
    pub(super) fn record_failure(&mut self, failure: UpstreamFailure, limits: &HubLimits) -> bool {
        let until = self.backoff.record_failure(Instant::now(), limits);
        self.apply(LifecycleEvent::AttemptFailed(RetryDelay { failure, until }, self.pool_rest()));
        self.drop_provisional()
    }

    /// Records the loss of a connection that was opened at `began`; reports whether provisional listings were dropped
    /// because of it.
    pub(super) fn record_lost(
        &mut self,
        began: Instant,
        failure: UpstreamFailure,
        limits: &HubLimits,
    ) -> bool {
        let until = self.backoff.record_lost(began, Instant::now(), limits);
        self.apply(LifecycleEvent::ConnectionLost(RetryDelay { failure, until }, self.pool_rest()));
        self.drop_provisional()
    }

    fn drop_provisional(&mut self) -> bool {
        let is_less = self.listings.drop_provisional();
        self.is_in_registry &= !is_less;
        if self.listings.is_empty() {
            // List requests do not wait for a server that failed.
            self.listings.set_late_for_all();
        }
        is_less
    }

    pub(super) fn connection_state(&self) -> UpstreamConnectionState {
        match self.lifecycle.is_active() && !self.is_enabled {
            true => UpstreamConnectionState::Disabled,
            false => self.lifecycle.connection_state(),
        }
    }
}
