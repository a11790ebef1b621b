//! Many sessions at once in one store, whichever it is: opened, listed, touched and expired.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use trunkline_session::{Principal, SessionId, SessionLimits, SessionRecord, SessionStore, Timestamp};

/// How many sessions there are; `STORE_SESSIONS=100000` is the size that is recorded in docs/figures.md.
const COUNT_VARIABLE: &str = "STORE_SESSIONS";
const COUNT: usize = 2_000;

/// How many tasks open sessions at the same time.
const WRITERS: usize = 64;

pub(crate) fn session_count() -> usize {
    std::env::var(COUNT_VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT)
}

pub(crate) fn limits() -> SessionLimits {
    SessionLimits { total: session_count(), total_bytes: 1 << 30, ..SessionLimits::default() }
}

/// Prints the time of each step, for a run with `--nocapture`.
struct Steps(Instant);

impl Steps {
    fn end(&mut self, step: &str) {
        println!("{step}: {:.1} s", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}

/// Puts a store through its life with many sessions; `full` is called while it has all of them.
pub(crate) async fn open_list_touch_and_expire(
    store: Arc<dyn SessionStore>,
    record: fn(&Principal, Timestamp) -> SessionRecord,
    now: Timestamp,
    full: impl FnOnce(usize),
) {
    let (count, limits) = (session_count(), limits());
    let mut steps = Steps(Instant::now());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut opened = Vec::new();
                for _ in (writer..count).step_by(WRITERS) {
                    let own = record(&Principal::Anonymous, now);
                    store.create(own.clone(), now).await.unwrap();
                    opened.push(own.id);
                }
                opened
            })
        })
        .collect();
    let mut ids: Vec<SessionId> = Vec::new();
    for writer in writers {
        ids.extend(writer.await.unwrap());
    }
    steps.end("opened");
    assert_eq!((ids.len(), store.count()), (count, count));
    full(count);

    let listed: HashSet<_> =
        store.list_all(count, now).await.unwrap().into_iter().map(|own| own.id).collect();
    steps.end("listed");
    assert_eq!(listed.len(), count);
    assert_eq!(store.list_all(10, now).await.unwrap().len(), 10);

    let (used, idle) = ids.split_at(count / 2);
    let later = now.plus(limits.idle / 2);
    assert_eq!(store.touch_all(used, later).await, Ok(Vec::new()));
    steps.end("touched half of them");

    let slack = store.idle_slack() + std::time::Duration::from_secs(60);
    for (end, expected) in [(now.plus(limits.idle + slack), idle), (later.plus(limits.idle + slack), used)] {
        let expired = store.expire(end).await.unwrap();
        steps.end("expired half of them");
        assert_eq!(expired.len(), expected.len(), "each is returned once");
        assert_eq!(expired.into_iter().collect::<HashSet<_>>(), expected.iter().copied().collect());
    }
    assert_eq!(store.count(), 0);
    assert_eq!(store.list_all(count, now).await, Ok(Vec::new()));
}
