use trunkline_client::ResumableSession;
use trunkline_session::{MemoryStates, StateLimits};

use super::*;
use crate::upstream::InputSet;

fn session(id: &str) -> UpstreamSession {
    let client = format!(r#"{{"v":1,"session":"{id}","protocolVersion":"2025-06-18","capabilities":{{}}}}"#);
    let session = ResumableSession::from_json(&client).unwrap();
    UpstreamSession::new(InputSet::default(), false, None, &session).unwrap()
}

fn key(number: u8) -> SessionRowKey {
    SessionRowKey {
        handle: StateHandle::from_digest([number; 16]),
        principal: Principal::Named("ann".into()),
    }
}

fn process(store: &Arc<MemoryStates>, access: StoreAccess) -> UpstreamSessions {
    UpstreamSessions::new(store.clone(), access)
}

fn store() -> Arc<MemoryStates> {
    Arc::new(MemoryStates::new(StateLimits::default()))
}

/// Moves the lease of every row of a process into the past, as if it had ended long ago.
async fn let_lease_run_out(process: &UpstreamSessions) {
    let held: Vec<_> = process.lock().values().cloned().collect();
    for row in held {
        let expired = process.rows.row(row.sessions, Timestamp(1));
        assert_eq!(
            process.rows.replace(&row.key, row.version, &expired, now()).await,
            Ok(ReplaceOutcome::Done)
        );
    }
}

#[tokio::test]
async fn row_of_a_living_process_is_not_claimed() {
    let store = store();
    let [first, second] = [(); 2].map(|()| process(&store, StoreAccess::Shared));
    first.record(vec![(key(1), vec![session("a")])]).await;
    assert_eq!(second.claim(&key(1)).await, Vec::new());
    // What it opens meanwhile replaces no row of the first process.
    second.record(vec![(key(1), vec![session("b")])]).await;
    let_lease_run_out(&first).await;
    assert_eq!(second.claim(&key(1)).await, vec![session("a")]);
    assert_eq!(second.claim(&key(1)).await, Vec::new(), "it is connected by now");
    // The first process has lost its row, and neither writes nor removes it.
    first.record(vec![(key(1), vec![session("c")])]).await;
    first.record(Vec::new()).await;
    assert_eq!(store.count(), 1);
    let third = process(&store, StoreAccess::Shared);
    assert_eq!(third.claim(&key(1)).await, Vec::new());
}

#[tokio::test]
async fn row_in_an_exclusive_store_is_taken_over_at_once() {
    let store = store();
    process(&store, StoreAccess::Exclusive).record(vec![(key(1), vec![session("a")])]).await;
    let next = process(&store, StoreAccess::Exclusive);
    assert_eq!(next.claim(&key(1)).await, vec![session("a")]);
    assert_eq!(next.claim(&key(2)).await, Vec::new());
    // Nothing is removed before its connections exist.
    next.record(Vec::new()).await;
    assert_eq!(store.count(), 1);
    next.end_revival(&key(1));
    next.record(Vec::new()).await;
    assert_eq!(store.count(), 0);
}

#[tokio::test]
async fn closed_rows_stay_as_they_are() {
    let store = store();
    let first = process(&store, StoreAccess::Shared);
    first.record(vec![(key(1), vec![session("a")])]).await;
    assert_eq!(first.close().await, vec![key(1).handle]);
    first.record(Vec::new()).await;
    let next = process(&store, StoreAccess::Shared);
    assert_eq!(next.claim(&key(1)).await, Vec::new(), "it is not released yet");
    first.release().await;
    assert_eq!(next.claim(&key(1)).await, vec![session("a")]);
}

#[tokio::test]
async fn row_that_was_evicted_is_written_again() {
    let store = store();
    let process = process(&store, StoreAccess::Exclusive);
    process.record(vec![(key(1), vec![session("a")])]).await;
    store.forget(key(1).handle);
    process.record(vec![(key(1), vec![session("b")])]).await;
    assert_eq!(self::process(&store, StoreAccess::Exclusive).claim(&key(1)).await, vec![session("b")]);
}
