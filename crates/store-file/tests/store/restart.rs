//! What another process finds in the file.

use std::time::Duration;

use trunkline_protocol::{LoggingLevel, RawJson};
use trunkline_session::{
    EventId, EventReplay, EventStore as _, Principal, ReplaceOutcome, SessionLimits, SessionRecord,
    SessionStore as _, StateHandle, StateLifetime, StateRecord, StateStore as _, StreamId,
};
use trunkline_store_file::{FileStore, FileStoreLimits};

use crate::fixture::{NOW, ann, event, folder, keys, open, record};

#[tokio::test]
async fn sessions_events_and_states_are_there_after_a_restart() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let store = open(&path, &keys);
    let (own, other) = (record(&ann(), NOW), record(&Principal::Anonymous, NOW));
    let deleted = record(&ann(), NOW);
    for record in [&own, &other, &deleted] {
        store.sessions().create(record.clone(), NOW).await.unwrap();
    }
    let own = SessionRecord {
        log_level: Some(LoggingLevel::Alert),
        subscriptions: ["a:b".to_owned()].into(),
        ..own
    };
    assert!(store.sessions().update(own.clone(), NOW).await.unwrap());
    for seq in 0..3 {
        store.events().append(own.id, event(1, seq), NOW).wait().await.unwrap();
        store.events().append(deleted.id, event(2, seq), NOW).wait().await.unwrap();
    }
    assert!(store.sessions().delete(deleted.id, &ann()).await.unwrap());
    let handle = StateHandle::random();
    let lifetime = StateLifetime::Session;
    let state = StateRecord { handle, principal: ann(), lifetime, value: RawJson::from_text("first") };
    store.states().create(state, NOW).await.unwrap();
    let replaced = store.states().replace(handle, &ann(), 0, RawJson::from_text("second"), NOW).await;
    assert_eq!(replaced, Ok(ReplaceOutcome::Done));
    drop(store);

    let store = open(&path, &keys);
    assert_eq!(store.sessions().count(), 2);
    assert_eq!(store.sessions().get(own.id, &ann(), NOW).await, Ok(Some(own.clone())));
    assert_eq!(store.sessions().get(own.id, &Principal::Anonymous, NOW).await, Ok(None));
    assert_eq!(store.sessions().get(other.id, &Principal::Anonymous, NOW).await, Ok(Some(other)));
    assert_eq!(store.sessions().get(deleted.id, &ann(), NOW).await, Ok(None));
    let after = |stream| EventId { stream: StreamId(stream), seq: 0 };
    let replay = store.events().replay(own.id, after(1), NOW).await;
    assert_eq!(replay, Ok(EventReplay::Events(vec![event(1, 1), event(1, 2)])));
    assert_eq!(store.events().replay(deleted.id, after(2), NOW).await, Ok(EventReplay::Gone));
    let found = store.states().get(handle, &ann(), NOW).await.unwrap().unwrap();
    assert_eq!((found.value, found.version), (RawJson::from_text("second"), 1));
    // Later events of the session are stored behind the earlier ones.
    store.events().append(own.id, event(1, 3), NOW).wait().await.unwrap();
    let replay = store.events().replay(own.id, after(1), NOW).await;
    assert_eq!(replay, Ok(EventReplay::Events(vec![event(1, 1), event(1, 2), event(1, 3)])));
}

#[tokio::test]
async fn restart_neither_ends_a_used_session_early_nor_revives_an_idle_one_for_long() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let limits = SessionLimits::default();
    let (used, idle) = (record(&ann(), NOW), record(&ann(), NOW));
    let store = open(&path, &keys);
    for record in [&used, &idle] {
        store.sessions().create(record.clone(), NOW).await.unwrap();
    }
    let mut last = NOW;
    while last < NOW.plus(limits.idle - Duration::from_secs(9)) {
        last = last.plus(Duration::from_secs(7));
        assert!(store.sessions().touch(used.id, last).await.unwrap());
    }
    drop(store);

    let store = open(&path, &keys);
    let end = last.plus(limits.idle);
    let slack = limits.idle / 16;
    assert!(store.sessions().expire(NOW.plus(limits.idle + slack)).await.unwrap().contains(&idle.id));
    let moment = Duration::from_millis(1);
    assert_eq!(store.sessions().list(&ann(), end.plus(Duration::ZERO)).await.unwrap().len(), 1);
    assert!(store.sessions().list(&ann(), end.plus(slack + moment)).await.unwrap().is_empty());
}

#[tokio::test]
async fn ended_sessions_leave_nothing_in_the_file() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let store = open(&path, &keys);
    let limits = SessionLimits::default();
    for _ in 0..20 {
        let own = record(&ann(), NOW);
        store.sessions().create(own.clone(), NOW).await.unwrap();
        store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    }
    assert_eq!(store.sessions().expire(NOW.plus(limits.idle)).await.unwrap().len(), 20);
    drop(store);
    let database = redb::Database::open(&path).unwrap();
    let reading = database.begin_read().unwrap();
    let sessions: redb::TableDefinition<'_, &[u8; 16], &[u8]> = redb::TableDefinition::new("sessions");
    let events: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("events");
    use redb::ReadableTableMetadata as _;
    assert_eq!(reading.open_table(sessions).unwrap().len().unwrap(), 0);
    assert_eq!(reading.open_table(events).unwrap().len().unwrap(), 0);
}

#[tokio::test]
async fn lower_limits_after_a_restart_apply_to_new_sessions() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let store = open(&path, &keys);
    let records: Vec<_> = (0..4).map(|_| record(&Principal::Anonymous, NOW)).collect();
    for record in &records {
        store.sessions().create(record.clone(), NOW).await.unwrap();
    }
    drop(store);
    let sessions = SessionLimits { total: 2, ..SessionLimits::default() };
    let store = FileStore::open(&path, &keys, FileStoreLimits { sessions, ..Default::default() }).unwrap();
    assert_eq!(store.sessions().count(), 4, "no client loses its session");
    assert!(store.sessions().create(record(&ann(), NOW), NOW).await.is_err());
}

#[tokio::test]
async fn file_contains_neither_ids_nor_content() {
    let (folder, path) = folder();
    let store = open(&path, &keys(folder.path(), "one"));
    let own = record(&Principal::Named("sentinel".into()), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    let handle = StateHandle::random();
    let (principal, value) = (own.principal.clone(), RawJson::from_text("sentinel"));
    let state = StateRecord { handle, principal, lifetime: StateLifetime::Idle, value };
    store.states().create(state, NOW).await.unwrap();
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let (id, handle) = (own.id.to_string(), handle.to_string());
    let raw_id = u128::from_str_radix(&id, 16).unwrap();
    for needle in [
        b"sentinel".as_slice(),
        id.as_bytes(),
        handle.as_bytes(),
        &raw_id.to_be_bytes(),
        &raw_id.to_le_bytes(),
    ] {
        assert!(!bytes.windows(needle.len()).any(|window| window == needle), "{needle:?}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
