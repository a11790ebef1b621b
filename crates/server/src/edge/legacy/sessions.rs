use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use trunkline_protocol::{Refusal, Revision};
use trunkline_session::{
    EventStore, Principal, RecordVersion, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError,
    Timestamp,
};

use super::live::LiveSession;
use super::session_summary::{SessionSummary, SessionTransport};
use crate::bus::{BusLink, BusMessage};
use crate::call::SessionState;
use crate::env::Env;
use crate::server_core::{ServerCore, now};

/// The sessions that this node serves, in front of the store that has them all.
///
/// A session of a store of one process is not looked up again once it is found here; its use is reported to the store from time
/// to time. In a store that several processes share, every request looks it up, since any of them may have ended or changed it.
///
/// See [Session Management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
pub(crate) struct LegacySessions {
    core: Arc<ServerCore>,
    pub(super) store: Arc<dyn SessionStore>,
    events: Arc<dyn EventStore>,
    pub(super) live: DashMap<SessionId, Arc<LiveSession>, BuildHasherDefault<IdentityHasher>>,
    limits: SessionLimits,
    /// How old the last lookup of a session may be that is used without another one; zero for a shared store.
    touch_interval: Duration,
}

impl LegacySessions {
    pub(crate) fn new(
        core: Arc<ServerCore>,
        store: Arc<dyn SessionStore>,
        events: Arc<dyn EventStore>,
        limits: SessionLimits,
    ) -> Self {
        let touch_interval = match store.is_shared() {
            true => Duration::ZERO,
            false => (limits.idle / 8).min(Duration::from_secs(30)),
        };
        Self { core, store, events, live: DashMap::default(), limits, touch_interval }
    }

    pub(crate) fn events(&self) -> &Arc<dyn EventStore> {
        &self.events
    }

    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    /// Opens a session.
    pub(crate) async fn open(
        &self,
        record: SessionRecord,
        env: Env,
        address: Option<IpAddr>,
    ) -> Result<SessionId, Refusal> {
        let (id, now) = (record.id, now());
        let record = self.create(record, address, now).await?;
        tracing::info!(session = %id.short(), revision = %record.revision, "session opened");
        let state = SessionState::new(&self.core, &record, env, None);
        if self.link().is_some() {
            // Its client may list through another process, which this one is not notified of.
            state.shown_lists.mark_all_shown();
        }
        let session = LiveSession::new(record, state, now).with_address(address);
        let session = session.observed_by(self.core.observer.as_ref(), "http");
        let session = session.saved_in(self.store.clone(), self.link(), None);
        self.live.insert(id, Arc::new(session));
        Ok(id)
    }

    /// Finds the session of a request, if it is that principal's and the store need not be read or updated.
    pub(crate) fn find_local(&self, id: SessionId, principal: &Principal) -> Option<Arc<LiveSession>> {
        let now = now();
        let session = self.live.get(&id)?.value().clone();
        let is_known = session.principal() == principal
            && !self.is_expired(&session, now)
            && now.since(session.store_touched()) < self.touch_interval;
        is_known.then(|| {
            session.touch(now);
            session
        })
    }

    /// Finds the session of a request, if it is that principal's.
    pub(crate) async fn find(
        &self,
        id: SessionId,
        principal: &Principal,
    ) -> Result<Arc<LiveSession>, Refusal> {
        let now = now();
        let known = self.live.get(&id).map(|entry| entry.value().clone());
        if self.store.is_shared() {
            return self.find_shared(id, principal, known, now).await;
        }
        let session = match known {
            Some(session) => session,
            None => self.restore(id, principal, now).await?,
        };
        if session.principal() != principal || self.is_expired(&session, now) {
            return Err(Refusal::SESSION_NOT_FOUND);
        }
        session.touch(now);
        if now.since(session.store_touched()) >= self.touch_interval {
            let before = session.store_touched();
            session.touch_store(now);
            let touched = self.store.touch(id, now).await.map_err(|error| {
                // The next request has to find out, too, whether the session goes on.
                session.touch_store(before);
                refuse(&error)
            });
            if !touched? {
                // The store has ended it by itself.
                self.remove(id);
                return Err(Refusal::SESSION_NOT_FOUND);
            }
        }
        Ok(session)
    }

