use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Script;
use tokio::task::JoinSet;
use trunkline_session::{
    BoxFuture, Principal, RecordChange, RecordError, RecordVersion, RowKind, SessionId, SessionLimits,
    SessionRecord, SessionRefresh, SessionStore, StoreError, Timestamp,
};

use crate::clock::{idle_slack, milliseconds};
use crate::scripts::{
    SESSION_CREATE, SESSION_DELETE, SESSION_EVICT, SESSION_UPDATE, SESSION_USE, ScriptCall,
};
use crate::session_index::{INDEX_BATCH, IndexEntry, SessionIndex, SessionKey};
use crate::store::{RedisCore, hexadecimal, run_on_store, run_sweep_on_store};

/// The sessions in Redis. One request of a session is one round trip, and opening one is two.
#[derive(Clone, Debug)]
pub struct RedisSessions {
    shared: Arc<SharedSessions>,
}

#[derive(Debug)]
pub(crate) struct SharedSessions {
    pub(crate) core: Arc<RedisCore>,
    limits: SessionLimits,
    /// The number of sessions when it was last known.
    count: AtomicUsize,
}

/// Servers report the use of a session at least every 30 s. After this time without one no process is using it.
const IN_USE: Duration = Duration::from_secs(90);

/// How often a change is tried again because another process has changed the record meanwhile.
const MAX_CHANGE_ATTEMPTS: usize = 16;

/// The outcome of an update.
enum UpdateOutcome {
    Done,
    Missing,
    /// The record has another version than the one to replace.
    OtherVersion,
}

/// Returns the version of a sealed record: the beginning of its nonce, which is random.
fn version_of(sealed: &[u8]) -> Option<RecordVersion> {
    sealed.first_chunk().map(|nonce| RecordVersion(u64::from_le_bytes(*nonce)))
}

fn version_bytes(version: Option<RecordVersion>) -> Vec<u8> {
    version.map_or_else(Vec::new, |version| version.0.to_le_bytes().to_vec())
}

/// A stored record, sealed, and when its session was created by the clock of this process.
pub(crate) type FoundRecord = Option<(Vec<u8>, u64)>;

impl RedisSessions {
    pub(crate) fn new(core: Arc<RedisCore>, limits: SessionLimits) -> Self {
        Self { shared: Arc::new(SharedSessions { core, limits, count: AtomicUsize::new(0) }) }
    }

    pub(crate) async fn refresh_count(&self) -> Result<(), StoreError> {
        let count = self.shared.index().count().await?;
        self.shared.count.store(count, Ordering::Relaxed);
        Ok(())
    }

    /// Runs an operation on the runtime of the store.
    fn run<T, F>(
        &self,
        operation: impl FnOnce(Arc<SharedSessions>) -> F,
    ) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        run_on_store(&self.shared.core, operation(self.shared.clone()))
    }
}

