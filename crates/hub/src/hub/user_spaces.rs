//! The part of the hub that each user has for itself: upstreams with the user's tokens, and the views of their lists.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use trunkline_config::ServerName;
use trunkline_server::IncomingCall;
use trunkline_session::Principal;

use super::HubInner;
use super::restricted_views::RestrictedViews;
use super::views::{AddedView, CallerViews};
use crate::login::{Account, caller_token};
use crate::registry::ListDifferences;
use crate::upstream::Upstream;

/// The users with upstreams of their own; beyond it that of the user who was away the longest is dropped.
pub(crate) const MAX_USER_SPACES: usize = 1024;

/// The users of the hub, if any server has tokens of users.
#[derive(Debug, Default)]
pub(super) struct UserSpaces {
    by_account: RwLock<HashMap<Account, Arc<UserSpace>>>,
    /// Whether any server has upstreams for each user.
    is_needed: AtomicBool,
}

/// What one user has for itself.
#[derive(Debug)]
pub(crate) struct UserSpace {
    account: Account,
    upstreams: Mutex<Vec<Arc<Upstream>>>,
    pub(super) views: ArcSwap<CallerViews>,
    /// Serializes building snapshots, so that no older snapshot replaces a newer one.
    rebuild_lock: Mutex<()>,
    last_used: Mutex<Instant>,
}

/// The space of a caller; `None` if it sees only what all callers see.
pub(super) type SpaceRef = Option<Arc<UserSpace>>;

impl UserSpace {
    pub(super) fn belongs_to(&self, account: &Account) -> bool {
        self.account == *account
    }

    /// Returns the upstream that the user has in the place of a shared one.
    fn upstream(&self, name: &ServerName) -> Option<Arc<Upstream>> {
        self.upstreams.lock().iter().find(|upstream| upstream.name() == name).cloned()
    }
}

impl UserSpaces {
    pub(super) fn all(&self) -> Vec<Arc<UserSpace>> {
        self.by_account.read().values().cloned().collect()
    }

    fn get(&self, account: &Account) -> SpaceRef {
        self.by_account.read().get(account).cloned()
    }

    /// Returns the upstreams of all users.
    pub(super) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.all().iter().flat_map(|space| space.upstreams.lock().clone()).collect()
    }

    /// Returns the upstreams that users have for one server.
    pub(super) fn upstreams_of(&self, name: &str) -> Vec<Arc<Upstream>> {
        self.upstreams().into_iter().filter(|upstream| *upstream.name() == name).collect()
    }

    /// Adds the space of a user, and returns the one that was dropped for it.
    fn insert(&self, account: &Account) -> (Arc<UserSpace>, SpaceRef) {
        let mut spaces = self.by_account.write();
        if let Some(space) = spaces.get(account) {
            return (space.clone(), None);
        }
        let dropped = match spaces.len() >= MAX_USER_SPACES {
            true => {
                let oldest = spaces.values().min_by_key(|space| *space.last_used.lock());
                oldest.map(|space| space.account.clone()).and_then(|oldest| spaces.remove(&oldest))
            }
            false => None,
        };
        let space = Arc::new(UserSpace {
            account: account.clone(),
            upstreams: Mutex::default(),
            views: ArcSwap::default(),
            rebuild_lock: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
        });
        spaces.insert(account.clone(), space.clone());
        (space, dropped)
    }
}

impl HubInner {
    /// Returns the space of a caller, which is made when it is needed first.
    pub(super) fn space_of(self: &Arc<Self>, principal: &Principal) -> SpaceRef {
        if !self.users.is_needed.load(Ordering::Acquire) {
            return None;
        }
        let account = self.options.logins.as_ref()?.account_of(principal)?;
        if let Some(space) = self.users.get(&account) {
            *space.last_used.lock() = Instant::now();
            return Some(space);
        }
        let (space, dropped) = self.users.insert(&account);
        if let Some(dropped) = dropped {
            dropped.upstreams.lock().iter().for_each(|upstream| upstream.remove());
        }
        self.rebuild_space(&space, &AddedView::None);
        Some(space)
    }

