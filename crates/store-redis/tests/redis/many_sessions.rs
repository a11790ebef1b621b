//! Many sessions in one Redis.

use std::sync::Arc;

use trunkline_session::StateKeys;
use trunkline_store_redis::RedisStoreLimits;

use crate::fixture::{NOW, open, record};
use crate::server::RedisProcess;
use crate::session_crowd::{limits, open_list_touch_and_expire};

fn used_memory(server: &RedisProcess) -> usize {
    let info = server.command(&["INFO", "memory"]);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    used.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_in_redis_are_listed_touched_and_expired() {
    let server = RedisProcess::start();
    let limits = RedisStoreLimits { sessions: limits(), ..Default::default() };
    let store = open(&server.url(), &StateKeys::random().unwrap(), limits).await;
    let empty = used_memory(&server);
    let full = |count: usize| {
        println!("{count} sessions: {} bytes of Redis each", (used_memory(&server) - empty) / count);
    };
    open_list_touch_and_expire(Arc::new(store.sessions()), record, NOW, full).await;
}
