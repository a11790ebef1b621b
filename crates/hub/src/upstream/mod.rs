//! One server behind the hub: its connections, what it offers, and how it is kept alive.
//!
//! A connection is made for the first who needs it and serves everybody who may share it. Each has a task that minds it:
//! takes over what the server offers, notices when it is lost, and ends it when nobody has used it for long. One more task
//! keeps a server connected that should be, however often that fails.
//!
//! # Invariants
//!
//! - A failing upstream is retried forever; the delay doubles up to a maximum, and resets after a healthy minute:
//!   `backoff_doubles_to_its_bound_and_never_gives_up`, `backoff_resets_only_after_a_healthy_minute`.
//! - Calls that wait for a connection are served round-robin by client:
//!   `clients_get_their_turns_in_turn_whatever_the_number_of_their_calls`.
//! - A principal with many sessions never evicts the only connection of another:
//!   `a_principal_with_many_sessions_never_ends_the_only_connection_of_another`.
//! - A session that received the roots of one caller serves only callers with the same roots:
//!   `a_session_that_was_told_of_roots_serves_only_callers_who_have_them`,
//!   `a_session_that_was_told_of_roots_in_a_call_serves_only_who_is_known_to_have_them`,
//!   `roots_of_one_caller_are_never_those_of_another`.

mod attempt;
mod backoff;
mod caller_profile;
mod connection;
mod ending;
mod era;
mod eviction;
mod fair_queue;
mod input;
mod items;
mod learn;
mod lease;
mod list_fetch;
mod listing_key;
mod listing_store;
mod reconnect;
mod roots;
mod running_calls;
mod status;
mod subscriptions;
mod supervisor;
mod upstream_state;
mod url_elicitations;
mod wait_list;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch as channel;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_config::{ServerConfig, ServerName, ToolRules};
use trunkline_server::Handler;

pub(crate) use self::caller_profile::{CallerDetails, CallerProfile};
pub(crate) use self::connection::{ConnectionLease, ConnectionScope, InputTurn};
pub(crate) use self::input::InputSet;
pub(crate) use self::list_fetch::ListSet;
pub(crate) use self::listing_key::ListingKey;
pub(crate) use self::listing_store::{CapabilityListing, ListingState, MAX_LISTINGS};
pub(crate) use self::running_calls::RunningCall;
pub(crate) use self::status::{FailureKind, KnownServer, UpstreamUnavailable, headline};
pub use self::status::{UpstreamHealth, UpstreamStatus};
use self::subscriptions::UpstreamSubscriptions;
use self::upstream_state::UpstreamState;
use self::wait_list::WaitList;
use crate::catalogue_file::{StoredEra, StoredServer};
use crate::limits::HubLimits;
use crate::loop_detection::HubId;
use crate::options::HubOptions;
use crate::registry::{UpstreamCatalogue, UpstreamOffer};

/// One server, as long as it is configured in the same way.
pub(crate) struct Upstream {
    name: ServerName,
    config: ArcSwap<ServerConfig>,
    options: Arc<HubOptions>,
    /// Whose server it is.
    hub: HubId,
    /// The server itself, if it is part of the hub.
    in_process: Option<Arc<dyn Handler>>,
    state: Mutex<UpstreamState>,
    /// Counts what happens to the desk, for those who wait for something to happen to it.
    change_counter: channel::Sender<u64>,
    /// Whether the server has ever asked for roots.
    asks_roots: Arc<AtomicBool>,
    /// The calls that wait for a connection.
    wait_list: Arc<WaitList>,
    subscriptions: UpstreamSubscriptions,
    /// What went wrong with the last call, where that does not end the connection: an address that nobody answers at may
    /// be answered at the next time.
    last_call_error: ArcSwapOption<String>,
    /// Who has its name, once it is replaced.
    successor: OnceLock<Arc<Self>>,
    /// Whom it replaced, which may still be on the way out.
    predecessor: Weak<Self>,
    on_event: Arc<UpstreamEventFn>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// What a server has to say to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamEvent {
    /// What it offers may be different; it has said so itself of these lists.
    ListsChanged(ListSet),
    /// The content of a resource is, for those who share these connections.
    ResourceUpdated(String, ConnectionScope),
}

