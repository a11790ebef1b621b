//! The hub's sessions with servers over Streamable HTTP, stored so that the next run or another process continues them.
//!
//! One row has the sessions of one server that the same clients share. A row belongs to the process that wrote it last:
//! of an exclusive store for as long as that process has the store, of a shared one for as long as its lease is renewed.
//! Two processes never continue one session at a time, since a server sends what belongs to no request to one of them.
//!
//! # Invariants
//!
//! - A session is continued only for the callers that shared it, and only with the same configuration:
//!   `upstream_session_is_continued_only_for_its_own_callers`, `changed_server_gets_a_new_upstream_session`.
//! - No two processes continue one session at a time: `row_of_a_living_process_is_not_claimed`.

mod session_row;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use trunkline_session::{
    Principal, RecordError, ReplaceOutcome, StateHandle, StateLifetime, StateRecord, StateStore, StoreError,
    Timestamp,
};

use self::session_row::SessionRow;
pub(crate) use self::session_row::UpstreamSession;

/// How often rows are checked, so that a session that was opened again is stored; a row in a shared store is renewed each
/// time.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long a row in a shared store belongs to a process that does not renew it.
const LEASE: Duration = Duration::from_secs(15);

/// How often a row in an exclusive store is written although nothing has changed, so that it does not expire.
const KEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Stores the hub's sessions with servers, for [`HubOptions::upstream_sessions`](crate::HubOptions::upstream_sessions).
///
/// Clones are the same; each hub needs one of its own.
#[derive(Clone)]
pub struct UpstreamSessions {
    rows: Arc<SessionRows>,
}

/// Whether other processes use a store at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// No other process does, such as with a file that is locked.
    Exclusive,
    /// Other processes may, so that each row has a lease.
    Shared,
}

struct SessionRows {
    store: Arc<dyn StateStore>,
    access: StoreAccess,
    /// Identifies this process.
    owner: String,
    held: Mutex<HashMap<StateHandle, HeldRow>>,
    /// Notified when sessions may have to be stored.
    changed: Notify,
    /// Held while rows are written.
    turn: tokio::sync::Mutex<()>,
    /// Set at shutdown, when rows stay as they are.
    is_closed: AtomicBool,
}

/// Identifies a row, and the principal that it is stored for.
#[derive(Clone, Debug)]
pub(crate) struct SessionRowKey {
    pub(crate) handle: StateHandle,
    pub(crate) principal: Principal,
}

/// A row that belongs to this process.
#[derive(Clone, Debug)]
struct HeldRow {
    key: SessionRowKey,
    version: u64,
    sessions: Vec<UpstreamSession>,
    written_at: Timestamp,
    /// Its sessions have no connections yet.
    is_reviving: bool,
}

impl UpstreamSessions {
    /// Uses a store of state. Its limits bound how many rows there are, for all and for one principal, how large one is
    /// and how long it lives without its process.
    pub fn new(store: Arc<dyn StateStore>, access: StoreAccess) -> Self {
        let rows = SessionRows {
            store,
            access,
            owner: StateHandle::random().to_string(),
            held: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            is_closed: AtomicBool::new(false),
        };
        Self { rows: Arc::new(rows) }
    }

    /// Requests that sessions are stored as they are now.
    pub(crate) fn notify_changed(&self) {
        self.rows.changed.notify_one();
    }

    /// Waits for such a request.
    pub(crate) async fn changed(&self) {
        self.rows.changed.notified().await;
    }

