use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use tokio::runtime::Runtime;
use trunkline_protocol::{RawJson, Revision};
use trunkline_session::{
    BusLimits, EventId, Principal, SessionId, SessionRecord, StateKeys, StreamEvent, StreamId, Timestamp,
};
use trunkline_store_redis::{RedisBus, RedisStore, RedisStoreLimits};

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Opens stores in one Redis, each under a prefix of its own, for suites that wait without a runtime.
pub(crate) struct StoreMaker {
    runtime: Runtime,
    url: String,
    keys: StateKeys,
    made: AtomicU32,
}

impl StoreMaker {
    pub(crate) fn new(url: String) -> Self {
        let (runtime, keys) = (Runtime::new().unwrap(), StateKeys::random().unwrap());
        Self { runtime, url, keys, made: AtomicU32::new(0) }
    }

    pub(crate) fn make(&self, limits: RedisStoreLimits) -> RedisStore {
        let url = self.next_url();
        self.runtime.block_on(open(&url, &self.keys, limits))
    }

    /// Has three processes join one bus.
    pub(crate) fn make_buses(&self, limits: &BusLimits) -> [RedisBus; 3] {
        let url = self.next_url();
        [(); 3].map(|()| {
            self.runtime.block_on(async {
                let store = open(&url, &self.keys, RedisStoreLimits::default()).await;
                store.join_bus(limits.clone()).await.unwrap()
            })
        })
    }

    fn next_url(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}prefix=test{number}", self.url)
    }
}

pub(crate) async fn open(url: &str, keys: &StateKeys, limits: RedisStoreLimits) -> RedisStore {
    RedisStore::open(&url.parse().unwrap(), keys, limits).await.unwrap()
}

pub(crate) fn ann() -> Principal {
    Principal::Named("ann".into())
}

pub(crate) fn record(principal: &Principal, created: Timestamp) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: principal.clone(),
        revision: Revision::V2025_06_18,
        capabilities: RawJson::parse(r#"{"sampling":{}}"#).unwrap(),
        client: Some(RawJson::parse(r#"{"name":"sentinel"}"#).unwrap()),
        log_level: None,
        subscriptions: ["test://sentinel".to_owned()].into(),
        created,
    }
}

pub(crate) fn event(stream: u64, seq: u64) -> StreamEvent {
    StreamEvent {
        id: EventId { stream: StreamId(stream), seq },
        data: Bytes::from(format!("sentinel {seq}")),
    }
}
