//! `--store redis://…`: processes that share legacy sessions.

use serde_json::json;

use crate::bare_client::{get, post, send};
use crate::messages::{call, initialize, legacy, modern};
use crate::process::{file, run};
use crate::session_store::{StoreFolder, StoredSession, event_id, kill, refused};

#[path = "../../../store-redis/tests/redis/server.rs"]
#[expect(dead_code, reason = "these tests start one server of the simplest kind")]
pub(crate) mod server;

use self::server::{RedisProcess, free_port};

const PASSWORD: &str = "open-sesame";

/// A folder whose store is in Redis.
fn place(test: &str, redis: &RedisProcess) -> StoreFolder {
    StoreFolder { store: format!("redis://:{PASSWORD}@127.0.0.1:{}", redis.port), ..StoreFolder::new(test) }
}

fn redis() -> RedisProcess {
    RedisProcess::start_with(&["--save", "", "--requirepass", PASSWORD])
}

#[test]
fn session_goes_on_through_another_process_that_shares_redis() {
    let redis = redis();
    let place = place("redis_shared", &redis);
    let (first, address) = place.serve(&["--no-config"]);
    let session = StoredSession::open(address);
    let deleted = StoredSession::open(address);
    let watch = legacy(3, "resources/subscribe", json!({ "uri": "time://now" }));
    assert_eq!(session.post(address, &watch).status, 200);
    let mut stream = session.stream(address, None);
    let opening = event_id(&mut stream);

    let (second, other) = place.serve(&["--no-config"]);
    let answer = session.call(other, "echo", json!({ "message": "here too" }));
    assert_eq!(answer["result"]["content"][0]["text"], "here too", "{answer}");
    assert_eq!(send(other, "DELETE /mcp", &deleted.headers(), "").status, 204);
    assert_eq!(deleted.post(other, &legacy(4, "ping", json!({}))).status, 404);
    // The first process ends without a chance to clean up.
    kill(first);
    let mut resumed = session.stream(other, Some(&opening));
    resumed.read_until("\r\n");
    assert!(resumed.seen().starts_with("HTTP/1.1 200 "), "{}", resumed.seen());
    let metrics = get(other, "/metrics", &[]).body;
    assert!(metrics.contains("mcp_server_stored_sessions{store=\"redis\"} 1\n"), "{metrics}");
    kill(second);

    let (_third, address) = place.serve(&["--no-config"]);
    let answer = session.call(address, "echo", json!({ "message": "after" }));
    assert_eq!(answer["result"]["content"][0]["text"], "after", "{answer}");
}

#[test]
fn full_store_evicts_no_session_of_another_process() {
    let redis = redis();
    let place = place("redis_full", &redis);
    let limit = ["--no-config", "--max-sessions", "3"];
    let (_first, address) = place.serve(&limit);
    let (_second, other) = place.serve(&limit);
    let used_elsewhere = [StoredSession::open(address), StoredSession::open(address)];
    let own = StoredSession::open(other);
    // The second process makes room with its own idle session, although the first one has more and older ones.
    let newest = StoredSession::open(other);
    let status = |session: &StoredSession| session.post(address, &legacy(4, "ping", json!({}))).status;
    assert_eq!(used_elsewhere.each_ref().map(status), [200, 200]);
    assert_eq!([status(&own), status(&newest)], [404, 200]);

    // A process without sessions of its own refuses the new one.
    let (_third, third) = place.serve(&limit);
    let refused = post(third, &initialize(), &[]);
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(used_elsewhere.each_ref().map(status), [200, 200]);
    assert_eq!(status(&newest), 200);
}

#[test]
fn full_store_evicts_no_session_that_went_to_another_process() {
    let redis = redis();
    let place = place("redis_moved", &redis);
    let limit = ["--no-config", "--max-sessions", "2"];
    let (_first, address) = place.serve(&limit);
    let (_second, other) = place.serve(&limit);
    let [moved, idle] = [StoredSession::open(address), StoredSession::open(address)];
    let status = |session: &StoredSession| session.post(other, &legacy(4, "ping", json!({}))).status;
    assert_eq!(status(&moved), 200);
    // The first process takes it for its oldest idle session.
    let newest = StoredSession::open(address);
    assert_eq!([&moved, &idle, &newest].map(status), [200, 404, 200]);
}

