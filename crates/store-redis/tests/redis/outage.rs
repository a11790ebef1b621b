//! Servers that do not answer, and servers that come back.

use trunkline_session::{
    EventReplay, EventStore as _, SessionStore as _, StateHandle, StateKeys, StateStore as _, StoreError,
};
use trunkline_store_redis::{RedisStore, RedisStoreLimits};

use crate::fixture::{NOW, ann, event, open, record};
use crate::server::RedisProcess;

/// Checks that every store reports the outage.
async fn expect_unavailable(store: &RedisStore, own: &trunkline_session::SessionRecord) {
    let (sessions, events, states) = (store.sessions(), store.events(), store.states());
    let (principal, other) = (ann(), record(&ann(), NOW));
    let handle = StateHandle::random();
    let outcomes = tokio::join!(
        async { sessions.get(own.id, &principal, NOW).await.map(drop) },
        async { sessions.create(other, NOW).await },
        async { sessions.touch(own.id, NOW).await.map(drop) },
        async { sessions.delete(own.id, &principal).await.map(drop) },
        async { events.append(own.id, event(1, 7), NOW).wait().await },
        async { events.replay(own.id, event(1, 0).id, NOW).await.map(drop) },
        async { states.get(handle, &principal, NOW).await.map(drop) },
    );
    let outcomes: [_; 7] = outcomes.into();
    for (at, outcome) in outcomes.into_iter().enumerate() {
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{at}: {outcome:?}");
    }
}

/// Waits until the store answers again.
async fn wait_until_healed(store: &RedisStore) {
    while store.sessions().list(&ann(), NOW).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outage_is_reported_within_two_seconds_and_heals() {
    let mut server =
        RedisProcess::start_with(&["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    let keys = StateKeys::random().unwrap();
    let store = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let [paused, killed] = [record(&ann(), NOW), record(&ann(), NOW)];
    for own in [&paused, &killed] {
        store.sessions().create(own.clone(), NOW).await.unwrap();
        store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    }

    // The server has the connection, and answers nothing. The deadlines of the store are checked when it is compiled.
    server.pause();
    expect_unavailable(&store, &paused).await;
    server.resume();
    wait_until_healed(&store).await;
    // What was sent before the pause ended may have happened.
    let found = store.sessions().get(killed.id, &ann(), NOW).await;
    assert_eq!(found, Ok(Some(killed.clone())));

    server.kill();
    expect_unavailable(&store, &killed).await;
    server.restart();
    // The connection is opened again by the operation that finds it broken.
    wait_until_healed(&store).await;
    assert_eq!(store.sessions().get(killed.id, &ann(), NOW).await, Ok(Some(killed.clone())));
    let replay = store.events().replay(killed.id, event(1, 0).id, NOW).await;
    assert_eq!(replay, Ok(EventReplay::Events(Vec::new())), "what was acknowledged is there after a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_whose_creation_failed_is_removed_from_the_index() {
    let server = RedisProcess::start();
    let store = open(&server.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let sessions = store.sessions();
    let own = record(&ann(), NOW);
    sessions.create(own.clone(), NOW).await.unwrap();
    server.pause();
    let created = sessions.create(record(&ann(), NOW), NOW).await;
    assert!(matches!(created, Err(StoreError::Unavailable(_))), "{created:?}");
    server.resume();
    // Redis runs what was sent before: the reservation, and not the creation.
    while server.command(&["ZCARD", "{trunkline}:due"]) != ":2" {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.command(&["EVAL", "return #redis.call('KEYS', '*:session:*')", "0"]), ":1");
    wait_until_healed(&store).await;
    let later = NOW.plus(std::time::Duration::from_secs(60));
    assert_eq!(sessions.expire(later).await.map(|expired| expired.contains(&own.id)), Ok(false));
    assert_eq!(sessions.count(), 1, "only the session that exists counts");
    assert_eq!(sessions.get(own.id, &ann(), later).await, Ok(Some(own.clone())));
    // Its check was set to its expiry.
    let end = later.plus(RedisStoreLimits::default().sessions.idle * 2);
    assert_eq!(sessions.expire(end).await, Ok(vec![own.id]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_between_two_requests_fails_no_request() {
    let mut server =
        RedisProcess::start_with(&["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    let keys = StateKeys::random().unwrap();
    let store = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let own = record(&ann(), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    for _ in 0..3 {
        server.kill();
        server.restart();
        assert_eq!(store.sessions().get(own.id, &ann(), NOW).await, Ok(Some(own.clone())));
        let other = record(&ann(), NOW);
        store.sessions().create(other.clone(), NOW).await.unwrap();
        server.kill();
        server.restart();
        assert_eq!(store.sessions().delete(other.id, &ann()).await, Ok(true));
    }
    assert_eq!(store.sessions().count(), 1);
}
