//! Stores that hang or fail, as remote ones do: they delay no request that does not need them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_server::http::{DrainOutcome, HttpServerOptions};
use trunkline_server::session::{
    BoxFuture, MemorySessions, Principal, SessionId, SessionLimits, SessionRecord, SessionStore, StoreError,
    Timestamp,
};

use crate::raw_http;
use crate::service::{Service, Setup, eventually};

/// A store in memory that has its moods.
#[derive(Debug)]
struct FailingStore {
    sessions: MemorySessions,
    /// Whether sweeping never ends.
    hangs: bool,
    sweeps: AtomicUsize,
    updates: AtomicUsize,
    /// Whether updates fail.
    fails: AtomicBool,
    /// Whether nothing can be reached.
    is_down: AtomicBool,
}

impl FailingStore {
    fn new(hangs: bool) -> Arc<Self> {
        Arc::new(Self {
            sessions: MemorySessions::new(SessionLimits::default()),
            hangs,
            sweeps: AtomicUsize::new(0),
            updates: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
        })
    }

    fn outage<T: Send + 'static>(&self) -> Option<BoxFuture<'static, Result<T, StoreError>>> {
        self.is_down.load(Ordering::SeqCst).then(|| -> BoxFuture<'static, Result<T, StoreError>> {
            Box::pin(async { Err(StoreError::Unavailable("on purpose".to_owned())) })
        })
    }

    fn setup(self: &Arc<Self>) -> Setup {
        let http = HttpServerOptions { sessions: Some(self.clone()), ..HttpServerOptions::default() };
        Setup { http, ..Setup::default() }
    }
}

impl SessionStore for FailingStore {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.outage().unwrap_or_else(|| self.sessions.create(record, now))
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        self.outage().unwrap_or_else(|| self.sessions.get(id, principal, now))
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("on purpose".to_owned())) });
        }
        self.updates.fetch_add(1, Ordering::SeqCst);
        self.sessions.update(record, now)
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.outage().unwrap_or_else(|| self.sessions.touch(id, now))
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.outage().unwrap_or_else(|| self.sessions.delete(id, principal))
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.sweeps.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            return Box::pin(std::future::pending());
        }
        self.sessions.expire(now)
    }

    fn count(&self) -> usize {
        self.sessions.count()
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        self.sessions.list(principal, now)
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.sessions.list_all(most, now)
    }
}

#[tokio::test]
async fn stuck_session_store_sweep_blocks_neither_connections_nor_shutdown() {
    let store = FailingStore::new(true);
    let service = Service::start_with(store.setup()).await;
    eventually("the store is being swept", || store.sweeps.load(Ordering::SeqCst) == 1).await;
    for _ in 0..3 {
        service.still_serves().await;
    }
    service.session(raw_http::LEGACY).await;
    service.host.shutdown().drain();
    assert_eq!(service.drained().await, DrainOutcome::Cleanly);
}

fn set_level(id: u64, level: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "logging/setLevel", "params": { "level": level } })
}

#[tokio::test]
async fn log_level_is_stored_only_when_it_changes() {
    const BATCHES: &str = "2025-03-26";
    let store = FailingStore::new(false);
    let service = Service::start_with(store.setup()).await;
    let session = service.session(BATCHES).await;
    let headers = [("MCP-Protocol-Version", BATCHES), ("Mcp-Session-Id", &*session)];
    for (message, updates) in [
        (set_level(1, "loud"), 0),
        (set_level(2, "error"), 1),
        (set_level(3, "error"), 1),
        (json!([set_level(4, "debug"), set_level(5, "loud")]), 2),
        (json!([set_level(6, "loud")]), 2),
    ] {
        let reply = service.ask(&raw_http::post(&headers, message.to_string().as_bytes())).await;
        assert_eq!(reply.status, 200, "{message}");
        assert_eq!(store.updates.load(Ordering::SeqCst), updates, "{message}");
    }
    store.fails.store(true, Ordering::SeqCst);
    let refused = service.ask(&raw_http::post(&headers, set_level(7, "alert").to_string().as_bytes())).await;
    let answer = refused.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)));
}

#[tokio::test]
async fn unreachable_session_store_is_503_and_modern_calls_go_on() {
    let store = FailingStore::new(false);
    let first = Service::start_with(store.setup()).await;
    let second = Service::start_with(store.setup()).await;
    let session = first.session(raw_http::LEGACY).await;
    let unknown = "0123456789abcdef0123456789abcdef";
    store.is_down.store(true, Ordering::SeqCst);
    let level = |id| set_level(id, "error").to_string();
    let delete = raw_http::bare("DELETE", &[("Mcp-Session-Id", &session)]);
    for (what, request) in [
        ("a new session", raw_http::post(&[], raw_http::initialize(raw_http::LEGACY).as_bytes())),
        ("a session of another process", raw_http::legacy(&session, &level(1))),
        ("an unknown session", raw_http::legacy(unknown, &level(2))),
        ("the end of a session", delete),
    ] {
        let reply = second.ask(&request).await;
        assert_eq!(reply.status, 503, "{what}");
        let message = reply.json()["error"]["message"].to_string();
        assert!(message.contains("unavailable now; try again later"), "{what}: {message}");
    }
    second.still_serves().await;
    store.is_down.store(false, Ordering::SeqCst);
    assert_eq!(second.ask(&raw_http::legacy(&session, &level(3))).await.status, 200);
    assert_eq!(second.ask(&raw_http::legacy(unknown, &level(4))).await.status, 404);
}
