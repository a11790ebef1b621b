//! The hub: its upstreams by name, their merged lists, and the management operations.
//!
//! # Invariants
//!
//! - The items of an upstream stay listed while others are reconfigured:
//!   `unchanged_server_stays_listed_and_callable_through_300_reconfigurations`.
//! - An upstream that is replaced, reconnected or listed again is never without tools:
//!   `replaced_reconnected_or_relisted_server_keeps_its_tools_listed`.
//! - A slow connection attempt blocks neither the next configuration nor shutdown:
//!   `slow_connect_blocks_neither_the_next_configuration_nor_shutdown`.
//! - No process remains of an upstream that was removed, disconnected or replaced, or after the hub is dropped:
//!   `no_process_is_left_after_remove_disconnect_replace_or_drop_of_the_hub`.

mod access;
mod announce;
mod apply;
mod bridge;
mod handler;
mod inspect;
mod link_owners;
mod lists;
mod manage;
mod resource_tools;
mod restricted_views;
mod route;
mod save;
mod stored_sessions;
mod unlisted;
mod user_logins;
mod user_spaces;
mod views;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use trunkline_config::{CallRate, ServerName};
use trunkline_protocol::Method;
use trunkline_server::{ChangePublisher, ChangeSubscriber, ServerChange};
use trunkline_session::Principal;

use self::announce::Announcements;
pub use self::apply::ApplyReport;
pub use self::inspect::{OfferedItem, OfferedItems};
use self::link_owners::LinkOwners;
pub use self::manage::{ManageError, ServerSwitch, ToggleOutcome};
use self::restricted_views::RestrictedViews;
pub use self::user_logins::{LoginLink, LoginSummary, RevokeError};
use self::user_spaces::{SpaceRef, UserSpaces};
use self::views::{AddedView, CallerView, CallerViews, ListVersions, VersionCounter};
use crate::call_rates::CallRates;
use crate::events::HubEvents;
use crate::figures::{CallFigureReport, HubFigures};
use crate::listings_file::ListingsFile;
use crate::login::Account;
use crate::loop_detection::HubId;
use crate::names::NameCollision;
use crate::options::HubOptions;
use crate::registry::{HubRegistry, ListDifferences, ToolTarget, log_collisions};
use crate::scope::SharingScope;
use crate::upstream::{ListSet, ListingKey, ListingMemory, Upstream, UpstreamEvent, UpstreamOwner};

/// Aggregates many MCP servers behind one endpoint.
///
/// It is a [`Handler`](trunkline_server::Handler), so that a [`Host`](trunkline_server::Host) serves it like any
/// other server. Clones are the same hub; the last one dropped ends every connection.
#[derive(Clone)]
pub struct Hub {
    pub(crate) inner: Arc<HubInner>,
}

pub(crate) type RegistrySnapshot = HubRegistry<Arc<Upstream>>;

pub(crate) struct HubInner {
    pub(crate) options: Arc<HubOptions>,
    /// Its id for loop detection.
    pub(crate) id: HubId,
    /// In the order of the configuration.
    servers: RwLock<Vec<Arc<Upstream>>>,
    views: ArcSwap<CallerViews>,
    /// What users have for themselves.
    users: UserSpaces,
    versions: VersionCounter,
    /// Serializes building snapshots, so that no older snapshot replaces a newer one; never held while a call runs.
    rebuild_lock: Mutex<()>,
    /// Serializes applying configurations; never held while connecting.
    apply_lock: Mutex<()>,
    changes: ChangePublisher,
    announcements: Arc<Announcements>,
    /// Caches listings for the next run, if configured.
    listings_file: Option<Arc<ListingsFile>>,
    /// Notified when listings may have changed, so that they are saved.
    listings_changed: Arc<Notify>,
    /// Notified when a subscribed resource may have another owner, or a subscription has failed.
    resubscribe: Arc<Notify>,
    /// Resource links in the results of servers.
    link_owners: Arc<LinkOwners>,
    /// Counts calls against their limits.
    rates: CallRates,
    /// Whether any client has sent a list request.
    was_listed: AtomicBool,
    /// Whether the hub is about to shut down, so that no server is connected in the background.
    is_draining: Arc<AtomicBool>,
    /// The memory for the listings of all servers.
    listing_memory: ListingMemory,
    /// What happens in the hub, for its viewers.
    events: HubEvents,
    figures: HubFigures,
    /// A bridge presents the identity and capabilities of its server.
    identity_source: IdentitySource,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// The subscriber assumed for subscriptions without one, which come from within this process.
const LOCAL_LISTENER: ChangeSubscriber =
    ChangeSubscriber { principal: Principal::Anonymous, session: None, connection: None, grant: None };

/// Where the hub's identity and capabilities come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentitySource {
    /// From the hub's options, since servers are added and removed.
    Hub,
    /// From its only upstream.
    Upstream,
}

