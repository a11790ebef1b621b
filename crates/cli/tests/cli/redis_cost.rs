//! How many commands requests to a hub cost at a real Redis.

use serde_json::json;

use crate::bare_client::post;
use crate::messages::{call, legacy, modern};
use crate::process::file;
use crate::redis_store::server::RedisProcess;
use crate::session_store::{StoreFolder, StoredSession};

const REQUESTS: usize = 100;

/// Calls with event streams as responses, with an event at the beginning and one at the end.
const SLOW_CALLS: usize = 8;

/// Responses become event streams after 2 s.
const TOOLS: &str = "[commands.hello]\nargv = [\"echo\", \"hello\"]\n\
    [commands.slow]\nargv = [\"sh\", \"-c\", \"sleep 5; echo hello\"]\n";

/// What the process does without a request, such as sweeping, may take this many commands beside.
const BESIDE: usize = REQUESTS / 10;

/// Returns how many scripts Redis has run since the last call; everything that concerns sessions and events is one.
fn scripts(redis: &RedisProcess) -> usize {
    let stats = redis.command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse::<usize>().unwrap())
    };
    let count = calls("evalsha") + calls("eval");
    redis.command(&["CONFIG", "RESETSTAT"]);
    count
}

#[test]
fn legacy_request_costs_one_lookup_and_one_write_per_event_and_a_modern_one_nothing() {
    let redis = RedisProcess::start();
    let place =
        StoreFolder { store: format!("redis://127.0.0.1:{}", redis.port), ..StoreFolder::new("redis_cost") };
    file(&place.folder, "trunkline.toml", TOOLS, 0o600);
    let (_running, address) = place.serve(&[]);
    let session = StoredSession::open(address);
    let ping = legacy(2, "ping", json!({}));
    assert_eq!(session.post(address, &ping).status, 200);
    scripts(&redis);
    for _ in 0..REQUESTS {
        assert_eq!(session.post(address, &ping).status, 200);
    }
    let pings = scripts(&redis);
    assert!((REQUESTS..=REQUESTS + BESIDE).contains(&pings), "{pings} scripts for {REQUESTS} pings");

    let calls: Vec<_> = (0..SLOW_CALLS)
        .map(|id| {
            let (session, slow) =
                (session.clone(), legacy(10 + id as u64, "tools/call", call("slow", json!({}))));
            std::thread::spawn(move || session.post(address, &slow).body)
        })
        .collect();
    let bodies: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
    assert!(bodies.iter().all(|body| body.contains("hello")), "{bodies:?}");
    let events = bodies.iter().flat_map(|body| body.lines()).filter(|line| line.starts_with("id: ")).count();
    let written = scripts(&redis);
    assert!(events >= SLOW_CALLS, "{events} events are too few to measure: {bodies:?}");
    let most = SLOW_CALLS + events + BESIDE;
    assert!(
        (SLOW_CALLS + 1..=most).contains(&written),
        "{written} scripts for {SLOW_CALLS} calls, {events} events"
    );

    for id in 0..REQUESTS {
        let hello = modern(10 + id as u64, "tools/call", call("hello", json!({})));
        let reply = post(address, &hello, &[]);
        assert!(reply.body.contains("hello"), "{reply:?}");
    }
    let modern = scripts(&redis);
    assert!(modern <= BESIDE, "{modern} scripts for {REQUESTS} modern calls");
}
