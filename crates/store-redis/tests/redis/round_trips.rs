//! How many round trips to Redis one request takes.

use trunkline_session::{
    EventStore as _, Principal, SessionRecord, SessionStore as _, StateHandle, StateKeys, StateStore as _,
};
use trunkline_store_redis::{RedisStore, RedisStoreLimits};

use crate::fixture::{NOW, ann, event, open, record};
use crate::server::RedisProcess;

/// Returns how many commands of clients Redis has run since the last call, besides those of this connection.
fn round_trips(server: &RedisProcess) -> usize {
    let stats = server.command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse::<usize>().unwrap())
    };
    let count = calls("evalsha") + calls("eval") + calls("script|load");
    server.command(&["CONFIG", "RESETSTAT"]);
    count
}

/// Returns how many times Redis has written something since the last call.
fn writes(server: &RedisProcess) -> i64 {
    let stats = server.command(&["INFO", "persistence"]);
    let changes = stats.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    let count = changes.unwrap().parse().unwrap();
    server.command(&["SAVE"]);
    count
}

async fn opened() -> (RedisProcess, RedisStore, SessionRecord) {
    let server = RedisProcess::start();
    let store = open(&server.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let own = record(&ann(), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    // So that every script is loaded.
    store.sessions().get(own.id, &ann(), NOW).await.unwrap();
    store.events().append(own.id, event(9, 0), NOW).wait().await.unwrap();
    store.events().replay(own.id, event(9, 0).id, NOW).await.unwrap();
    store.states().get(StateHandle::random(), &ann(), NOW).await.unwrap();
    round_trips(&server);
    (server, store, own)
}

#[tokio::test]
async fn one_request_is_one_round_trip_and_one_event_is_one() {
    let (server, store, own) = opened().await;
    store.sessions().get(own.id, &ann(), NOW).await.unwrap();
    assert_eq!(round_trips(&server), 1, "a request finds and uses its session");
    store.sessions().get(own.id, &Principal::Anonymous, NOW).await.unwrap();
    assert_eq!(round_trips(&server), 1, "and a foreign one does not");
    store.sessions().touch(own.id, NOW).await.unwrap();
    assert_eq!(round_trips(&server), 1);
    store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    assert_eq!(round_trips(&server), 1);
    store.events().replay(own.id, event(1, 0).id, NOW).await.unwrap();
    assert_eq!(round_trips(&server), 1);
    store.states().get(StateHandle::random(), &ann(), NOW).await.unwrap();
    assert_eq!(round_trips(&server), 1);
    store.sessions().create(record(&ann(), NOW), NOW).await.unwrap();
    assert_eq!(round_trips(&server), 2, "a new session is in the index, too");
}

#[tokio::test]
async fn events_that_wait_share_one_round_trip() {
    let (server, store, own) = opened().await;
    let events = store.events();
    let stored: Vec<_> = (0..100).map(|seq| events.append(own.id, event(1, seq), NOW)).collect();
    for reply in stored {
        reply.wait().await.unwrap();
    }
    // On one thread nothing is sent before all are queued.
    assert_eq!(round_trips(&server), 1);
}

#[tokio::test]
async fn repeated_use_of_a_session_is_written_rarely() {
    let (server, store, own) = opened().await;
    let slack = store.sessions().idle_slack();
    assert!(store.sessions().touch(own.id, NOW.plus(std::time::Duration::from_secs(1))).await.unwrap());
    writes(&server);
    for second in 1..slack.as_secs() {
        let now = NOW.plus(std::time::Duration::from_secs(second));
        assert!(store.sessions().touch(own.id, now).await.unwrap());
    }
    assert_eq!(writes(&server), 0, "one recorded use counts for {slack:?}");
    assert!(store.sessions().touch(own.id, NOW.plus(slack * 2)).await.unwrap());
    assert!(writes(&server) > 0);
}