    /// Finds a session that other processes may have ended or changed, with one lookup.
    async fn find_shared(
        &self,
        id: SessionId,
        principal: &Principal,
        known: Option<Arc<LiveSession>>,
        now: Timestamp,
    ) -> Result<Arc<LiveSession>, Refusal> {
        let known = known.filter(|session| session.principal() == principal);
        let version = known.as_ref().and_then(|session| session.record_version());
        let found = self.store.refresh(id, principal, version, now).await.map_err(|error| refuse(&error))?;
        match (found, known) {
            (Some(found), Some(session)) if !session.is_ended() => {
                if let Some(record) = found.record {
                    session.load(&self.core, &record, found.version);
                }
                session.touch(now);
                Ok(session)
            }
            (Some(found), _) => match found.record {
                Some(record) => Ok(self.restore_record(record, found.version, now)),
                // It was released here meanwhile.
                None => self.restore(id, principal, now).await,
            },
            (None, known) => {
                if known.is_some() {
                    self.end_here(id);
                }
                Err(Refusal::SESSION_NOT_FOUND)
            }
        }
    }

    /// Returns a session that is in use on this node, without any check.
    pub(crate) fn in_use(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.live.get(&id).map(|entry| entry.value().clone())
    }

    /// Takes over what another process has changed in a session that is in use here.
    pub(crate) async fn reload(&self, id: SessionId) {
        let Some(session) = self.in_use(id) else { return };
        let principal = session.principal().clone();
        let known = session.record_version();
        match self.store.refresh(id, &principal, known, now()).await {
            Ok(Some(found)) => {
                if let Some(record) = found.record {
                    session.load(&self.core, &record, found.version);
                }
            }
            Ok(None) => self.end_here(id),
            Err(error) => tracing::warn!(%error, "a changed session could not be read"),
        }
    }

    /// Reads all sessions that are busy here from the store again. The others are read by their next request.
    pub(crate) async fn revalidate(&self) {
        for id in self.busy() {
            self.reload(id).await;
            if let Some(session) = self.in_use(id) {
                session.state().roots.refresh();
            }
        }
    }

    fn link(&self) -> Option<&Arc<BusLink>> {
        self.core.bus.as_ref()
    }

    pub(super) fn publish_end(&self, id: SessionId) {
        if let Some(link) = self.link() {
            link.publish_soon(BusMessage::SessionEnded { session: id.to_string() });
        }
    }

    /// Returns the revision of a session of this node, if it is that principal's; this does not count as use of the
    /// session.
    pub(crate) fn revision(&self, id: SessionId, principal: &Principal) -> Option<Revision> {
        let session = self.live.get(&id)?;
        (session.principal() == principal).then(|| session.revision())
    }

