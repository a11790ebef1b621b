//! One server behind the hub: its connections, what it offers, and how it is kept alive.
//!
//! A connection is made for the first who needs it and serves everybody who may share it. Each has a task that minds it:
//! takes over what the server offers, notices when it is lost, and ends it when nobody has used it for long. One more task
//! keeps a server connected that should be, however often that fails.

mod attempt;
mod backoff;
mod connection;
mod desk;
mod ending;
mod era;
mod fair_queue;
mod input;
mod items;
mod keep;
mod learn;
mod lease;
mod listing;
mod listing_key;
mod listings;
mod mind;
mod pages;
mod party;
mod room;
mod roots;
mod running_calls;
mod state;
mod wait_list;
mod watch;

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

pub(crate) use self::connection::{AskingTurn, Lease, Who};
use self::desk::Desk;
pub(crate) use self::input::InputSet;
pub(crate) use self::listing::Lists;
pub(crate) use self::listing_key::ListingKey;
pub(crate) use self::listings::{Listing, ListingState, MOST_LISTINGS};
pub(crate) use self::party::{Caller, Party};
pub(crate) use self::running_calls::RunningCall;
pub(crate) use self::state::{FailureKind, Known, Unavailable, headline};
pub use self::state::{State, Status};
use self::wait_list::WaitList;
use self::watch::Watches;
use crate::catalogue_file::{StoredEra, StoredServer};
use crate::limits::HubLimits;
use crate::options::HubOptions;
use crate::registry::{Catalogue, Offer};
use crate::trail::HubId;

/// One server, as long as it is configured in the same way.
pub(crate) struct Upstream {
    name: ServerName,
    config: ArcSwap<ServerConfig>,
    options: Arc<HubOptions>,
    /// Whose server it is.
    hub: HubId,
    /// The server itself, if it is part of the hub.
    in_process: Option<Arc<dyn Handler>>,
    desk: Mutex<Desk>,
    /// Counts what happens to the desk, for those who wait for something to happen to it.
    pulse: channel::Sender<u64>,
    /// Whether the server has ever asked for roots.
    asks_roots: Arc<AtomicBool>,
    /// The calls that wait for a connection.
    waiting: Arc<WaitList>,
    watches: Watches,
    /// What went wrong with the last call, where that does not end the connection: an address that nobody answers at may
    /// be answered at the next time.
    trouble: ArcSwapOption<String>,
    /// Who has its name, once it is replaced.
    successor: OnceLock<Arc<Self>>,
    /// Whom it replaced, which may still be on the way out.
    predecessor: Weak<Self>,
    tell: Arc<TellFn>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// What a server has to say to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What it offers may be different; it has said so itself of these lists.
    Offers(Lists),
    /// The content of a resource is, for those who share these connections.
    Updated(String, Who),
}

type TellFn = dyn Fn(Told) + Send + Sync;

