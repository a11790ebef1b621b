//! Legacy sessions in a file: what a client opened before a restart, or on another node, answers afterwards.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, named_params, params};
use tokio::sync::oneshot;
use trunkline::session::{
    BoxFuture, Principal, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError, Timestamp,
};

/// How many requests may wait for the file; beyond that the store returns an error that it is too busy.
const MOST_WAITING: usize = 1024;

const SCHEMA: &str = "
    pragma journal_mode = wal;
    pragma synchronous = normal;
    pragma busy_timeout = 5000;
    create table if not exists sessions (
        id text primary key,
        -- Of an anonymous caller 0, of a process 1, of a named party 2: a name alone would not keep them apart.
        kind integer not null,
        name text not null,
        -- The record as JSON, which holds its version.
        record text not null,
        created integer not null,
        used integer not null,
        -- When the session is over, if it is not used again.
        ends integer not null
    ) strict, without rowid;
    create index if not exists sessions_by_end on sessions (ends);
    create index if not exists sessions_by_principal on sessions (kind, name);
";

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Keeps sessions in a SQLite file. Several processes may share it.
///
/// One thread owns the database, so that no other thread waits for the disk.
pub struct SqliteSessions {
    limits: SessionLimits,
    jobs: SyncSender<Job>,
    count: Arc<AtomicUsize>,
}

impl SqliteSessions {
    /// Opens the file, or makes it so that only its owner can read it: an id is half of what is needed to use a session.
    ///
    /// # Errors
    /// It cannot be opened, or is no database.
    pub fn open(path: &Path, limits: SessionLimits) -> rusqlite::Result<Self> {
        keep_private(path);
        Self::over(Connection::open(path)?, limits)
    }

    fn over(mut connection: Connection, limits: SessionLimits) -> rusqlite::Result<Self> {
        connection.execute_batch(SCHEMA)?;
        let count = connection.query_row("select count(*) from sessions", [], counted)?;
        let (jobs, waiting) = sync_channel::<Job>(MOST_WAITING);
        // It ends with the last sender, which is the store itself.
        std::thread::spawn(move || waiting.into_iter().for_each(|job| job(&mut connection)));
        Ok(Self { limits, jobs, count: Arc::new(AtomicUsize::new(count)) })
    }

    /// Does something with the file, on its thread.
    fn on_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let (send, receive) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The requester may have gone; the change is done.
            let _ = send.send(work(connection));
        });
        let sent = self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => unavailable("too many requests wait for the file"),
            TrySendError::Disconnected(_) => unavailable("the thread of the file is gone"),
        });
        Box::pin(async move {
            sent?;
            let done = receive.await.map_err(|_| unavailable("the thread of the file is gone"))?;
            done.map_err(|failure| match failure {
                Failure::Refused(error) => error,
                Failure::File(error) => unavailable(&error.to_string()),
            })
        })
    }
}

/// Why something was not done: the store refuses it, or the file fails.
enum Failure {
    Refused(StoreError),
    File(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error)
    }
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}

#[cfg(unix)]
fn keep_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    // An existing file stays as it is, and opening reports a file that cannot be created.
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

#[cfg(not(unix))]
fn keep_private(_: &Path) {}

fn kind_and_name(principal: &Principal) -> (i64, String) {
    match principal {
        Principal::Anonymous => (0, String::new()),
        Principal::Process => (1, String::new()),
        Principal::Named(name) => (2, name.to_string()),
    }
}

fn counted(row: &Row<'_>) -> rusqlite::Result<usize> {
    row.get::<_, i64>(0).map(|count| usize::try_from(count).unwrap_or_default())
}