    /// Restores a session that another node opened, or that this one opened before it was restarted.
    async fn restore(
        &self,
        id: SessionId,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Arc<LiveSession>, Refusal> {
        let record = self.store.get(id, principal, now).await.map_err(|error| refuse(&error))?;
        let record = record.ok_or(Refusal::SESSION_NOT_FOUND)?;
        Ok(self.restore_record(record, None, now))
    }

    fn restore_record(
        &self,
        record: SessionRecord,
        version: Option<RecordVersion>,
        now: Timestamp,
    ) -> Arc<LiveSession> {
        let id = record.id;
        // Values of headers are never stored, so the client of a restored session has to send them again.
        let state = SessionState::new(&self.core, &record, Env::NONE, None);
        state.roots.refresh();
        state.shown_lists.mark_all_shown();
        let subscriptions = record.subscriptions.clone();
        let session = LiveSession::new(record, state, now);
        let session = session.observed_by(self.core.observer.as_ref(), "http");
        let session = Arc::new(session.saved_in(self.store.clone(), self.link(), version));
        // A client that continues a session has sent `notifications/initialized` to the node that opened it.
        session.mark_initialized();
        session.watch_again(&self.core, subscriptions);
        let mut entry = self.live.entry(id).or_insert_with(|| session.clone());
        if entry.is_ended() {
            *entry = session;
        }
        entry.value().clone()
    }

    /// Ends a session at its client's request.
    pub(crate) async fn close(&self, id: SessionId, principal: &Principal) -> Result<(), Refusal> {
        match self.end(id, principal).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::SESSION_NOT_FOUND),
            Err(error) => Err(refuse(&error)),
        }
    }

    /// Ends a session; returns whether there was one.
    pub(crate) async fn end(&self, id: SessionId, principal: &Principal) -> Result<bool, StoreError> {
        let is_deleted = self.store.delete(id, principal).await?;
        if is_deleted {
            self.remove(id);
            self.publish_end(id);
        }
        Ok(is_deleted)
    }

    /// Returns up to `most` sessions of all nodes, with what is known of them on this one.
    pub(crate) async fn summaries(&self, most: usize) -> Result<Vec<SessionSummary>, StoreError> {
        let records = self.store.list_all(most, now()).await?;
        let summary = |record: SessionRecord| {
            let live = self.live.get(&record.id).map(|entry| entry.value().clone());
            let last_used = live.as_ref().map(|session| session.last_used());
            let is_busy = live.is_some_and(|session| session.is_busy());
            SessionSummary { record, last_used, is_busy, transport: SessionTransport::StreamableHttp }
        };
        Ok(records.into_iter().map(summary).collect())
    }

    pub(crate) fn store_kind(&self) -> &'static str {
        self.store.kind()
    }

    /// Ends the sessions that have expired.
    pub(crate) async fn sweep(&self) {
        let now = now();
        let busy = self.busy();
        for id in &busy {
            if let Some(session) = self.live.get(id) {
                session.touch(now);
            }
        }
        match self.store.touch_all(&busy, now).await {
            // Another process has ended them, and its message was lost.
            Ok(missing) if self.store.is_shared() => missing.into_iter().for_each(|id| self.end_here(id)),
            Ok(_) => {}
            Err(_) => return,
        }
        match self.store.expire(now).await {
            Ok(over) => over.into_iter().for_each(|id| {
                self.remove(id);
                self.publish_end(id);
            }),
            Err(error) => tracing::warn!(%error, "sessions could not be swept"),
        }
        // A session that the store has removed, for instance by its own bounds, must not live on here. Its events expire, or
        // another node that uses the session needs them.
        let over: Vec<_> =
            self.live.iter().filter(|entry| self.is_expired(entry, now)).map(|entry| *entry.key()).collect();
        for id in over {
            // Other processes may use a shared session that is idle here, and its absolute age ends it in the store.
            match self.store.is_shared() {
                true => self.release(id),
                false => self.end_here(id),
            }
        }
        self.events.expire(now);
        self.core.states.expire(now).await;
    }

    /// Returns how often expired sessions are to be removed.
    pub(crate) fn sweep_interval(&self) -> Duration {
        (self.limits.idle / 4).clamp(Duration::from_millis(250), Duration::from_secs(30))
    }

    /// Ends every session on this node.
    pub(crate) fn end_all(&self) {
        self.live.iter().for_each(|entry| entry.end());
    }

    fn busy(&self) -> Vec<SessionId> {
        self.live.iter().filter(|entry| entry.is_busy()).map(|entry| *entry.key()).collect()
    }

    fn is_expired(&self, session: &LiveSession, now: Timestamp) -> bool {
        let idle = now.since(session.last_used()) >= self.limits.idle && !session.is_busy();
        idle || now.since(session.created()) >= self.limits.absolute
    }

    pub(super) fn remove(&self, id: SessionId) {
        self.end_here(id);
        self.events.forget(id);
    }

    /// Ends the part of a session in this node; it may go on through another one.
    pub(crate) fn end_here(&self, id: SessionId) {
        if let Some((_, session)) = self.live.remove(&id) {
            session.end();
        }
    }

    /// Forgets a session that is idle in this node.
    fn release(&self, id: SessionId) {
        self.live.remove_if(&id, |_, session| session.release());
    }
}

/// Uses an id as its own hash. Its bits are random, and no client chooses those of an existing session.
#[derive(Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, bits: u128) {
        self.0 = (bits >> 64) as u64 ^ bits as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the refusal for an error of the session store.
pub(super) fn refuse(error: &StoreError) -> Refusal {
    match error {
        StoreError::Full | StoreError::PrincipalQuotaExceeded => Refusal::TOO_MANY,
        StoreError::TooLarge => {
            Refusal::INVALID_PARAMS.with_message("`capabilities` is larger than a session may keep")
        }
        StoreError::Unavailable(_) => {
            tracing::error!(%error, "the session store failed");
            Refusal::STORE_UNAVAILABLE
        }
        other => {
            tracing::error!(error = %other, "the session store failed");
            Refusal::INTERNAL
        }
    }
}
