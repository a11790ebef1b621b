//! A store of one's own for legacy sessions: one file for each session, in a folder.
//!
//! The store of the crate keeps the limits, the owners and the times; what is left is to write and to remove files. The
//! names of the files are secrets, so the folder is for its owner alone.
//! `cargo run --example plain_store` serves with it at http://127.0.0.1:3000/mcp. A store with transactions is
//! `examples/sqlite`, and one for large numbers of sessions is the feature `store-file`.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline::server::http::{self, HttpServerOptions};
use trunkline::session::{
    BoxFuture, MemorySessions, Principal, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError,
    Timestamp,
};
use trunkline::{HostOptions, Server, Tool};

#[derive(Debug)]
pub(crate) struct FolderStore(MemorySessions, PathBuf);

impl FolderStore {
    /// Opens the store in a folder, with the sessions that are there.
    pub(crate) async fn open(folder: PathBuf, limits: SessionLimits) -> std::io::Result<Self> {
        let sessions = MemorySessions::new(limits);
        for entry in std::fs::read_dir(&folder)? {
            if let Ok(record) = SessionRecord::from_json(&std::fs::read_to_string(entry?.path())?) {
                // Their idle time starts again; one that does not fit any more is left out.
                let created = record.created;
                let _ = sessions.create(record, created.max(now())).await;
            }
        }
        Ok(Self(sessions, folder))
    }

    fn write(&self, record: &SessionRecord) -> Result<(), StoreError> {
        let path = self.1.join(record.id.to_string());
        std::fs::write(path, record.to_json()).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    fn remove(&self, id: SessionId) {
        // A file that stays is one of a session that is expired when it is read.
        let _ = std::fs::remove_file(self.1.join(id.to_string()));
    }
}

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl SessionStore for FolderStore {
    fn create(&self, record: SessionRecord, now: Timestamp) -> Reply<'_, ()> {
        Box::pin(async move {
            self.0.create(record.clone(), now).await?;
            self.write(&record)
        })
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> Reply<'a, Option<SessionRecord>> {
        self.0.get(id, principal, now)
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> Reply<'_, bool> {
        Box::pin(async move {
            let (id, principal) = (record.id, record.principal.clone());
            self.0.update(record, now).await?;
            // As it is stored, since not all of it can be updated.
            self.0
                .get(id, &principal, now)
                .await?
                .map(|stored| self.write(&stored))
                .transpose()
                .map(|it| it.is_some())
        })
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> Reply<'_, bool> {
        self.0.touch(id, now)
    }

    fn delete<'a>(&'a self, id: SessionId, principal: &'a Principal) -> Reply<'a, bool> {
        Box::pin(async move {
            let was_there = self.0.delete(id, principal).await?;
            if was_there {
                self.remove(id);
            }
            Ok(was_there)
        })
    }

    fn expire(&self, now: Timestamp) -> Reply<'_, Vec<SessionId>> {
        Box::pin(
            async move { Ok(self.0.expire(now).await?.into_iter().inspect(|id| self.remove(*id)).collect()) },
        )
    }

    fn count(&self) -> usize {
        self.0.count()
    }

    fn list_all(&self, most: usize, now: Timestamp) -> Reply<'_, Vec<SessionRecord>> {
        self.0.list_all(most, now)
    }

    fn list<'a>(&'a self, principal: &'a Principal, now: Timestamp) -> Reply<'a, Vec<SessionRecord>> {
        self.0.list(principal, now)
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create("sessions")?;
    let sessions = Arc::new(FolderStore::open("sessions".into(), SessionLimits::default()).await?);
    let options = HttpServerOptions { sessions: Some(sessions), ..HttpServerOptions::default() };
    let server = Server::new("plain").with(Tool::new("hello").run(async || "hello"));
    let endpoint = server.host(HostOptions::default())?.http_service(options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    http::serve(listener, &endpoint, endpoint.clone(), Duration::from_secs(5)).await?;
    Ok(())
}