/// Times are below 2^63 for the next 292 million years.
fn number(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// Returns how long, in milliseconds.
fn length(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}

/// Reads a record; one that this version does not understand is no session of ours.
fn record(row: &Row<'_>) -> rusqlite::Result<Option<SessionRecord>> {
    let created = Timestamp(u64::try_from(row.get::<_, i64>("created")?).unwrap_or_default());
    let record = SessionRecord::from_json(&row.get::<_, String>("record")?);
    Ok(record.ok().map(|record| SessionRecord { created, ..record }))
}

/// Starts the idle clock of a session that is not over. The clock can step back, which shortens no session's life.
const USED: &str = "used = max(used, :now), ends = min(max(used, :now) + :idle, created + :absolute)";

impl SessionStore for SqliteSessions {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        if !record.fits(&self.limits) {
            return Box::pin(std::future::ready(Err(StoreError::TooLarge)));
        }
        let (limits, count) = (self.limits.clone(), self.count.clone());
        self.on_file(move |connection| {
            let (kind, name) = kind_and_name(&record.principal);
            let within = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let count_of =
                |sql: &str, values: &[&dyn rusqlite::ToSql]| within.query_row(sql, values, counted);
            let id = record.id.to_string();
            if count_of("select count(*) from sessions where id = ?", &[&id])? > 0 {
                return Err(Failure::Refused(StoreError::Duplicate));
            }
            let all = count_of("select count(*) from sessions", &[])?;
            count.store(all, Ordering::Relaxed);
            if all >= limits.total {
                return Err(Failure::Refused(StoreError::Full));
            }
            let own = "select count(*) from sessions where kind = ? and name = ?";
            if kind == 2 && count_of(own, &[&kind, &name])? >= limits.per_principal {
                return Err(Failure::Refused(StoreError::PrincipalQuotaExceeded));
            }
            let (now, created) = (number(now), number(record.created));
            let ends = now.saturating_add(length(limits.idle));
            within.execute(
                "insert into sessions values (?, ?, ?, ?, ?, ?, ?)",
                params![
                    id,
                    kind,
                    name,
                    record.to_json(),
                    created,
                    now,
                    ends.min(created.saturating_add(length(limits.absolute))),
                ],
            )?;
            within.commit()?;
            count.store(all + 1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        let ((kind, name), limits) = (kind_and_name(principal), self.limits.clone());
        self.on_file(move |connection| {
            let sql = format!(
                "update sessions set {USED} where id = :id and kind = :kind and name = :name and ends > :now returning *"
            );
            let values = named_params! {
                ":id": id.to_string(), ":kind": kind, ":name": name, ":now": number(now),
                ":idle": length(limits.idle), ":absolute": length(limits.absolute),
            };
            let found = connection.prepare_cached(&sql)?.query_row(values, record).optional()?;
            Ok(found.flatten())
        })
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        if !record.fits(&self.limits) {
            return Box::pin(std::future::ready(Err(StoreError::TooLarge)));
        }
        let limits = self.limits.clone();
        self.on_file(move |connection| {
            let (kind, name) = kind_and_name(&record.principal);
            let sql = format!(
                "update sessions set {USED}, record = :record \
                 where id = :id and kind = :kind and name = :name and ends > :now"
            );
            let changed = connection.prepare_cached(&sql)?.execute(named_params! {
                ":id": record.id.to_string(), ":kind": kind, ":name": name, ":now": number(now),
                ":idle": length(limits.idle), ":absolute": length(limits.absolute),
                ":record": record.to_json(),
            })?;
            Ok(changed > 0)
        })
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        let limits = self.limits.clone();
        self.on_file(move |connection| {
            let sql = format!("update sessions set {USED} where id = :id and ends > :now");
            let changed = connection.prepare_cached(&sql)?.execute(named_params! {
                ":id": id.to_string(), ":now": number(now),
                ":idle": length(limits.idle), ":absolute": length(limits.absolute),
            })?;
            Ok(changed > 0)
        })
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let ((kind, name), count) = (kind_and_name(principal), self.count.clone());
        self.on_file(move |connection| {
            let sql = "delete from sessions where id = ? and kind = ? and name = ?";
            let gone = connection.prepare_cached(sql)?.execute(params![id.to_string(), kind, name])?;
            forget(&count, gone);
            Ok(gone > 0)
        })
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let count = self.count.clone();
        self.on_file(move |connection| {
            let mut statement =
                connection.prepare_cached("delete from sessions where ends <= ? returning id")?;
            let gone = statement.query_map([number(now)], |row| row.get::<_, String>(0))?;
            let gone: Vec<String> = gone.collect::<rusqlite::Result<_>>()?;
            forget(&count, gone.len());
            Ok(gone.iter().filter_map(|id| SessionId::parse(id.as_bytes())).collect())
        })
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn list_all(
        &self,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.on_file(move |connection| {
            let mut query = connection.prepare_cached("select * from sessions where ends > ? limit ?")?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let found = query.query_map(params![number(now), most], record)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        let (kind, name) = kind_and_name(principal);
        self.on_file(move |connection| {
            let sql = "select * from sessions where kind = ? and name = ? and ends > ?";
            let mut statement = connection.prepare_cached(sql)?;
            let found = statement.query_map(params![kind, name, number(now)], record)?;
            let found: Vec<Option<SessionRecord>> = found.collect::<rusqlite::Result<_>>()?;
            Ok(found.into_iter().flatten().collect())
        })
    }
}

/// Takes sessions off the count, which another process that shares the file may have made too small.
fn forget(count: &AtomicUsize, gone: usize) {
    let less = |count: usize| Some(count.saturating_sub(gone));
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl fmt::Debug for SqliteSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSessions").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_in_a_database_keep_the_contract() {
        trunkline::session::contract::sessions(|limits| {
            SqliteSessions::over(Connection::open_in_memory().unwrap(), limits).unwrap()
        });
    }

    #[test]
    fn sessions_in_a_file_keep_the_contract_and_the_file_is_private() {
        let folder = std::env::temp_dir().join(format!("trunkline-sessions-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = AtomicUsize::new(0);
        let path = |number: usize| folder.join(format!("{number}.db"));
        trunkline::session::contract::sessions(|limits| {
            SqliteSessions::open(&path(made.fetch_add(1, Ordering::Relaxed)), limits).unwrap()
        });
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(path(0)).unwrap().permissions().mode() & 0o077, 0);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
