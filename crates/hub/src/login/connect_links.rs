use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;
use trunkline_session::Principal;
use trunkline_transport::Secret;

use super::UserLogins;
use super::account::Account;
use super::connect_link::{ConnectLink, LinkStage};
use crate::upstream::Upstream;

/// The links of one user that are valid at the same time; beyond it the oldest is dropped.
pub(crate) const MAX_LINKS_PER_USER: usize = 16;

/// The links of all users; beyond it the oldest is dropped.
pub(crate) const MAX_LINKS: usize = 4096;

/// The links that were given to users, oldest first.
#[derive(Debug, Default)]
pub(super) struct ConnectLinks(VecDeque<Arc<ConnectLink>>);

impl ConnectLinks {
    /// Adds a link, and drops those that are not valid any more or too many.
    fn add(&mut self, link: &Arc<ConnectLink>) {
        let now = Instant::now();
        self.0.retain(|known| known.is_valid(now));
        let is_theirs = |known: &Arc<ConnectLink>| known.account == link.account;
        if self.0.iter().filter(|known| is_theirs(known)).count() >= MAX_LINKS_PER_USER
            && let Some(at) = self.0.iter().position(is_theirs)
        {
            self.0.remove(at);
        }
        if self.0.len() >= MAX_LINKS {
            self.0.pop_front();
        }
        self.0.push_back(link.clone());
    }

    fn find(&self, is_it: impl Fn(&ConnectLink) -> bool) -> Option<Arc<ConnectLink>> {
        let now = Instant::now();
        self.0.iter().find(|link| is_it(link)).filter(|link| link.is_valid(now)).cloned()
    }
}

impl UserLogins {
    /// Returns a link for a user to log in to a server: the one that the user has already, or a new one.
    pub(crate) fn link_for(
        &self,
        account: &Account,
        principal: &Principal,
        upstream: &Arc<Upstream>,
    ) -> Option<Arc<ConnectLink>> {
        let now = Instant::now();
        let mut links = self.inner.links.lock();
        let is_same = |link: &&Arc<ConnectLink>| {
            let is_its = std::ptr::eq(link.upstream.as_ptr(), Arc::as_ptr(upstream));
            is_its && link.account == *account && link.principal == *principal && link.is_reusable(now)
        };
        if let Some(link) = links.0.iter().find(is_same) {
            return Some(link.clone());
        }
        let link = Arc::new(ConnectLink::new(account.clone(), principal.clone(), upstream)?);
        links.add(&link);
        Some(link)
    }

    /// Finds a valid link by its id.
    pub(super) fn link_by_id(&self, id: &str) -> Option<Arc<ConnectLink>> {
        let id = Secret::new(id);
        self.inner.links.lock().find(|link| link.id == id)
    }

    /// Finds the login that an authorization response belongs to.
    pub(super) fn link_by_state(&self, state: &Secret) -> Option<Arc<ConnectLink>> {
        self.inner.links.lock().find(|link| match &*link.stage.lock() {
            LinkStage::Authorizing(consent) => consent.state == *state,
            LinkStage::SigningIn(sign_in) => sign_in.request.state() == state,
            _ => false,
        })
    }
}
