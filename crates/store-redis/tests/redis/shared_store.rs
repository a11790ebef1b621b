//! Processes that share a store.

use std::collections::HashSet;
use std::time::Duration;

use trunkline_protocol::{LoggingLevel, RawJson};
use trunkline_session::{
    EventReplay, EventStore as _, Principal, ReplaceOutcome, SessionId, SessionLimits, SessionRecord,
    SessionStore as _, StateHandle, StateKeys, StateLifetime, StateLimits, StateRecord, StateStore as _,
    StoreError,
};
use trunkline_store_redis::{RedisStore, RedisStoreLimits};

use crate::fixture::{NOW, ann, event, open, record};
use crate::server::RedisProcess;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_stores_another_one_finds() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let first = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let second = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let own = record(&ann(), NOW);
    first.sessions().create(own.clone(), NOW).await.unwrap();
    assert_eq!(second.sessions().get(own.id, &ann(), NOW).await, Ok(Some(own.clone())));
    assert_eq!(second.sessions().get(own.id, &Principal::Anonymous, NOW).await, Ok(None));
    let changed = SessionRecord { log_level: Some(LoggingLevel::Alert), ..own.clone() };
    assert_eq!(second.sessions().update(changed.clone(), NOW).await, Ok(true));
    assert_eq!(first.sessions().get(own.id, &ann(), NOW).await, Ok(Some(changed)));

    for seq in 0..3 {
        first.events().append(own.id, event(1, seq), NOW).wait().await.unwrap();
    }
    second.events().append(own.id, event(2, 0), NOW).wait().await.unwrap();
    let replay = second.events().replay(own.id, event(1, 0).id, NOW).await;
    assert_eq!(replay, Ok(EventReplay::Events(vec![event(1, 1), event(1, 2)])));

    let handle = StateHandle::random();
    let value = RawJson::from_text("first");
    let state = StateRecord { handle, principal: ann(), lifetime: StateLifetime::Session, value };
    first.states().create(state, NOW).await.unwrap();
    let replaced = second.states().replace(handle, &ann(), 0, RawJson::from_text("second"), NOW).await;
    assert_eq!(replaced, Ok(ReplaceOutcome::Done));
    let found = first.states().get(handle, &ann(), NOW).await.unwrap().unwrap();
    assert_eq!((found.value, found.version), (RawJson::from_text("second"), 1));

    assert_eq!(second.sessions().delete(own.id, &ann()).await, Ok(true));
    assert_eq!(first.sessions().delete(own.id, &ann()).await, Ok(false));
    assert_eq!(first.sessions().get(own.id, &ann(), NOW).await, Ok(None));
    assert_eq!(first.sessions().touch(own.id, NOW).await, Ok(false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_quotas_and_expire_each_session_once() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let sessions = SessionLimits { total: 50, per_principal: 20, ..SessionLimits::default() };
    let states = StateLimits { total: 10, ..StateLimits::default() };
    let limits = RedisStoreLimits { sessions, states, ..Default::default() };
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(open(&server.url(), &keys, limits.clone()).await);
    }
    // All at the same time, through every process.
    let mut creations = tokio::task::JoinSet::new();
    for number in 0..120 {
        let (store, principal) =
            (stores[number % 3].sessions(), if number < 60 { ann() } else { Principal::Anonymous });
        creations.spawn(async move {
            let own = record(&principal, NOW);
            store.create(own.clone(), NOW).await.map(|()| own)
        });
    }
    let mut created: Vec<SessionRecord> = Vec::new();
    let mut refused = 0;
    while let Some(outcome) = creations.join_next().await {
        match outcome.unwrap() {
            Ok(own) => created.push(own),
            Err(StoreError::Full | StoreError::PrincipalQuotaExceeded) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((created.len(), refused), (50, 70), "the total holds across processes");
    assert!(
        created.iter().filter(|own| own.principal == ann()).count() <= 20,
        "and the quota of a principal"
    );

    // After the margin for sessions of other processes.
    let end = NOW.plus(limits.sessions.idle + Duration::from_secs(10));
    let sweeps = stores.iter().map(|store| {
        let sessions = store.sessions();
        tokio::spawn(async move { sessions.expire(end).await.unwrap() })
    });
    let mut expired: Vec<SessionId> = Vec::new();
    for sweep in sweeps.collect::<Vec<_>>() {
        expired.extend(sweep.await.unwrap());
    }
    assert_eq!(expired.len(), 50, "each session is reported once");
    let expected: HashSet<_> = created.iter().map(|own| own.id).collect();
    assert_eq!(expired.into_iter().collect::<HashSet<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_that_another_process_uses_is_not_evicted() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let first = open(&server.url(), &keys, RedisStoreLimits::default()).await.sessions();
    let second = open(&server.url(), &keys, RedisStoreLimits::default()).await.sessions();
    let [own, used] = [record(&ann(), NOW), record(&ann(), NOW)];
    first.create(own.clone(), NOW).await.unwrap();
    first.create(used.clone(), NOW).await.unwrap();
    // The second process uses it while a use by the first is still recorded for some time.
    let soon = NOW.plus(Duration::from_secs(1));
    assert!(first.get(used.id, &ann(), NOW.plus(Duration::from_millis(500))).await.unwrap().is_some());
    assert!(second.get(used.id, &ann(), soon).await.unwrap().is_some());
    assert_eq!(
        first.evict(own.id, &Principal::Anonymous, soon).await,
        Ok(false),
        "it is another principal's"
    );
    assert_eq!(first.evict(own.id, &ann(), soon).await, Ok(true));
    assert_eq!(first.get(own.id, &ann(), soon).await, Ok(None));
    assert_eq!(first.evict(used.id, &ann(), soon).await, Ok(false));
    assert_eq!((second.get(used.id, &ann(), soon).await, first.count()), (Ok(Some(used.clone())), 1));
    let later = soon.plus(first.idle_slack() + Duration::from_secs(91));
    assert_eq!(first.evict(used.id, &ann(), later).await, Ok(true), "nothing used it since");
    assert_eq!((second.get(used.id, &ann(), later).await, first.count()), (Ok(None), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_expired_before_a_failure_are_returned() {
    let server = RedisProcess::start();
    let store = open(&server.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let (sessions, limits) = (store.sessions(), SessionLimits::default());
    // One batch, and a session that is due later.
    let mut expected = HashSet::new();
    for _ in 0..500 {
        let own = record(&Principal::Anonymous, NOW);
        sessions.create(own.clone(), NOW).await.unwrap();
        expected.insert(own.id);
    }
    let last = NOW.plus(Duration::from_secs(1));
    let damaged = record(&ann(), last);
    sessions.create(damaged.clone(), last).await.unwrap();
    let key = format!("trunkline:session:{:032x}", u128::from_be_bytes(damaged.id.row_key()));
    assert_eq!(server.command(&["DEL", &key]), ":1");
    assert_eq!(server.command(&["RPUSH", &key, "no row"]), ":1");
    let end = last.plus(limits.idle);
    let expired = sessions.expire(end).await.unwrap();
    assert_eq!(expired.into_iter().collect::<HashSet<_>>(), expected);
    let failed = sessions.expire(end).await;
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_rows_expire_in_redis_without_any_process() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let store = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let own = record(&ann(), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    let value = RawJson::from_text("first");
    let handle = StateHandle::random();
    let state = StateRecord { handle, principal: ann(), lifetime: StateLifetime::Idle, value };
    store.states().create(state, NOW).await.unwrap();
    let lasting = "local lasting = {} for _, key in ipairs(redis.call('KEYS', '*')) do \
                   if redis.call('PTTL', key) < 0 then table.insert(lasting, key) end end \
                   return table.concat(lasting, ' ')";
    assert!(server.command(&["DBSIZE"]).starts_with(":1"), "there are more than ten rows");
    let found = server.command(&["EVAL", lasting, "0"]);
    assert!(found.ends_with("{trunkline}:header") && !found.contains(' '), "these never expire: {found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_leave_nothing_behind() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let store = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let limits = SessionLimits::default();
    for number in 0..20 {
        let own = record(&if number % 2 == 0 { ann() } else { Principal::Anonymous }, NOW);
        store.sessions().create(own.clone(), NOW).await.unwrap();
        store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    }
    for id in store.sessions().expire(NOW.plus(limits.idle)).await.unwrap() {
        store.events().forget(id);
    }
    assert_eq!(store.sessions().count(), 0);
    // A replay waits for what was queued before it.
    store.events().replay(SessionId::random(), event(1, 0).id, NOW).await.unwrap();
    let keys = server.command(&["EVAL", "return table.concat(redis.call('KEYS', '*'), ' ')", "0"]);
    let left = keys.split_whitespace().filter(|key| key.starts_with(['t', '{']));
    let left =
        left.filter(|key| !key.contains(":totals") && !key.contains(":size") && !key.contains(":header"));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_find_each_others_sessions_again_after_redis_lost_everything() {
    let server = RedisProcess::start();
    let keys = StateKeys::random().unwrap();
    let first = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    let both_find = async |one: &RedisStore, other: &RedisStore| {
        let [by_one, by_other] = [record(&ann(), NOW), record(&ann(), NOW)];
        one.sessions().create(by_one.clone(), NOW).await.unwrap();
        other.sessions().create(by_other.clone(), NOW).await.unwrap();
        let found = [
            one.sessions().get(by_other.id, &ann(), NOW).await.unwrap(),
            other.sessions().get(by_one.id, &ann(), NOW).await.unwrap(),
        ];
        assert_eq!(found, [Some(by_other), Some(by_one)]);
    };
    // A process that starts before an older one notices begins the store; the older one follows with its next sweep.
    server.command(&["FLUSHALL"]);
    let second = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    assert_eq!(first.sessions().expire(NOW).await, Ok(Vec::new()));
    both_find(&first, &second).await;
    // One that notices first writes its own header back.
    server.command(&["FLUSHALL"]);
    assert_eq!(first.sessions().expire(NOW).await, Ok(Vec::new()));
    let third = open(&server.url(), &keys, RedisStoreLimits::default()).await;
    both_find(&first, &third).await;
    both_find(&second, &third).await;
}