#[test]
fn session_that_went_to_another_process_keeps_its_events() {
    let redis = redis();
    let place = place("redis_moved_events", &redis);
    let limit = ["--no-config", "--session-ttl", "2s"];
    let (_first, address) = place.serve(&limit);
    let (_second, other) = place.serve(&limit);
    let session = StoredSession::open(address);
    let mut stream = session.stream(address, None);
    let opening = event_id(&mut stream);
    drop(stream);
    let has_session = |address| !get(address, "/metrics", &[]).body.contains("mcp_server_sessions 0\n");
    while has_session(address) {
        assert_eq!(session.post(other, &legacy(4, "ping", json!({}))).status, 200);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut resumed = session.stream(other, Some(&opening));
    resumed.read_until("\r\n");
    assert!(resumed.seen().starts_with("HTTP/1.1 200 "), "{}", resumed.seen());
}

#[test]
fn outage_of_redis_is_503_and_heals() {
    let redis = redis();
    let place = place("redis_outage", &redis);
    let (running, address) = place.serve(&["--no-config"]);
    let session = StoredSession::open(address);
    redis.pause();
    let refused = post(address, &initialize(), &[]);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("unavailable now; try again later"), "{refused:?}");
    let call = modern(7, "tools/call", call("echo", json!({ "message": "without a session" })));
    let answer = post(address, &call, &[]).json();
    assert_eq!(answer["result"]["content"][0]["text"], "without a session", "{answer}");
    redis.resume();
    while post(address, &initialize(), &[]).status != 200 {}
    let answer = session.call(address, "echo", json!({ "message": "again" }));
    assert_eq!(answer["result"]["content"][0]["text"], "again", "{answer}");
    running.signal(rustix::process::Signal::TERM);
    let finished = running.wait();
    assert!(!finished.stderr.contains(PASSWORD), "{}", finished.stderr);
}

#[test]
fn redis_that_cannot_be_used_is_explained_without_its_password() {
    let redis = redis();
    let place = place("redis_refused", &redis);
    let other = file(&place.folder, "other.key", &"o".repeat(32), 0o600);
    let nowhere = format!("redis://hub:{PASSWORD}@127.0.0.1:{}", free_port());
    let stderr = refused(&place.folder, &["--store", &place.store]);
    assert!(stderr.contains("needs a state key that all processes share"), "{stderr}");
    assert!(stderr.contains("hint:") && stderr.contains("copy it to every replica"), "{stderr}");
    let (running, _) = place.serve(&["--no-config", "--log-level", "debug"]);
    kill(running);
    for (store, key, expected) in [
        (&*place.store, &other, "another state key"),
        (&nowhere, &place.key, "cannot be opened"),
        (&format!("redis://hub:{PASSWORD}@h:port"), &place.key, "a port is a number"),
        ("redis://hub:${TRUNKLINE_NO_SUCH_VARIABLE}@h", &place.key, "TRUNKLINE_NO_SUCH_VARIABLE is not set"),
        ("redis://hub@h?password_file=/no/such/file", &place.key, "/no/such/file"),
    ] {
        let stderr = refused(&place.folder, &["--store", store, "--state-key", key, "--log-level", "debug"]);
        assert!(stderr.contains(expected), "{stderr}");
        assert!(!stderr.contains(PASSWORD), "{stderr}");
    }
    let bridged =
        ["bridge", "--http", "127.0.0.1:0", "--store", &nowhere, "--state-key", &place.key, "--", "cat"];
    let finished = run(&bridged, "");
    assert!(
        finished.stderr.contains("cannot be opened") && !finished.stderr.contains(PASSWORD),
        "{finished:?}"
    );
}

#[test]
fn redis_of_a_config_file_is_checked_with_its_position() {
    let redis = redis();
    let place = place("redis_configured", &redis);
    file(&place.folder, "password", &format!("{PASSWORD}\n"), 0o600);
    let config = |location: &str| {
        let text =
            format!("[commands.hello]\nargv = [\"echo\", \"hello\"]\n\n[store]\nlocation = {location:?}\n");
        file(&place.folder, "trunkline.toml", &text, 0o600)
    };
    let path = config(&format!("redis://:{PASSWORD}@h:port"));
    let finished = run(&["serve", "--trust", "--http", "127.0.0.1:0", "--config", &path], "");
    assert!(
        finished.stderr.contains("5:12") && finished.stderr.contains("a port is a number"),
        "{finished:?}"
    );
    assert!(!finished.stderr.contains(PASSWORD), "{finished:?}");
    // A path counts from the folder of the file.
    let path = config(&format!("redis://127.0.0.1:{}?password_file=password", redis.port));
    let finished = run(&["serve", "--trust", "--http", "127.0.0.1:0", "--config", &path], "");
    assert!(finished.stderr.contains("needs a state key that all processes share"), "{finished:?}");
}