type UpstreamEventFn = dyn Fn(UpstreamEvent) + Send + Sync;

impl Upstream {
    /// Makes a server known; `before` is what it is the successor of, and `stored` what it offered in the previous run: either
    /// counts until it has listed something itself.
    pub(crate) fn new(
        config: ServerConfig,
        options: Arc<HubOptions>,
        hub: HubId,
        before: Option<&Arc<Self>>,
        stored: Option<&StoredServer>,
        tell: Arc<UpstreamEventFn>,
    ) -> Arc<Self> {
        let mut desk = UpstreamState::new(config.enabled);
        if let Some(stored) = stored {
            desk.restore(stored);
        }
        if let Some(before) = before {
            let before_desk = before.lock();
            desk.inherit(&before_desk);
            if before.config.load().enabled == config.enabled {
                // What was switched by hand stays so until the configuration says otherwise.
                desk.is_enabled = before_desk.is_enabled;
            }
        }
        let upstream = Arc::new(Self {
            in_process: options.connector.in_process(&config),
            name: config.name.clone(),
            config: ArcSwap::from_pointee(config),
            options,
            hub,
            state: Mutex::new(desk),
            change_counter: channel::Sender::new(0),
            asks_roots: Arc::default(),
            wait_list: Arc::default(),
            subscriptions: UpstreamSubscriptions::default(),
            last_call_error: ArcSwapOption::empty(),
            successor: OnceLock::new(),
            predecessor: before.map(Arc::downgrade).unwrap_or_default(),
            on_event: tell,
            tasks: Mutex::default(),
        });
        if let Some(before) = before {
            // It is replaced once.
            let _ = before.successor.set(upstream.clone());
        }
        let keeping = reconnect::spawn(&upstream);
        upstream.tasks.lock().push(keeping);
        upstream
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns whose server it is.
    pub(crate) fn hub(&self) -> &HubId {
        &self.hub
    }

    pub(crate) fn config(&self) -> Guard<Arc<ServerConfig>> {
        self.config.load()
    }

    pub(crate) fn limits(&self) -> &HubLimits {
        &self.options.limits
    }

    /// Returns who has replaced the server, for calls that were on their way to it.
    pub(crate) fn successor(&self) -> Option<Arc<Self>> {
        self.successor.get().cloned()
    }

    /// Takes over a configuration that leaves the connections as they are.
    pub(crate) fn reconfigure(&self, config: ServerConfig) {
        let enabled = config.enabled;
        let before = self.config.swap(Arc::new(config));
        self.update_state(|desk| {
            // What was switched by hand stays so until the configuration says otherwise.
            if before.enabled != enabled {
                desk.is_enabled = enabled;
            }
            // How long a connection may be unused may be another time now.
            desk.connections.iter().for_each(|connection| connection.wake_supervisor());
        });
    }

    /// Reports whether the server has ever asked for roots in a session that lasts, so that they have to be known before a
    /// session is chosen.
    pub(crate) fn asks_roots(&self) -> bool {
        self.asks_roots.load(Ordering::Acquire)
    }

    /// Returns the server itself, if it is part of the hub.
    pub(crate) fn in_process(&self) -> Option<&Arc<dyn Handler>> {
        self.in_process.as_ref()
    }

    /// Returns what is known of the server.
    pub(crate) fn known_server(&self) -> Option<Arc<KnownServer>> {
        self.lock().known_server.clone()
    }

    /// Returns what the server brings into the registry, if it is switched on and was ever listed: for callers of one kind, or for
    /// all of them together.
    pub(crate) fn offer(self: &Arc<Self>, caller: Option<ListingKey>) -> Option<UpstreamOffer<Arc<Self>>> {
        let config = self.config.load();
        let desk = self.lock();
        if !desk.is_offered() {
            return None;
        }
        let catalogue = match caller {
            Some(caller) => desk.listings.visible_to(desk.listing_key(caller, &config)).cloned(),
            None => desk.listings.union(),
        };
        let keeps_names = self.in_process.is_some();
        let rules = if keeps_names { ToolRules::default() } else { config.tools.clone() };
        Some(UpstreamOffer {
            server: self.name.clone(),
            owner: self.clone(),
            rules,
            catalogue: catalogue?,
            instructions: desk.known_server.as_ref().and_then(|known| known.instructions.clone()),
            keeps_original_names: keeps_names,
        })
    }

    /// Returns what is worth keeping of the server for the next run, if it has listed anything in this one.
    pub(crate) fn to_stored(&self) -> Option<StoredServer> {
        if self.in_process.is_some() {
            return None;
        }
        let (known, listings, not_spoken) = {
            let desk = self.lock();
            let known: Vec<_> = desk.eras.known().cloned().collect();
            let not_spoken: Vec<_> = desk.eras.not_spoken(Instant::now()).collect();
            (known, desk.listings.current().to_vec(), not_spoken)
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

    /// Switches the server's offers on or off; reports whether that changed anything. Connections and calls stay.
    pub(crate) fn set_enabled(&self, on: bool) -> bool {
        self.update_state(|desk| std::mem::replace(&mut desk.is_enabled, on) != on)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.lock().is_enabled
    }

    /// Reports whether anything of the server is offered.
    pub(crate) fn is_offered(&self) -> bool {
        self.lock().is_offered()
    }

    /// Has the server connected to in the background, to learn what it offers. Lists do not wait for that.
    pub(crate) fn request_lists(&self) {
        self.update_state(|desk| {
            desk.is_list_requested = true;
            if desk.listings.is_empty() {
                desk.listings.set_late_for_all();
            }
        });
    }

    /// Notes that a call came to nothing on the way to the server.
    pub(crate) fn record_call_error(&self, reason: String) {
        self.last_call_error.store(Some(Arc::new(reason)));
    }

    /// Notes that a call was answered.
    pub(crate) fn clear_call_error(&self) {
        if self.last_call_error.load().is_some() {
            self.last_call_error.store(None);
        }
    }

    /// Reports whether somebody has asked what the server offers.
    pub(crate) fn is_list_requested(&self) -> bool {
        self.lock().is_list_requested
    }

    /// Reports whether the last attempt to connect failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Tells how the server stands.
    pub(crate) fn status(&self) -> UpstreamStatus {
        let (desk, now) = (self.lock(), Instant::now());
        let catalogue = desk.listings.union().unwrap_or_default();
        let known = desk.known_server.as_deref();
        UpstreamStatus {
            name: self.name.clone(),
            state: desk.health(),
            reason: match &desk.failure {
                Some(failure) => Some(failure.reason.clone()),
                None => self.last_call_error.load().as_deref().cloned(),
            },
            retry_in: desk.retry_after(now).map(|(wait, _)| wait),
            required: self.config.load().required,
            revision: known.map(|known| known.revision),
            identity: known.and_then(|known| known.identity.clone()),
            transport: known.map(|known| known.transport).filter(|transport| !transport.is_empty()),
            tools: catalogue.tools.len(),
            prompts: catalogue.prompts.len(),
            resources: catalogue.resources.len(),
            skipped: catalogue.skipped.to_vec(),
            repaired: catalogue.repaired.to_vec(),
            connections: desk.connections.len(),
            calls: desk.connections.iter().map(|connection| connection.call_count()).sum(),
            waiting: self.wait_list.len(),
            starts: desk.starts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock()
    }

    /// Changes the desk, and tells whoever waits for that.
    fn update_state<T>(&self, change: impl FnOnce(&mut UpstreamState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.notify_changed();
        changed
    }

    fn notify_changed(&self) {
        self.change_counter.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes over what the server listed, and tells the hub if that is different from before or the server says so.
    fn store_catalogue(&self, shown: ListingKey, listed: UpstreamCatalogue, announced: ListSet) {
        let config = self.config.load();
        let is_different = self.update_state(|desk| desk.store_catalogue(shown, listed, &config));
        if is_different || !announced.is_empty() {
            (self.on_event)(UpstreamEvent::ListsChanged(announced));
        }
        self.update_state(|desk| desk.is_in_registry = true);
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}
