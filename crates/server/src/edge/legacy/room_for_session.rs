//! Makes room for a new session in a store that is full.

use std::net::IpAddr;

use trunkline_protocol::Refusal;
use trunkline_session::{SessionRecord, StoreError, Timestamp};

use super::eviction::{EvictableSession, EvictionScope, choose_evicted};
use super::live::LiveSession;
use super::sessions::{LegacySessions, refuse};
use crate::metrics::process::{self, SessionEviction};
use crate::party::ClientParty;
use crate::server_core::now;

/// How often sessions are evicted for one new session. A store that other nodes fill stays full whatever this one evicts.
const MAX_EVICTIONS: usize = 4;

impl LegacySessions {
    /// Creates a session in the store; if the store is full, evicts sessions or leaves out optional data where that
    /// helps.
    pub(super) async fn create(
        &self,
        record: SessionRecord,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<SessionRecord, Refusal> {
        let mut record = record;
        let (mut swept, mut evictions) = (false, 0..MAX_EVICTIONS);
        loop {
            let error = match self.store.create(record.clone(), now).await {
                Ok(()) => return Ok(record),
                Err(error) => error,
            };
            let retry = match &error {
                StoreError::Full if !swept => {
                    swept = true;
                    self.sweep().await;
                    true
                }
                StoreError::Full if evictions.next().is_some() => {
                    self.evict(&record, address, EvictionScope::Larger).await
                }
                StoreError::PrincipalQuotaExceeded if evictions.next().is_some() => {
                    self.evict(&record, address, EvictionScope::Own).await
                }
                // A client's description of itself may carry pictures; the session can do without.
                StoreError::TooLarge => record.client.take().is_some(),
                _ => false,
            };
            if !retry {
                return Err(refuse(&error));
            }
        }
    }

    /// Ends idle sessions in favour of a new one; reports whether any were.
    async fn evict(&self, new: &SessionRecord, address: Option<IpAddr>, scope: EvictionScope) -> bool {
        let candidate = |session: &LiveSession| EvictableSession {
            id: session.id(),
            principal: session.principal().clone(),
            party: session.party().clone(),
            idle_since: (!session.is_busy()).then(|| session.last_used()),
        };
        let mut candidates = self.stored_candidates().await;
        candidates.extend(self.live.iter().map(|entry| candidate(entry.value())));
        let newcomer = ClientParty::new(&new.principal, address);
        let mut is_evicted = false;
        for chosen in choose_evicted(candidates, &newcomer, scope) {
            // A call may have begun meanwhile.
            let is_over = self.live.get(&chosen.id).is_none_or(|session| session.end_if_idle());
            if !is_over {
                continue;
            }
            match self.store.evict(chosen.id, &chosen.principal, now()).await {
                Ok(true) => {
                    self.remove(chosen.id);
                    self.publish_end(chosen.id);
                    process::count_evicted_session(scope.into());
                }
                // It has ended, or goes on through another node, which has its events then.
                Ok(false) => self.end_here(chosen.id),
                Err(_) => {
                    self.end_here(chosen.id);
                    continue;
                }
            }
            is_evicted = true;
        }
        is_evicted
    }

    /// Returns the sessions that the store has and this node has not used, as after a restart. When they were last used is
    /// unknown here, so that they go before those of this node; those of a shared store may be in use on another node.
    async fn stored_candidates(&self) -> Vec<EvictableSession> {
        if self.store.is_shared() || self.store.count() <= self.live.len() {
            return Vec::new();
        }
        let records = self.store.list_all(usize::MAX, now()).await.unwrap_or_default();
        let unused = records.into_iter().filter(|record| !self.live.contains_key(&record.id));
        let candidate = |record: SessionRecord| EvictableSession {
            id: record.id,
            party: ClientParty::new(&record.principal, None),
            principal: record.principal,
            idle_since: Some(record.created),
        };
        unused.map(candidate).collect()
    }
}

impl From<EvictionScope> for SessionEviction {
    fn from(scope: EvictionScope) -> Self {
        match scope {
            EvictionScope::Larger => Self::Total,
            EvictionScope::Own => Self::Principal,
        }
    }
}