impl Hub {
    /// Creates a hub without servers. Must be called within a Tokio runtime.
    pub fn new(options: HubOptions) -> Self {
        Self::with_identity_source(options, IdentitySource::Hub)
    }

    pub(crate) fn with_identity_source(options: HubOptions, identity_source: IdentitySource) -> Self {
        let inner = Arc::new(HubInner {
            link_owners: Arc::new(LinkOwners::new(options.limits.remembered_links)),
            id: HubId::random(),
            servers: RwLock::default(),
            views: ArcSwap::from_pointee(
                CallerViews::default().with_restricted(RestrictedViews::new(&options.access)),
            ),
            users: UserSpaces::default(),
            versions: VersionCounter::default(),
            rebuild_lock: Mutex::default(),
            apply_lock: Mutex::default(),
            changes: ChangePublisher::default(),
            announcements: Arc::default(),
            listings_file: options.listings_file.clone().map(|path| Arc::new(ListingsFile::open(path))),
            listings_changed: Arc::default(),
            resubscribe: Arc::default(),
            rates: CallRates::new(options.caller_rate),
            was_listed: AtomicBool::new(false),
            is_draining: Arc::default(),
            listing_memory: ListingMemory::default(),
            events: HubEvents::new(&options.limits),
            figures: HubFigures::default(),
            identity_source,
            tasks: Mutex::default(),
            options: Arc::new(options),
        });
        let subscribing = run_subscriptions(Arc::downgrade(&inner), inner.changes.clone());
        inner.tasks().push(tokio::spawn(subscribing).abort_handle());
        let publishing = announce::publish_changes(Arc::downgrade(&inner));
        inner.tasks().push(tokio::spawn(publishing).abort_handle());
        let saving = save::save_listings(Arc::downgrade(&inner), inner.listings_changed.clone());
        inner.tasks().push(tokio::spawn(saving).abort_handle());
        if let Some(sessions) = &inner.options.upstream_sessions {
            let recording = stored_sessions::record_sessions(Arc::downgrade(&inner), sessions.clone());
            inner.tasks().push(tokio::spawn(recording).abort_handle());
        }
        Self { inner }
    }

    /// Returns the server that owns an item, and the item's name there. A tool or a prompt is given by its exposed
    /// name, a resource by its URI.
    pub fn owner_of(&self, method: Method, name: &str) -> Option<(ServerName, String)> {
        let registry = self.inner.registry();
        let (server, item) = match method {
            Method::ToolsCall => match &registry.tools.get(name)?.target {
                ToolTarget::Upstream(server, item) => (server, &**item),
                ToolTarget::Login(server) => (server, name),
                ToolTarget::ListResources | ToolTarget::ReadResource => return None,
            },
            Method::PromptsGet => {
                registry.prompts.get(name).map(|prompt| (&prompt.owner, &*prompt.upstream_name))?
            }
            Method::ResourcesRead => (registry.owner_of(name)?, name),
            _ => return None,
        };
        Some((server.name().clone(), item.to_owned()))
    }

    /// Returns the event stream.
    pub fn events(&self) -> &HubEvents {
        &self.inner.events
    }

    /// Returns the calls of the last hour: the points after a slot, or all.
    pub fn call_figures(&self, after: Option<u32>) -> CallFigureReport {
        self.inner.figures.report(after)
    }

    /// Replaces the rate of calls that each caller may make. It counts from the next call on.
    pub fn set_caller_rate(&self, rate: Option<CallRate>) {
        self.inner.rates.set_per_caller(rate);
    }

    /// Returns the names and URIs that several servers claim, each with all claimants.
    pub fn collisions(&self) -> Vec<NameCollision> {
        self.inner.registry().collisions.clone()
    }
}

