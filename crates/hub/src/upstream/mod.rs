//! One upstream of the hub: its connections, its lists, and its supervision.
//!
//! A connection is opened for the first caller that needs it, and serves every caller that may share it. The state of
//! an upstream is one value ([`lifecycle`]), changed by events alone. One supervisor per upstream reconnects it with
//! backoff while it should be connected, and watches each of its connections: stores the upstream's lists, notices
//! when the connection is lost, and closes it after the idle timeout.
//!
//! # Invariants
//!
//! - A failing upstream is retried forever; the delay doubles up to a maximum, and resets after a healthy minute:
//!   `backoff_doubles_up_to_its_maximum_and_never_stops`, `backoff_resets_only_after_a_healthy_minute`.
//! - An upstream that rejects its credentials is not retried until they may have changed:
//!   `every_event_in_every_state_leads_to_the_listed_state`, `server_that_needs_auth_is_not_retried`.
//! - Calls that wait for a connection are served round-robin by client:
//!   `waiting_clients_get_connections_round_robin_whatever_their_call_count`.
//! - A principal with many sessions never evicts the only connection of another:
//!   `principal_with_many_sessions_never_evicts_anothers_only_connection`.
//! - A session that received the roots of one caller serves only callers with the same roots:
//!   `session_sent_roots_serves_only_callers_with_equal_roots`,
//!   `session_sent_roots_in_a_call_serves_only_callers_with_known_equal_roots`,
//!   `roots_of_one_caller_are_never_sent_for_another`.

mod attempt;
mod backoff;
mod bounded_text;
mod caller_profile;
mod caller_variables;
mod connection;
mod connection_closing;
mod connection_scope;
mod connection_watch;
mod ending;
mod era;
mod eviction;
mod fair_queue;
mod input;
mod items;
mod learn;
mod lease;
mod lifecycle;
mod list_fetch;
mod list_set;
mod listing_key;
mod listing_memory;
mod listing_store;
mod private_lists;
mod published_state;
mod reconnect;
mod reports;
mod revival;
mod roots;
mod roots_barrier;
mod running_calls;
mod status;
mod subscriptions;
mod supervisor;
mod upstream_state;
mod url_elicitations;
mod user_login;
mod wait_list;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch as channel;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::MessageBudget;
use trunkline_config::{ServerConfig, ServerName, ToolRules};
use trunkline_server::Handler;
use trunkline_session::Principal;

use self::bounded_text::bounded_reason;
pub(crate) use self::caller_profile::{CallerDetails, CallerProfile};
pub(crate) use self::connection::{ConnectionLease, InputTurn};
pub(crate) use self::connection_scope::ConnectionScope;
pub(crate) use self::input::InputSet;
use self::lifecycle::LifecycleEvent;
pub(crate) use self::list_set::ListSet;
pub(crate) use self::listing_key::ListingKey;
pub(crate) use self::listing_memory::ListingMemory;
use self::listing_memory::{ListingBounds, ListingShare};
pub(crate) use self::listing_store::{CapabilityListing, ListingState, MAX_LISTINGS};
use self::published_state::PublishedState;
pub(crate) use self::roots::RootsDigest;
pub(crate) use self::status::{
    FailureKind, KnownServer, UpstreamFailure, UpstreamUnavailable, exchange_problem, headline,
};
pub use self::status::{UpstreamConnectionState, UpstreamStatus};
use self::subscriptions::UpstreamSubscriptions;
use self::upstream_state::UpstreamState;
use self::wait_list::WaitList;
use crate::events::HubEvents;
use crate::figures::CallFigures;
use crate::limits::HubLimits;
use crate::listings_file::{StoredEra, StoredServer};
use crate::login::{Account, ServerAuthorizer};
use crate::loop_detection::HubId;
use crate::options::HubOptions;
use crate::registry::{UpstreamListing, UpstreamOffer};