impl SharedSessions {
    pub(crate) fn index(&self) -> SessionIndex<'_> {
        SessionIndex { core: &self.core, limits: &self.limits }
    }

    pub(crate) fn note_count(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    fn row(&self, key: &SessionKey) -> String {
        format!("{}:session:{}", self.core.prefix, hexadecimal(*key))
    }

    /// Begins a call of a script on one session.
    pub(crate) fn call(
        &self,
        script: &'static std::sync::LazyLock<Script>,
        key: &SessionKey,
        now: Timestamp,
    ) -> ScriptCall {
        self.core
            .timed(ScriptCall::new(script, &[self.row(key)]), now)
            .arg(milliseconds(self.limits.idle))
            .arg(milliseconds(self.limits.absolute))
            .arg(&self.core.process)
    }

    fn slack(&self) -> u64 {
        milliseconds(idle_slack(self.limits.idle))
    }

    fn seal(&self, key: &SessionKey, record: &SessionRecord) -> Result<Vec<u8>, StoreError> {
        self.core.seal(RowKind::Session, key, record.to_json().as_bytes())
    }

    /// Opens a record; `None` if it is sealed with a key that this process does not have.
    pub(crate) fn open(
        &self,
        key: &SessionKey,
        found: FoundRecord,
    ) -> Result<Option<SessionRecord>, StoreError> {
        let Some((sealed, created)) = found else { return Ok(None) };
        let Some(opened) = RowKind::Session.open(&self.core.sealer, key, &sealed) else {
            tracing::warn!("a session is sealed with another state key");
            return Ok(None);
        };
        let text = String::from_utf8(opened.plain).map_err(|_| unreadable(&RecordError::Malformed))?;
        let record = SessionRecord::from_json(&text).map_err(|error| unreadable(&error))?;
        Ok(Some(SessionRecord { created: Timestamp(created), ..record }))
    }

    async fn create(self: &Arc<Self>, record: SessionRecord, now: Timestamp) -> Result<(), StoreError> {
        if !record.fits(&self.limits) {
            return Err(StoreError::TooLarge);
        }
        let entry = IndexEntry::new(&self.core, &record);
        let sealed = self.seal(&entry.key, &record)?;
        let (reserved, count) = self.index().reserve(&record, &entry, now).await;
        count.into_iter().for_each(|count| self.note_count(count));
        reserved?;
        let call =
            self.call(&SESSION_CREATE, &entry.key, now).arg(record.created.0).arg(&entry.owner).arg(sealed);
        match self.core.link.call::<u8>(&call).await {
            Ok(1) => Ok(()),
            Ok(_) => Err(StoreError::Duplicate),
            Err(error) => {
                // The client never learns of the session. Where this fails too, the first check removes the entry.
                let shared = self.clone();
                self.core.link.runtime().spawn(async move {
                    if let Ok((_, count)) = shared.index().release(&entry.key, &entry.owner).await {
                        shared.note_count(count);
                    }
                });
                Err(error)
            }
        }
    }

    /// Restarts the idle timer of a session, of any principal if `owner` is `None`.
    async fn use_session(
        &self,
        id: SessionId,
        owner: Option<&Principal>,
        known: Option<RecordVersion>,
        now: Timestamp,
    ) -> Result<FoundRecord, StoreError> {
        let owner_digest = owner.map_or_else(Vec::new, |owner| self.core.principal(owner).to_vec());
        let call = self
            .call(&SESSION_USE, &id.row_key(), now)
            .arg(self.slack())
            .arg(owner_digest)
            .arg(u8::from(owner.is_some()))
            .arg(version_bytes(known));
        self.core.link.call(&call).await
    }

    async fn get(
        &self,
        id: SessionId,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Option<SessionRecord>, StoreError> {
        Ok(self.refresh(id, principal, None, now).await?.and_then(|found| found.record))
    }

    async fn refresh(
        &self,
        id: SessionId,
        principal: &Principal,
        known: Option<RecordVersion>,
        now: Timestamp,
    ) -> Result<Option<SessionRefresh>, StoreError> {
        let found = self.use_session(id, Some(principal), known, now).await?;
        let Some((sealed, _)) = &found else { return Ok(None) };
        if sealed.is_empty() {
            // The caller has this version, and it was checked when it was read.
            return Ok(Some(SessionRefresh { record: None, version: known }));
        }
        let version = version_of(sealed);
        let record = self.open(&id.row_key(), found)?;
        // What is sealed decides, not what is beside it.
        let own = record.filter(|record| record.id == id && record.principal == *principal);
        Ok(own.map(|record| SessionRefresh { record: Some(record), version }))
    }

    async fn update(
        &self,
        record: &SessionRecord,
        replaced: Option<RecordVersion>,
        now: Timestamp,
    ) -> Result<UpdateOutcome, StoreError> {
        if !record.fits(&self.limits) {
            return Err(StoreError::TooLarge);
        }
        let entry = IndexEntry::new(&self.core, record);
        if !self.index().resize(&entry, now).await? {
            return Ok(UpdateOutcome::Missing);
        }
        let sealed = self.seal(&entry.key, record)?;
        let call = self
            .call(&SESSION_UPDATE, &entry.key, now)
            .arg(self.slack())
            .arg(&entry.owner)
            .arg(sealed)
            .arg(version_bytes(replaced));
        Ok(match self.core.link.call::<u8>(&call).await? {
            0 => UpdateOutcome::Missing,
            1 => UpdateOutcome::Done,
            _ => UpdateOutcome::OtherVersion,
        })
    }

    async fn change(
        &self,
        id: SessionId,
        principal: &Principal,
        changes: &[RecordChange],
        now: Timestamp,
    ) -> Result<Option<SessionRecord>, StoreError> {
        for _ in 0..MAX_CHANGE_ATTEMPTS {
            let Some(found) = self.refresh(id, principal, None, now).await? else { return Ok(None) };
            let Some(before) = found.record else { return Ok(None) };
            let mut record = before.clone();
            changes.iter().for_each(|change| record.apply(change));
            if record == before {
                return Ok(Some(record));
            }
            match self.update(&record, found.version, now).await? {
                UpdateOutcome::Done => return Ok(Some(record)),
                UpdateOutcome::Missing => return Ok(None),
                UpdateOutcome::OtherVersion => {}
            }
        }
        Err(StoreError::Unavailable("too many processes change the session at once".to_owned()))
    }

    /// Restarts the idle timers of sessions at the same time; returns those that do not exist.
    async fn touch_all(
        self: &Arc<Self>,
        ids: &[SessionId],
        now: Timestamp,
    ) -> Result<Vec<SessionId>, StoreError> {
        let mut missing = Vec::new();
        for ids in ids.chunks(INDEX_BATCH) {
            let mut calls = JoinSet::new();
            for id in ids.iter().copied() {
                let shared = self.clone();
                calls.spawn(async move {
                    let found = shared.use_session(id, None, None, now).await;
                    found.map(|found| found.is_none().then_some(id))
                });
            }
            let touched: Result<Vec<_>, _> = calls.join_all().await.into_iter().collect();
            missing.extend(touched?.into_iter().flatten());
        }
        Ok(missing)
    }

    async fn delete(&self, id: SessionId, principal: &Principal) -> Result<bool, StoreError> {
        let (key, owner) = (id.row_key(), self.core.principal(principal));
        let call = ScriptCall::new(&SESSION_DELETE, &[self.row(&key)]).arg(&owner);
        let is_deleted = self.core.link.call::<u8>(&call).await? == 1;
        let (is_released, count) = self.index().release(&key, &owner).await?;
        self.note_count(count);
        // A repeated call finds the row gone, and the entry still there.
        Ok(is_deleted || is_released)
    }

    async fn evict(&self, id: SessionId, principal: &Principal, now: Timestamp) -> Result<bool, StoreError> {
        let (key, owner) = (id.row_key(), self.core.principal(principal));
        let call = self.call(&SESSION_EVICT, &key, now).arg(&owner).arg(milliseconds(IN_USE));
        if self.core.link.call::<u8>(&call).await? == 0 {
            return Ok(false);
        }
        let (is_released, count) = self.index().release(&key, &owner).await?;
        self.note_count(count);
        Ok(is_released)
    }
}

fn unreadable(error: &RecordError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

impl SessionStore for RedisSessions {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(move |sessions| async move { sessions.create(record, now).await })
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        let principal = principal.clone();
        self.run(move |sessions| async move { sessions.get(id, &principal, now).await })
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(move |sessions| async move {
            Ok(matches!(sessions.update(&record, None, now).await?, UpdateOutcome::Done))
        })
    }

    fn refresh<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        known: Option<RecordVersion>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRefresh>, StoreError>> {
        let principal = principal.clone();
        self.run(move |sessions| async move { sessions.refresh(id, &principal, known, now).await })
    }

    fn change<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        changes: &'a [RecordChange],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        let (principal, changes) = (principal.clone(), changes.to_vec());
        self.run(move |sessions| async move { sessions.change(id, &principal, &changes, now).await })
    }

    fn touch_all<'a>(
        &'a self,
        ids: &'a [SessionId],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        let (shared, ids) = (self.shared.clone(), ids.to_vec());
        run_sweep_on_store(&self.shared.core, async move { shared.touch_all(&ids, now).await })
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(
            move |sessions| async move { Ok(sessions.use_session(id, None, None, now).await?.is_some()) },
        )
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let principal = principal.clone();
        self.run(move |sessions| async move { sessions.delete(id, &principal).await })
    }

    fn evict<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let principal = principal.clone();
        self.run(move |sessions| async move { sessions.evict(id, &principal, now).await })
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let shared = self.shared.clone();
        run_sweep_on_store(&self.shared.core, async move {
            shared.core.check_header().await?;
            shared.expire(now).await
        })
    }

    fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }

    fn kind(&self) -> &'static str {
        "redis"
    }

    fn idle_slack(&self) -> Duration {
        idle_slack(self.shared.limits.idle)
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        let principal = principal.clone();
        self.run(move |sessions| async move { sessions.list(&principal, now).await })
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        let shared = self.shared.clone();
        run_sweep_on_store(&self.shared.core, async move { shared.list_all(most, now).await })
    }
}