impl Upstream {
    /// Makes a server known; `before` is what it is the successor of, and `stored` what it offered in the previous run: either
    /// counts until it has listed something itself.
    pub(crate) fn new(
        config: ServerConfig,
        options: Arc<HubOptions>,
        hub: HubId,
        before: Option<&Arc<Self>>,
        stored: Option<&StoredServer>,
        tell: Arc<TellFn>,
    ) -> Arc<Self> {
        let mut desk = Desk::new(config.enabled);
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
            desk: Mutex::new(desk),
            pulse: channel::Sender::new(0),
            asks_roots: Arc::default(),
            waiting: Arc::default(),
            watches: Watches::default(),
            trouble: ArcSwapOption::empty(),
            successor: OnceLock::new(),
            predecessor: before.map(Arc::downgrade).unwrap_or_default(),
            tell,
            tasks: Mutex::default(),
        });
        if let Some(before) = before {
            // It is replaced once.
            let _ = before.successor.set(upstream.clone());
        }
        let keeping = keep::spawn(&upstream);
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
        self.change(|desk| {
            // What was switched by hand stays so until the configuration says otherwise.
            if before.enabled != enabled {
                desk.is_enabled = enabled;
            }
            // How long a connection may be unused may be another time now.
            desk.connections.iter().for_each(|connection| connection.stir());
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
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.lock().known.clone()
    }

    /// Returns what the server brings into the registry, if it is switched on and was ever listed: for callers of one kind, or for
    /// all of them together.
    pub(crate) fn offer(self: &Arc<Self>, caller: Option<ListingKey>) -> Option<Offer<Arc<Self>>> {
        let config = self.config.load();
        let desk = self.lock();
        if !desk.offers() {
            return None;
        }
        let catalogue = match caller {
            Some(caller) => desk.listings.visible_to(desk.listing_key(caller, &config)).cloned(),
            None => desk.listings.union(),
        };
        let keeps_names = self.in_process.is_some();
        let rules = if keeps_names { ToolRules::default() } else { config.tools.clone() };
        Some(Offer {
            server: self.name.clone(),
            owner: self.clone(),
            rules,
            catalogue: catalogue?,
            instructions: desk.known.as_ref().and_then(|known| known.instructions.clone()),
            keeps_names,
        })
    }

    /// Returns what is worth keeping of the server for the next run, if it has listed anything in this one.
    pub(crate) fn to_store(&self) -> Option<StoredServer> {
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
            StoredEra::new(known.revision, known.keeps_sessions, instructions, &listings)
        });
        StoredServer::new(&self.config.load().reach, eras.collect(), not_spoken)
    }

    /// Switches the server's offers on or off; reports whether that changed anything. Connections and calls stay.
    pub(crate) fn switch(&self, on: bool) -> bool {
        self.change(|desk| std::mem::replace(&mut desk.is_enabled, on) != on)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.lock().is_enabled
    }

    /// Reports whether anything of the server is offered.
    pub(crate) fn is_offered(&self) -> bool {
        self.lock().offers()
    }

    /// Has the server connected to in the background, to learn what it offers. Lists do not wait for that.
    pub(crate) fn want(&self) {
        self.change(|desk| {
            desk.is_wanted = true;
            if desk.listings.is_empty() {
                desk.listings.set_late_for_all();
            }
        });
    }

    /// Notes that a call came to nothing on the way to the server.
    pub(crate) fn note_trouble(&self, reason: String) {
        self.trouble.store(Some(Arc::new(reason)));
    }

    /// Notes that a call was answered.
    pub(crate) fn note_answer(&self) {
        if self.trouble.load().is_some() {
            self.trouble.store(None);
        }
    }

    /// Reports whether somebody has asked what the server offers.
    pub(crate) fn is_wanted(&self) -> bool {
        self.lock().is_wanted
    }

    /// Reports whether the last attempt to connect failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Tells how the server stands.
    pub(crate) fn status(&self) -> Status {
        let (desk, now) = (self.lock(), Instant::now());
        let catalogue = desk.listings.union().unwrap_or_default();
        let known = desk.known.as_deref();
        Status {
            name: self.name.clone(),
            state: desk.state(),
            reason: match &desk.failure {
                Some(failure) => Some(failure.reason.clone()),
                None => self.trouble.load().as_deref().cloned(),
            },
            retry_in: desk.left_alone(now).map(|(wait, _)| wait),
            required: self.config.load().required,
            revision: known.map(|known| known.revision),
            identity: known.and_then(|known| known.identity.clone()),
            transport: known.map(|known| known.transport).filter(|transport| !transport.is_empty()),
            tools: catalogue.tools.len(),
            prompts: catalogue.prompts.len(),
            resources: catalogue.resources.len(),
            left_out: catalogue.left_out.to_vec(),
            repaired: catalogue.repaired.to_vec(),
            connections: desk.connections.len(),
            calls: desk.connections.iter().map(|connection| connection.calls()).sum(),
            waiting: self.waiting.len(),
            starts: desk.starts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock()
    }

    /// Changes the desk, and tells whoever waits for that.
    fn change<T>(&self, change: impl FnOnce(&mut Desk) -> T) -> T {
        let changed = change(&mut self.lock());
        self.beat();
        changed
    }

    fn beat(&self) {
        self.pulse.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes over what the server listed, and tells the hub if that is different from before or the server says so.
    fn take_catalogue(&self, shown: ListingKey, listed: Catalogue, announced: Lists) {
        let config = self.config.load();
        let is_different = self.change(|desk| desk.take_catalogue(shown, listed, &config));
        if is_different || !announced.is_none() {
            (self.tell)(Told::Offers(announced));
        }
        self.change(|desk| desk.is_shown = true);
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}