impl HubInner {
    /// Returns the union of all callers' views, for operations that do not depend on a caller.
    pub(crate) fn registry(&self) -> Arc<RegistrySnapshot> {
        self.views.load().union.clone()
    }

    pub(crate) fn servers(&self) -> Vec<Arc<Upstream>> {
        self.servers.read().clone()
    }

    fn begin_draining(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    pub(crate) fn server(&self, name: &str) -> Option<Arc<Upstream>> {
        let servers = self.servers.read();
        servers.iter().find(|server| *server.name() == name).cloned()
    }

    fn set_servers(&self, servers: Vec<Arc<Upstream>>) {
        self.figures.retain(|name| servers.iter().any(|server| server.name() == name));
        *self.servers.write() = servers;
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.tasks.lock()
    }

    /// Rebuilds the snapshots, and queues notifications for the lists that differ.
    fn rebuild(self: &Arc<Self>) {
        self.rebuild_after(ListSet::NONE);
    }

    /// Rebuilds the snapshots after an upstream has sent `list_changed`.
    fn rebuild_after(self: &Arc<Self>, announced: ListSet) {
        let different = self.rebuild_views(&AddedView::None).union(self.rebuild_spaces());
        self.lists_rebuilt(different, announced);
    }

    fn lists_rebuilt(&self, different: ListDifferences, announced: ListSet) {
        self.resubscribe.notify_one();
        self.listings_changed.notify_one();
        self.announcements.add(different, announced);
    }

    /// Rebuilds the snapshots, also for callers with a key that was not served before.
    fn rebuild_views(&self, added: &AddedView) -> ListDifferences {
        let _rebuilding = self.rebuild_lock.lock();
        let before = self.views.load();
        let (next, different) = before.rebuild(&self.servers(), &self.options, added, &self.versions);
        log_collisions(&next.union.collisions, &before.union.collisions);
        self.views.store(Arc::new(next));
        different
    }

    /// Returns the view of callers with this key.
    fn view_of(self: &Arc<Self>, space: &SpaceRef, caller: ListingKey) -> CallerView {
        if let Some(view) = self.views_in(space).view_for(caller) {
            return view.clone();
        }
        let different = match space {
            Some(space) => self.rebuild_space(space, &AddedView::Listing(caller)),
            None => self.rebuild_views(&AddedView::Listing(caller)),
        };
        self.announcements.add(different, ListSet::NONE);
        let views = self.views_in(space);
        // Views are never removed, so that the lookup succeeds.
        let union = || CallerView { registry: views.union.clone(), versions: ListVersions::default() };
        views.view_for(caller).cloned().unwrap_or_else(union)
    }

    /// Subscribes each watched resource at the upstream that owns it, and at no other; returns the delay until the
    /// next check.
    ///
    /// An upstream may have been replaced or reconnected since it was last subscribed. A disabled upstream keeps its
    /// subscriptions.
    fn update_subscriptions(
        self: &Arc<Self>,
        wanted: &[(ChangeSubscriber, BTreeSet<String>)],
    ) -> Option<Duration> {
        let servers: Vec<_> = self.servers().into_iter().chain(self.users.upstreams()).collect();
        let (offering, resting): (Vec<_>, Vec<_>) = servers.iter().partition(|server| server.is_offered());
        let mut by_owner = Vec::with_capacity(wanted.len());
        for (listener, uris) in wanted {
            let kept: BTreeSet<String> =
                resting.iter().flat_map(|server| server.subscribed_uris(listener)).collect();
            let owned = self.group_by_owner(listener, uris.difference(&kept).cloned());
            owned.iter().for_each(|(server, theirs)| server.resubscribe(listener, theirs));
            by_owner.push(owned);
        }
        let wanted_of = |server: &Arc<Upstream>| -> Vec<(&ChangeSubscriber, BTreeSet<String>)> {
            let each = wanted.iter().zip(&by_owner);
            each.map(|((listener, uris), owned)| {
                let others = owned.iter().filter(|(owner, _)| !Arc::ptr_eq(owner, server));
                let others: BTreeSet<&String> = others.flat_map(|(_, theirs)| theirs).collect();
                (listener, uris.iter().filter(|uri| !others.contains(uri)).cloned().collect())
            })
            .collect()
        };
        let whole: Vec<_> = wanted.iter().map(|(listener, uris)| (listener, uris.clone())).collect();
        let offering =
            offering.into_iter().filter_map(|server| server.prune_subscriptions(&wanted_of(server)));
        offering.chain(resting.into_iter().filter_map(|server| server.prune_subscriptions(&whole))).min()
    }

    /// Returns the watched resources by listener; listeners that receive the same notifications are merged.
    fn desired_subscriptions(self: &Arc<Self>) -> Vec<(ChangeSubscriber, BTreeSet<String>)> {
        let mut wanted: HashMap<ChangeSubscriber, BTreeSet<String>> = HashMap::new();
        for (listener, uris) in self.changes.watched_resources() {
            let mut listener = listener.unwrap_or(LOCAL_LISTENER);
            let uris = self.readable_uris(listener.identity(), uris);
            if let SharingScope::Principal(_) = SharingScope::of_listener(&listener, self.options.anonymous) {
                listener.connection = None;
            }
            wanted.entry(listener).or_default().extend(uris);
        }
        wanted.into_iter().collect()
    }

    /// Returns what an upstream needs of the hub: one that all users share, or that of one user.
    fn upstream_owner(self: &Arc<Self>, server: ServerName, user: Option<Account>) -> UpstreamOwner {
        let (inner, account) = (Arc::downgrade(self), user.clone());
        let figures = self.figures.of_server(&server);
        let on_event = move |event| {
            if let Some(inner) = inner.upgrade() {
                inner.handle_event(&server, event, account.as_ref());
            }
        };
        let inner = Arc::downgrade(self);
        let find_user = move |name: &ServerName, principal: &Principal| {
            inner.upgrade()?.upstream_of_user(name, principal)
        };
        UpstreamOwner {
            figures,
            options: self.options.clone(),
            hub: self.id.clone(),
            is_draining: self.is_draining.clone(),
            listing_memory: self.listing_memory.clone(),
            events: self.events.clone(),
            user,
            on_event: Arc::new(on_event),
            find_user: Arc::new(find_user),
        }
    }

    /// Handles an event of an upstream; only its user, if it has one, is notified.
    fn handle_event(self: &Arc<Self>, server: &ServerName, event: UpstreamEvent, account: Option<&Account>) {
        match event {
            UpstreamEvent::ListsChanged(announced) => match account {
                None => self.rebuild_after(announced),
                Some(account) => {
                    let space = self.users.all().into_iter().find(|space| space.belongs_to(account));
                    if let Some(space) = space {
                        let different = self.rebuild_space(&space, &AddedView::None);
                        self.lists_rebuilt(different, announced);
                    }
                }
            },
            UpstreamEvent::ResourceUpdated(uri, scope) => {
                self.changes.publish_to(&ServerChange::ResourceUpdated(uri.clone().into()), |listener| {
                    let listener = listener.unwrap_or(&LOCAL_LISTENER);
                    let is_user = account.is_none_or(|account| self.is_account_of(account, listener));
                    is_user
                        && scope.includes(listener, self.options.anonymous)
                        && self.may_read_from(listener.identity(), server, &uri)
                });
            }
        }
    }

    fn is_account_of(&self, account: &Account, listener: &ChangeSubscriber) -> bool {
        let logins = self.options.logins.as_ref();
        logins.and_then(|logins| logins.account_of(&listener.principal)).as_ref() == Some(account)
    }
}

/// Keeps upstream subscriptions in line with the watched resources: unsubscribes those without a watcher, and
/// subscribes the others at their owners.
async fn run_subscriptions(inner: Weak<HubInner>, changes: ChangePublisher) {
    let mut next: Option<Duration> = None;
    loop {
        let again = async {
            match next {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let Some(resubscribe) = inner.upgrade().map(|inner| inner.resubscribe.clone()) else { return };
        tokio::select! {
            () = changes.watched_changed() => {}
            () = resubscribe.notified() => {}
            () = again => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        let wanted = inner.desired_subscriptions();
        next = inner.update_subscriptions(&wanted);
    }
}

impl Drop for HubInner {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        tasks.drain(..).for_each(|task| task.abort());
        self.servers().iter().chain(&self.users.upstreams()).for_each(|server| server.abort_tasks());
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<ServerName> =
            self.inner.servers().iter().map(|server| server.name().clone()).collect();
        f.debug_struct("Hub").field("servers", &names).finish_non_exhaustive()
    }
}
