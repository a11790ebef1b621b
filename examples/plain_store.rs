//! A store of one's own for legacy sessions, in less than 60 lines: one file for each session, in a folder.
//!
//! The store of the crate keeps the limits, the owners and the times; what is left is to write and to remove files. The
//! names of the files are secrets, so the folder is for its owner alone.
//! `cargo run --example plain_store` serves with it at http://127.0.0.1:3000/mcp. A store with transactions is
//! `examples/sqlite`, and one for large numbers of sessions is the feature `store-file`.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trunkline::server::http::{self, HttpServerOptions};
use trunkline::session::{
    BoxFuture, MemorySessions, Principal, SessionId, SessionLimits, SessionRecord as Record, SessionStore,
    StoreError, Timestamp,
};
use trunkline::{HostOptions, Server, Tool};

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

#[derive(Debug)]
pub(crate) struct FolderStore(MemorySessions, PathBuf, Mutex<()>);

impl FolderStore {
    /// Opens the store in a folder, with the sessions that are there; their idle times start again.
    pub(crate) fn open(folder: PathBuf, limits: SessionLimits) -> std::io::Result<Self> {
        let sessions = MemorySessions::new(limits);
        for entry in std::fs::read_dir(&folder)? {
            if let Ok(record) = Record::from_json(&std::fs::read_to_string(entry?.path())?) {
                sessions.restore(record, now());
            }
        }
        Ok(Self(sessions, folder, Mutex::default()))
    }

    /// Brings the file of a session up to date with the memory.
    fn save(&self, id: SessionId) -> Result<(), StoreError> {
        let _one_at_a_time = self.2.lock();
        let path = self.1.join(id.to_string());
        let saved = match self.0.snapshot(id) {
            Some((record, _)) => std::fs::write(path, record.to_json()),
            None if path.exists() => std::fs::remove_file(path),
            None => Ok(()),
        };
        saved.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Makes a change to the memory, and then to the file.
    async fn saved<T>(&self, id: SessionId, change: Reply<'_, T>) -> Result<T, StoreError> {
        let changed = change.await?;
        self.save(id).map(|()| changed)
    }
}

impl SessionStore for FolderStore {
    fn create(&self, record: Record, now: Timestamp) -> Reply<'_, ()> {
        Box::pin(self.saved(record.id, self.0.create(record, now)))
    }

    fn get<'a>(&'a self, id: SessionId, owner: &'a Principal, now: Timestamp) -> Reply<'a, Option<Record>> {
        self.0.get(id, owner, now)
    }

    fn update(&self, record: Record, now: Timestamp) -> Reply<'_, bool> {
        Box::pin(self.saved(record.id, self.0.update(record, now)))
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> Reply<'_, bool> {
        self.0.touch(id, now)
    }

    fn delete<'a>(&'a self, id: SessionId, principal: &'a Principal) -> Reply<'a, bool> {
        Box::pin(self.saved(id, self.0.delete(id, principal)))
    }

    fn expire(&self, now: Timestamp) -> Reply<'_, Vec<SessionId>> {
        Box::pin(async move {
            let expired = self.0.expire(now).await?;
            expired.iter().try_for_each(|id| self.save(*id)).map(|()| expired)
        })
    }

    fn count(&self) -> usize {
        self.0.count()
    }

    fn list_all(&self, most: usize, now: Timestamp) -> Reply<'_, Vec<Record>> {
        self.0.list_all(most, now)
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create("sessions")?;
    let sessions = Arc::new(FolderStore::open("sessions".into(), SessionLimits::default())?);
    let options = HttpServerOptions { sessions: Some(sessions), ..HttpServerOptions::default() };
    let server = Server::new("plain").with(Tool::new("hello").run(async || "hello"));
    let endpoint = server.host(HostOptions::default())?.http_service(options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    http::serve(listener, &endpoint, endpoint.clone(), Duration::from_secs(5)).await?;
    Ok(())
}
