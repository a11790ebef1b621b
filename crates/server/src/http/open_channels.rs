//! The channels of one endpoint: streams of HTTP+SSE and WebSockets. They have the limits of sessions, and at a limit the
//! party that holds the most makes room, as for sessions.

use std::net::IpAddr;
use std::sync::Arc;

use dashmap::DashMap;
use trunkline_session::{Principal, SessionId};

use crate::admission::{KeyPermit, KeyQuota};
use crate::channel::ChannelActivity;
use crate::edge::legacy::{EvictableSession, EvictionScope, choose_evicted};
use crate::metrics::process;
use crate::party::ClientParty;
use crate::server_core::now;

/// The open channels. Clones share them.
#[derive(Clone)]
pub(super) struct OpenChannels {
    quota: KeyQuota<Principal>,
    max_per_principal: usize,
    open: Arc<DashMap<SessionId, OpenChannel>>,
}

struct OpenChannel {
    principal: Principal,
    party: ClientParty,
    activity: Arc<ChannelActivity>,
    _permit: KeyPermit<Principal>,
}

/// The place of one channel, until it is dropped.
pub(super) struct ChannelPlace {
    id: SessionId,
    open: Arc<DashMap<SessionId, OpenChannel>>,
    activity: Arc<ChannelActivity>,
}

impl OpenChannels {
    pub(super) fn new(max_per_principal: usize, max_total: usize) -> Self {
        let quota = KeyQuota::new(max_per_principal).with_total(max_total);
        Self { quota, max_per_principal, open: Arc::default() }
    }

    /// Takes a place for a channel. At a limit the oldest idle channel of the party with the most is closed; `None` if there
    /// is none that may be.
    pub(super) fn admit(&self, principal: &Principal, address: Option<IpAddr>) -> Option<ChannelPlace> {
        let party = ClientParty::new(principal, address);
        let permit = match self.quota.acquire_for(principal) {
            Some(permit) => permit,
            None if self.evict(principal, &party) => self.quota.acquire_for(principal)?,
            None => return None,
        };
        let (id, activity) = (SessionId::random(), Arc::new(ChannelActivity::new(now())));
        let channel =
            OpenChannel { principal: principal.clone(), party, activity: activity.clone(), _permit: permit };
        self.open.insert(id, channel);
        Some(ChannelPlace { id, open: self.open.clone(), activity })
    }

    /// Closes idle channels in favour of a new one; reports whether there were any.
    fn evict(&self, principal: &Principal, party: &ClientParty) -> bool {
        let candidate = |id: &SessionId, channel: &OpenChannel| EvictableSession {
            id: *id,
            principal: channel.principal.clone(),
            party: channel.party.clone(),
            idle_since: channel.activity.idle_since(),
        };
        let candidates: Vec<_> =
            self.open.iter().map(|entry| candidate(entry.key(), entry.value())).collect();
        let own = candidates.iter().filter(|candidate| candidate.principal == *principal).count();
        let is_own_limit = matches!(principal, Principal::Named(_)) && own >= self.max_per_principal;
        let scope = if is_own_limit { EvictionScope::Own } else { EvictionScope::Larger };
        let mut is_evicted = false;
        for chosen in choose_evicted(candidates, party, scope) {
            // A call may have begun meanwhile. What is removed gives its place back at once.
            let removed = self.open.remove_if(&chosen.id, |_, channel| channel.activity.evict_if_idle());
            if removed.is_some() {
                process::count_evicted_session(scope.into());
                is_evicted = true;
            }
        }
        is_evicted
    }
}

impl ChannelPlace {
    pub(super) fn activity(&self) -> Arc<ChannelActivity> {
        self.activity.clone()
    }
}

impl Drop for ChannelPlace {
    fn drop(&mut self) {
        self.open.remove(&self.id);
    }
}