/// One upstream server, for as long as its connection settings are unchanged.
pub(crate) struct Upstream {
    name: ServerName,
    config: ArcSwap<ServerConfig>,
    options: Arc<HubOptions>,
    /// The id of the hub that it belongs to.
    hub: HubId,
    /// Whether the hub is about to shut down.
    is_draining: Arc<AtomicBool>,
    /// The handler of an in-process server.
    in_process: Option<Arc<dyn Handler>>,
    state: Mutex<UpstreamState>,
    /// Counts the changes of `state`, for tasks that wait for one.
    change_counter: channel::Sender<u64>,
    /// Whether the server has ever requested roots.
    asks_roots: Arc<AtomicBool>,
    /// The calls that wait for a connection.
    wait_list: Arc<WaitList>,
    /// Its part of the memory for messages that are being received.
    message_memory: MessageBudget,
    subscriptions: UpstreamSubscriptions,
    /// The error of the last call, if it did not close the connection: an HTTP endpoint that is unreachable now may
    /// be reachable for the next call.
    last_call_error: ArcSwapOption<String>,
    /// The upstream that replaced it.
    successor: OnceLock<Arc<Self>>,
    /// The upstream that it replaced, which may still be closing.
    predecessor: Weak<Self>,
    on_event: Arc<UpstreamEventFn>,
    events: HubEvents,
    figures: Arc<CallFigures>,
    /// The state that was published last.
    published_state: Mutex<PublishedState>,
    /// The tokens for the server.
    auth: Arc<ServerAuthorizer>,
    /// Whether the server has demanded a token that it did not get.
    has_demanded_token: AtomicBool,
    find_user: Arc<FindUserFn>,
    /// The user that it is for; `None` for one that all users share.
    user: Option<Account>,
    /// Held while stored sessions are connected.
    revival_turn: tokio::sync::Mutex<()>,
    /// What is exposed until its user has logged in.
    login_items: OnceLock<Arc<UpstreamListing>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// An event of an upstream, for the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamEvent {
    /// Its lists may have changed; the server has sent `list_changed` for these.
    ListsChanged(ListSet),
    /// The content of a resource has changed, for clients that share these connections.
    ResourceUpdated(String, ConnectionScope),
}

type UpstreamEventFn = dyn Fn(UpstreamEvent) + Send + Sync;

/// Finds the upstream that a user has for a server.
type FindUserFn = dyn Fn(&ServerName, &Principal) -> Option<Arc<Upstream>> + Send + Sync;

/// What an upstream needs of its hub.
pub(crate) struct UpstreamOwner {
    pub(crate) options: Arc<HubOptions>,
    pub(crate) hub: HubId,
    /// Whether the hub is about to shut down.
    pub(crate) is_draining: Arc<AtomicBool>,
    /// The memory for the listings of all servers.
    pub(crate) listing_memory: ListingMemory,
    /// The event stream of the hub.
    pub(crate) events: HubEvents,
    /// Where its calls are counted.
    pub(crate) figures: Arc<CallFigures>,
    /// The user that owns it; `None` for one that all users share.
    pub(crate) user: Option<Account>,
    pub(crate) on_event: Arc<UpstreamEventFn>,
    pub(crate) find_user: Arc<FindUserFn>,
}

impl Upstream {
    /// Creates an upstream. `before` is the one that it replaces, and `stored` the listings of the previous run:
    /// either is used until the server has listed its own items.
    pub(crate) fn new(
        config: ServerConfig,
        owner: UpstreamOwner,
        before: Option<&Arc<Self>>,
        stored: Option<&StoredServer>,
    ) -> Arc<Self> {
        let UpstreamOwner {
            options,
            hub,
            is_draining,
            listing_memory,
            events,
            figures,
            user,
            on_event,
            find_user,
        } = owner;
        let limits = &options.limits;
        let bounds = ListingBounds { server: limits.listing_bytes, all: limits.all_listing_bytes };
        let share = ListingShare::new(listing_memory, config.name.clone(), bounds);
        let state = Self::initial_state(&config, share, before, stored);
        let upstream = Arc::new(Self {
            in_process: options.connector.in_process(&config),
            message_memory: before
                .map_or_else(|| limits.message_memory.part(), |it| it.message_memory.clone()),
            auth: Arc::new(ServerAuthorizer::new(options.logins.clone(), user.clone())),
            user,
            revival_turn: tokio::sync::Mutex::default(),
            has_demanded_token: AtomicBool::new(false),
            find_user,
            login_items: OnceLock::new(),
            name: config.name.clone(),
            config: ArcSwap::from_pointee(config),
            options,
            hub,
            is_draining,
            state: Mutex::new(state),
            change_counter: channel::Sender::new(0),
            asks_roots: Arc::default(),
            wait_list: Arc::default(),
            subscriptions: UpstreamSubscriptions::default(),
            last_call_error: ArcSwapOption::empty(),
            successor: OnceLock::new(),
            predecessor: before.map(Arc::downgrade).unwrap_or_default(),
            on_event,
            events,
            figures,
            published_state: Mutex::default(),
            tasks: Mutex::default(),
        });
        if let Some(before) = before {
            // An upstream is replaced only once.
            let _ = before.successor.set(upstream.clone());
        }
        let supervisor = supervisor::spawn(&upstream);
        upstream.tasks.lock().push(supervisor);
        upstream
    }

