//! Processes with clocks that differ.

#[path = "../tests/redis/server.rs"]
#[expect(dead_code, reason = "these tests need one server that runs")]
mod server;

use std::time::Duration;

use trunkline_protocol::{RawJson, Revision};
use trunkline_session::{Principal, SessionId, SessionRecord, SessionStore as _, StateKeys, Timestamp};

use self::server::RedisProcess;
use crate::clock::clock_reading;
use crate::{RedisStore, RedisStoreLimits};

const MINUTE: Duration = Duration::from_secs(60);

async fn open(server: &RedisProcess, keys: &StateKeys, clock: fn() -> u64) -> RedisStore {
    let address = server.url().parse().unwrap();
    RedisStore::open_with_clock(&address, keys, RedisStoreLimits::default(), clock).await.unwrap()
}

fn record(created: Timestamp) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: Principal::Anonymous,
        revision: Revision::NEWEST_LEGACY,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: std::collections::BTreeSet::new(),
        created,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_skew_between_processes_ends_no_session_early() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let right = open(&server, &keys, clock_reading).await;
    // By more than the tolerance, in both directions, and by less.
    let fast = open(&server, &keys, || clock_reading() + 600_000).await;
    let slow = open(&server, &keys, || clock_reading() - 600_000).await;
    let hasty = open(&server, &keys, || clock_reading() + 4_000).await;
    let now = Timestamp(clock_reading());
    let by_fast = |at: Timestamp| Timestamp(at.0 + 600_000);
    let by_slow = |at: Timestamp| Timestamp(at.0 - 600_000);
    let idle = RedisStoreLimits::default().sessions.idle;
    let own = record(now);
    right.sessions().create(own.clone(), now).await.unwrap();

    let almost = now.plus(idle - MINUTE);
    for (store, at) in [(&fast, by_fast(almost)), (&slow, by_slow(almost))] {
        assert_eq!(store.sessions().expire(at).await, Ok(Vec::new()), "the session has a minute left");
        assert_eq!(store.sessions().list(&Principal::Anonymous, at).await.unwrap().len(), 1);
    }
    // A clock within the tolerance is not corrected, and takes the session for older than it is.
    let end = now.plus(idle);
    let ahead = Timestamp(end.0 - 1 + 4_000);
    assert_eq!(hasty.sessions().expire(ahead).await, Ok(Vec::new()), "the margin covers the tolerance");
    assert_eq!(hasty.sessions().list(&Principal::Anonymous, ahead).await.unwrap().len(), 1);

    // The age of a session is given by the clock of the process that reads it.
    let found = fast.sessions().get(own.id, &Principal::Anonymous, by_fast(almost)).await.unwrap().unwrap();
    let difference = i128::from(found.created.0) - i128::from(by_fast(now).0);
    assert!(difference.abs() < 5_000, "{difference} ms off");

    // A use through a process with a wrong clock counts, and no clock keeps a session for ever.
    let used = almost.plus(idle - MINUTE);
    assert_eq!(right.sessions().expire(used).await, Ok(Vec::new()), "it was used through the other process");
    let over = almost.plus(idle + idle / 16 + MINUTE);
    assert_eq!(slow.sessions().expire(by_slow(over)).await, Ok(vec![own.id]));
}