    /// Takes over the sessions of a row from a process that has ended. They are not changed in the store until
    /// [`UpstreamSessions::end_revival`].
    pub(crate) async fn claim(&self, key: &SessionRowKey) -> Vec<UpstreamSession> {
        if self.lock().contains_key(&key.handle) || self.is_closed() {
            // What it has is connected already, or was.
            return Vec::new();
        }
        self.rows.claim(key).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "stored sessions with servers cannot be read, and new ones are opened");
            Vec::new()
        })
    }

    /// Lets the sessions of a claimed row be stored as they are connected now.
    pub(crate) fn end_revival(&self, key: &SessionRowKey) {
        if let Some(held) = self.lock().get_mut(&key.handle) {
            held.is_reviving = false;
        }
        self.notify_changed();
    }

    /// Stores what differs from the rows, renews rows, and removes those without a session.
    pub(crate) async fn record(&self, current: Vec<(SessionRowKey, Vec<UpstreamSession>)>) {
        let _turn = self.rows.turn.lock().await;
        if self.is_closed() {
            return;
        }
        let ended: Vec<HeldRow> = {
            let held = self.lock();
            let is_over = |row: &&HeldRow| {
                !row.is_reviving && current.iter().all(|(key, _)| key.handle != row.key.handle)
            };
            held.values().filter(is_over).cloned().collect()
        };
        for row in ended {
            self.rows.remove(row).await;
        }
        for (key, sessions) in current {
            if let Err(error) = self.rows.write(&key, sessions, now()).await {
                tracing::debug!(%error, "sessions with a server cannot be stored");
            }
        }
    }

    /// Leaves the rows as they are, at shutdown, and returns what is in them.
    pub(crate) async fn close(&self) -> Vec<StateHandle> {
        let _turn = self.rows.turn.lock().await;
        self.rows.is_closed.store(true, Ordering::SeqCst);
        self.lock().keys().copied().collect()
    }

    /// Ends the leases, once the connections are closed.
    pub(crate) async fn release(&self) {
        let held: Vec<_> = std::mem::take(&mut *self.lock()).into_values().collect();
        for row in held.into_iter().filter(|_| self.rows.access == StoreAccess::Shared) {
            let value = self.rows.row(row.sessions.clone(), Timestamp(0));
            if let Err(error) = self.rows.replace(&row.key, row.version, &value, now()).await {
                tracing::debug!(%error, "a session with a server cannot be released");
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.rows.is_closed.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StateHandle, HeldRow>> {
        self.rows.held.lock()
    }
}

impl SessionRows {
    fn row(&self, sessions: Vec<UpstreamSession>, leased_until: Timestamp) -> SessionRow {
        SessionRow { owner: self.owner.clone(), leased_until, sessions }
    }

    /// Reports whether a row may be taken over.
    fn is_free(&self, row: &SessionRow, now: Timestamp) -> bool {
        self.access == StoreAccess::Exclusive || row.owner == self.owner || row.leased_until <= now
    }

    fn hold(
        &self,
        key: &SessionRowKey,
        version: u64,
        sessions: Vec<UpstreamSession>,
        is_reviving: bool,
        now: Timestamp,
    ) {
        let row = HeldRow { key: key.clone(), version, sessions, written_at: now, is_reviving };
        self.held.lock().insert(key.handle, row);
    }

    async fn replace(
        &self,
        key: &SessionRowKey,
        version: u64,
        row: &SessionRow,
        now: Timestamp,
    ) -> Result<ReplaceOutcome, StoreError> {
        self.store.replace(key.handle, &key.principal, version, row.to_raw(), now).await
    }

    /// Reads a row that may be taken over, with its version.
    async fn read(
        &self,
        key: &SessionRowKey,
        now: Timestamp,
    ) -> Result<Option<(SessionRow, u64)>, StoreError> {
        let Some(stored) = self.store.get(key.handle, &key.principal, now).await? else { return Ok(None) };
        match SessionRow::from_raw(&stored.value) {
            Ok(row) => Ok(Some((row, stored.version))),
            Err(error @ RecordError::Newer(_)) => Err(StoreError::Unavailable(error.to_string())),
            Err(_) => Ok(Some((self.row(Vec::new(), Timestamp(0)), stored.version))),
        }
    }

    async fn claim(&self, key: &SessionRowKey) -> Result<Vec<UpstreamSession>, StoreError> {
        let now = now();
        let Some((found, version)) = self.read(key, now).await? else { return Ok(Vec::new()) };
        if !self.is_free(&found, now) {
            return Ok(Vec::new());
        }
        let row = self.row(found.sessions.clone(), now.plus(LEASE));
        match self.replace(key, version, &row, now).await? {
            ReplaceOutcome::Done => {
                self.hold(key, version + 1, found.sessions.clone(), true, now);
                Ok(found.sessions)
            }
            // Another process was faster.
            ReplaceOutcome::VersionMismatch | ReplaceOutcome::Missing => Ok(Vec::new()),
        }
    }

    async fn write(
        &self,
        key: &SessionRowKey,
        sessions: Vec<UpstreamSession>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let held = self.held.lock().get(&key.handle).cloned();
        let row = self.row(sessions, now.plus(LEASE));
        let Some(held) = held else { return self.begin(key, row, now).await };
        let age = now.since(held.written_at);
        let is_due = match self.access {
            StoreAccess::Exclusive => age >= KEEP_INTERVAL,
            // Within one turn of the checks.
            StoreAccess::Shared => age >= CHECK_INTERVAL / 2,
        };
        if held.is_reviving || (held.sessions == row.sessions && !is_due) {
            return Ok(());
        }
        match self.replace(key, held.version, &row, now).await? {
            ReplaceOutcome::Done => self.hold(key, held.version + 1, row.sessions, false, now),
            ReplaceOutcome::VersionMismatch => {
                tracing::warn!("another process continues sessions with servers of this one");
                self.held.lock().remove(&key.handle);
            }
            // It has expired, or was evicted.
            ReplaceOutcome::Missing => {
                self.held.lock().remove(&key.handle);
                self.begin(key, row, now).await?;
            }
        }
        Ok(())
    }

    /// Writes a row for the first time, or over that of a process that has ended.
    async fn begin(&self, key: &SessionRowKey, row: SessionRow, now: Timestamp) -> Result<(), StoreError> {
        match self.read(key, now).await? {
            None => {
                let record = StateRecord {
                    handle: key.handle,
                    principal: key.principal.clone(),
                    lifetime: StateLifetime::Idle,
                    value: row.to_raw(),
                };
                self.store.create(record, now).await?;
                self.hold(key, 0, row.sessions, false, now);
            }
            Some((found, version)) if self.is_free(&found, now) => {
                if self.replace(key, version, &row, now).await? == ReplaceOutcome::Done {
                    self.hold(key, version + 1, row.sessions, false, now);
                }
            }
            // Of another process, which may end.
            Some(_) => {}
        }
        Ok(())
    }

    /// Removes a row without a session, unless another process has taken it over.
    async fn remove(&self, row: HeldRow) {
        let empty = self.row(Vec::new(), Timestamp(0));
        match self.replace(&row.key, row.version, &empty, now()).await {
            Ok(outcome) => {
                self.held.lock().remove(&row.key.handle);
                if outcome == ReplaceOutcome::Done {
                    self.store.forget(row.key.handle);
                }
            }
            // Tried again at the next check.
            Err(error) => tracing::debug!(%error, "an ended session with a server cannot be removed"),
        }
    }
}

fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}

impl fmt::Debug for UpstreamSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSessions")
            .field("access", &self.rows.access)
            .field("rows", &self.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
