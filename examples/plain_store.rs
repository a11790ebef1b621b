//! A store of one's own for legacy sessions: the shortest one that keeps every promise of the trait.
//!
//! `cargo run --example plain_store` serves with it at http://127.0.0.1:3000/mcp. A store that outlives its process is
//! `examples/sqlite`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use trunkline::server::http::{self, HttpServerOptions};
use trunkline::session::{
    BoxFuture, Principal, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError, Timestamp,
};
use trunkline::{HostOptions, Server, Tool};

/// A session and when it was last used.
type Kept = (SessionRecord, Timestamp);

#[derive(Debug)]
pub(crate) struct PlainStore(SessionLimits, Mutex<HashMap<SessionId, Kept>>);

impl PlainStore {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        Self(limits, Mutex::default())
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<SessionId, Kept>> {
        self.1.lock()
    }

    fn is_over(&self, (record, used): &Kept, now: Timestamp) -> bool {
        used.plus(self.0.idle).min(record.created.plus(self.0.absolute)) <= now
    }

    /// Does something with a session that is not over and belongs to whoever asks, and starts its idle clock again.
    fn with<T>(
        &self,
        id: SessionId,
        owner: Option<&Principal>,
        now: Timestamp,
        act: impl FnOnce(&mut SessionRecord) -> T,
    ) -> Option<T> {
        let mut kept = self.kept();
        let found =
            kept.get_mut(&id).filter(|found| owner.is_none_or(|owner| *owner == found.0.principal))?;
        if self.is_over(found, now) {
            return None;
        }
        found.1 = found.1.max(now);
        Some(act(&mut found.0))
    }
}

impl SessionStore for PlainStore {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut kept = self.kept();
        let of_owner = kept.values().filter(|(other, _)| other.principal == record.principal).count();
        let is_one_party = matches!(record.principal, Principal::Named(_));
        let refusal = if !record.fits(&self.0) {
            Some(StoreError::TooLarge)
        } else if kept.contains_key(&record.id) {
            Some(StoreError::Duplicate)
        } else if kept.len() >= self.0.total {
            Some(StoreError::Full)
        } else {
            (is_one_party && of_owner >= self.0.per_principal).then_some(StoreError::PrincipalQuotaExceeded)
        };
        if refusal.is_none() {
            kept.insert(record.id, (record.into_owned_buffers(), now));
        }
        ready(refusal.map_or(Ok(()), Err))
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        ready(Ok(self.with(id, Some(principal), now, |record| record.clone())))
    }

    fn update(&self, new: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        if !new.fits(&self.0) {
            return ready(Err(StoreError::TooLarge));
        }
        let new = new.into_owned_buffers();
        let done = self.with(new.id, Some(&new.principal), now, |record| {
            *record = SessionRecord { created: record.created, ..new.clone() };
        });
        ready(Ok(done.is_some()))
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        ready(Ok(self.with(id, None, now, |_| ()).is_some()))
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut kept = self.kept();
        let is_theirs = kept.get(&id).is_some_and(|(record, _)| record.principal == *principal);
        ready(Ok(is_theirs && kept.remove(&id).is_some()))
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        // The one promise that is not kept is that of the cost: this looks at every session.
        ready(Ok(self.kept().extract_if(|_, kept| self.is_over(kept, now)).map(|(id, _)| id).collect()))
    }

    fn count(&self) -> usize {
        self.kept().len()
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        let kept = self.kept();
        let open = kept.values().filter(|found| !self.is_over(found, now));
        ready(Ok(open.take(most).map(|(record, _)| record.clone()).collect()))
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        let kept = self.kept();
        let theirs = kept.values().filter(|one| one.0.principal == *principal && !self.is_over(one, now));
        ready(Ok(theirs.map(|(record, _)| record.clone()).collect()))
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let sessions = Arc::new(PlainStore::new(SessionLimits::default()));
    let options = HttpServerOptions { sessions: Some(sessions), ..HttpServerOptions::default() };
    let server = Server::new("plain").with(Tool::new("hello").run(async || "hello"));
    let endpoint = server.host(HostOptions::default())?.http_service(options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    http::serve(listener, &endpoint, endpoint.clone(), Duration::from_secs(5)).await?;
    Ok(())
}