    fn initial_state(
        config: &ServerConfig,
        share: ListingShare,
        before: Option<&Arc<Self>>,
        stored: Option<&StoredServer>,
    ) -> UpstreamState {
        let mut state = UpstreamState::new(config.enabled, share);
        if let Some(stored) = stored {
            state.restore(stored);
        }
        if let Some(before) = before {
            let mut before_state = before.lock();
            state.inherit(&mut before_state);
            if before.config.load().enabled == config.enabled {
                // A manual toggle stays in effect until `enabled` changes in the configuration.
                state.is_enabled = before_state.is_enabled;
            }
        }
        state
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns the id of the hub that it belongs to.
    pub(crate) fn hub(&self) -> &HubId {
        &self.hub
    }

    pub(crate) fn config(&self) -> Guard<Arc<ServerConfig>> {
        self.config.load()
    }

    pub(crate) fn limits(&self) -> &HubLimits {
        &self.options.limits
    }

    /// Returns the upstream that replaced it, for calls that were routed here before.
    pub(crate) fn successor(&self) -> Option<Arc<Self>> {
        self.successor.get().cloned()
    }

    /// Applies a configuration change that does not affect the connections.
    pub(crate) fn reconfigure(&self, config: ServerConfig) {
        let enabled = config.enabled;
        let before = self.config.swap(Arc::new(config));
        self.update_state(|state| {
            // A manual toggle stays in effect until `enabled` changes in the configuration.
            if before.enabled != enabled {
                state.is_enabled = enabled;
            }
            state.apply(LifecycleEvent::Authorized(Instant::now()));
            // The idle timeout may have changed.
            state.connections.iter().for_each(|connection| connection.wake_supervisor());
        });
    }

    /// Lets a server that has rejected its credentials be tried again, since they may have changed.
    pub(crate) fn authorized(&self) {
        self.update_state(|state| {
            state.apply(LifecycleEvent::Authorized(Instant::now()));
            state.listings.forget_late();
        });
    }

    /// Reports whether the server has ever requested roots in a stateful session, so that they have to be known
    /// before a session is chosen.
    pub(crate) fn asks_roots(&self) -> bool {
        self.asks_roots.load(Ordering::Acquire)
    }

    /// Returns the handler of an in-process server.
    pub(crate) fn in_process(&self) -> Option<&Arc<dyn Handler>> {
        self.in_process.as_ref()
    }

    /// Returns what the last connection learned about the server.
    pub(crate) fn known_server(&self) -> Option<Arc<KnownServer>> {
        self.lock().known_server.clone()
    }

    /// Returns the server's contribution to the registry, if it is enabled and was ever listed: for callers with one
    /// key, or the union for all callers.
    pub(crate) fn offer(self: &Arc<Self>, caller: Option<ListingKey>) -> Option<UpstreamOffer<Arc<Self>>> {
        let demands_login = self.demands_login();
        let config = self.config.load();
        let state = self.lock();
        if !state.is_offered() {
            return None;
        }
        let listing = match caller {
            Some(caller) => state.listings.visible_to(state.listing_key(caller, &config)).cloned(),
            None => state.listings.union(),
        };
        let keeps_original_names = self.in_process.is_some();
        let is_login = listing.is_none() && demands_login;
        let listing = if is_login { Some(self.login_listing()) } else { listing };
        let has_rules = !keeps_original_names && !is_login;
        let rules = if has_rules { config.tools.clone() } else { ToolRules::default() };
        Some(UpstreamOffer {
            server: self.name.clone(),
            owner: self.clone(),
            rules,
            listing: listing?,
            instructions: state.known_server.as_ref().and_then(|known| known.instructions.clone()),
            keeps_original_names,
            is_login,
        })
    }

    /// Returns the server's listings in stored form, if it has listed anything in this run.
    pub(crate) fn to_stored(&self) -> Option<StoredServer> {
        if self.in_process.is_some() {
            return None;
        }
        let (known, listings, not_spoken) = {
            let state = self.lock();
            let known: Vec<_> = state.eras.known().cloned().collect();
            let not_spoken: Vec<_> = state.eras.not_spoken(Instant::now()).collect();
            (known, state.listings.current().to_vec(), not_spoken)
        };
        if listings.is_empty() {
            return None;
        }
        let eras = known.iter().map(|known| {
            let instructions = known.instructions.clone();
            StoredEra::new(known.revision, known.is_stateful, instructions, &listings)
        });
        StoredServer::new(&self.config.load().location, eras.collect(), not_spoken)
    }

    /// Enables or disables the server; reports whether that changed anything. Connections and calls are not affected.
    pub(crate) fn set_enabled(&self, on: bool) -> bool {
        self.update_state(|state| std::mem::replace(&mut state.is_enabled, on) != on)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.lock().is_enabled
    }

    /// Reports whether the server's items are exposed.
    pub(crate) fn is_offered(&self) -> bool {
        self.lock().is_offered()
    }

    /// Requests that the server is connected in the background to fetch its lists. List requests do not wait for
    /// that.
    pub(crate) fn request_lists(&self) {
        self.update_state(|state| {
            state.is_list_requested = true;
            if state.listings.is_empty() {
                state.listings.set_late_for_all();
            }
        });
    }

    /// Records that a call failed to reach the server.
    pub(crate) fn record_call_error(&self, reason: String) {
        self.last_call_error.store(Some(Arc::new(bounded_reason(reason))));
    }

    /// Clears the call error after a successful call.
    pub(crate) fn clear_call_error(&self) {
        if self.last_call_error.load().is_some() {
            self.last_call_error.store(None);
        }
    }

    /// Reports whether the server's lists were requested.
    pub(crate) fn is_list_requested(&self) -> bool {
        self.lock().is_list_requested
    }

    /// Returns the kind of the last failure, if the server was not connected since.
    pub(crate) fn failure_kind(&self) -> Option<FailureKind> {
        self.failure().map(|failure| failure.kind)
    }

    /// Returns why it is not connected, if that is known.
    pub(crate) fn failure(&self) -> Option<UpstreamFailure> {
        self.lock().lifecycle().failure().cloned()
    }

    /// Returns what the program of the newest connection printed outside of the protocol.
    pub(crate) fn process_output(&self) -> Option<String> {
        let newest = self.lock().connections.iter().max_by_key(|connection| connection.started_at).cloned();
        newest?.client.process_output()
    }

    fn lock(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock()
    }

    /// Changes the state, and wakes the tasks that wait for a change.
    fn update_state<T>(&self, change: impl FnOnce(&mut UpstreamState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.notify_changed();
        changed
    }

    fn notify_changed(&self) {
        self.publish_state();
        self.change_counter.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Stores a listing, and notifies the hub if it differs from the previous one or the server has sent
    /// `list_changed`. Returns false if there was no memory for it.
    fn store_listing(&self, shown: ListingKey, listed: UpstreamListing, announced: ListSet) -> bool {
        let config = self.config.load();
        let (is_different, is_refused) = self
            .update_state(|state| (state.store_listing(shown, listed, &config), state.listings.is_refused()));
        if is_refused {
            tracing::warn!(server = %self.name, "{}", listing_store::NO_MEMORY);
        }
        if is_different || !announced.is_empty() {
            (self.on_event)(UpstreamEvent::ListsChanged(announced));
        }
        self.update_state(|state| state.is_in_registry = true);
        !is_refused
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}