    /// Returns the space of the caller of a request.
    pub(super) fn space_of_call(self: &Arc<Self>, call: &IncomingCall) -> SpaceRef {
        call.context.with_caller(|caller| {
            let space = self.space_of(&caller.principal);
            if let Some(space) = &space {
                let upstreams = space.upstreams.lock();
                for own in upstreams.iter().filter(|own| own.exchanges_tokens()) {
                    caller_token(caller).iter().for_each(|token| own.set_subject_token(token));
                }
            }
            space
        })
    }

    /// Returns the upstream of a user for a server.
    pub(super) fn upstream_of_user(
        self: &Arc<Self>,
        name: &ServerName,
        principal: &Principal,
    ) -> Option<Arc<Upstream>> {
        self.space_of(principal)?.upstream(name)
    }

    /// Returns the servers that a caller sees, in the order of the configuration.
    pub(super) fn servers_in(&self, space: &SpaceRef) -> Vec<Arc<Upstream>> {
        let mut servers = self.servers();
        if let Some(space) = space {
            for server in &mut servers {
                if let Some(own) = space.upstream(server.name()) {
                    *server = own;
                }
            }
        }
        servers
    }

    /// Returns the views of a caller.
    pub(super) fn views_in(&self, space: &SpaceRef) -> Arc<CallerViews> {
        match space {
            Some(space) => space.views.load_full(),
            None => self.views.load_full(),
        }
    }

    /// Rebuilds what each user sees after a change of the shared servers, and returns the lists that differ.
    pub(super) fn rebuild_spaces(self: &Arc<Self>) -> ListDifferences {
        let is_needed = self.servers().iter().any(|server| server.is_per_user());
        self.users.is_needed.store(is_needed, Ordering::Release);
        let spaces = self.users.all();
        let differences = spaces.iter().map(|space| self.rebuild_space(space, &AddedView::None));
        differences.fold(ListDifferences::default(), ListDifferences::union)
    }

    /// Rebuilds what one user sees, also for callers with a key that was not served before.
    pub(super) fn rebuild_space(
        self: &Arc<Self>,
        space: &Arc<UserSpace>,
        added: &AddedView,
    ) -> ListDifferences {
        let _rebuilding = space.rebuild_lock.lock();
        self.update_upstreams(space);
        // The access rules are those of the hub.
        let restricted = self.views.load().restricted.as_ref().map(RestrictedViews::without_views);
        let before = CallerViews::clone(&space.views.load()).under_rules(restricted);
        let servers = self.servers_in(&Some(space.clone()));
        let (next, different) = before.rebuild(&servers, &self.options, added, &self.versions);
        space.views.store(Arc::new(next));
        different
    }

    /// Gives a user an upstream for each server with tokens of users, as it is configured now.
    fn update_upstreams(self: &Arc<Self>, space: &Arc<UserSpace>) {
        let mut current = space.upstreams.lock();
        let mut next = Vec::with_capacity(current.len());
        for server in self.servers().iter().filter(|server| server.is_per_user()) {
            let config = server.config();
            let known = current
                .iter()
                .find(|own| own.name() == server.name() && own.config().same_connection(&config));
            let own = match known {
                Some(own) => {
                    if **own.config() != **config {
                        own.reconfigure((**config).clone());
                    }
                    own.clone()
                }
                None => {
                    let owner = self.upstream_owner(server.name().clone(), Some(space.account.clone()));
                    let own = Upstream::new((**config).clone(), owner, None, None);
                    if self.was_listed() {
                        own.begin_listing();
                    }
                    own
                }
            };
            if own.is_enabled() != server.is_enabled() {
                own.set_enabled(server.is_enabled());
            }
            next.push(own);
        }
        let is_kept = |old: &Arc<Upstream>| next.iter().any(|own| Arc::ptr_eq(own, old));
        current.iter().filter(|old| !is_kept(old)).for_each(|old| old.remove());
        *current = next;
    }
}
