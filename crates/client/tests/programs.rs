//! Servers that are programs: this test binary itself, started again as a server.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::transport::{Command, process};
use trunkline_client::{Client, EraCache, Error, RequestDelivery};
use trunkline_server::{Server, Tool, stdio};

const MODE: &str = "TRUNKLINE_TEST_MODE";
const STARTS: &str = "TRUNKLINE_TEST_STARTS";

/// Not a test of anything: the server that the others start. What the harness prints before it is noise to a client.
#[test]
fn client_child_process_serves_stdio_when_requested() {
    let Ok(mode) = std::env::var(MODE) else { return };
    if let Ok(starts) = std::env::var(STARTS) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(starts).unwrap();
        writeln!(file, "started").unwrap();
    }
    match mode.as_str() {
        "everything" => serve(),
        "old" => serve_old(),
        "broken" => eprintln!("the configuration is missing"),
        other => panic!("{other}"),
    }
}

fn serve() {
    let server = Server::new("child")
        .with(Tool::new("hello").run(async || "hello"))
        .with(
            Tool::new("variable").run(async || std::env::var("TRUNKLINE_TEST_VARIABLE").unwrap_or_default()),
        )
        .with(Tool::new("die").run(async || -> String {
            eprintln!("dying on request");
            std::process::abort()
        }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.serve(stdio())).unwrap();
}

/// A server of the first days: it goes away at anything that it does not know before the handshake.
fn serve_old() {
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "0" } }),
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": "old" }] }),
            Some("notifications/initialized") => continue,
            _ => return,
        };
        println!("{}", json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
}

fn program(mode: &str) -> Command {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_child_process_serves_stdio_when_requested", "--nocapture"])
        .env(MODE, mode)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it ends in time")
}

/// A file of one test, which goes when the test is over.
struct StartLog(PathBuf);

impl StartLog {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("trunkline-starts-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    fn count(&self) -> usize {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().count()
    }
}

impl Drop for StartLog {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn server_process_is_started_called_and_stopped() {
    let builder = Client::builder().env("TRUNKLINE_TEST_VARIABLE", "given");
    let client = within(builder.connect(program("everything"))).await.unwrap();
    let server = client.server();
    assert_eq!((server.revision, server.transport), (Revision::V2026_07_28, "stdio"));
    assert_eq!(within(client.call("hello", json!({})).into_future()).await.unwrap().text(), "hello");
    assert_eq!(within(client.call("variable", json!({})).into_future()).await.unwrap().text(), "given");
    within(client.close()).await;
}

#[tokio::test]
async fn legacy_process_is_restarted_and_its_era_is_cached() {
    let (starts, verdicts) = (StartLog::new(), EraCache::default());
    for (connection, started) in [(1, 2), (2, 3), (3, 4)] {
        let command = program("old").env(STARTS, &starts.0);
        let client = within(Client::builder().era_cache(verdicts.clone()).connect(command)).await.unwrap();
        assert_eq!(client.server().revision, Revision::V2024_11_05);
        assert_eq!(within(client.call("t", json!({})).into_future()).await.unwrap().text(), "old");
        assert_eq!(starts.count(), started, "connection {connection}");
        within(client.close()).await;
    }
}

#[tokio::test]
async fn process_that_does_not_serve_is_reported_with_its_output() {
    let error = within(Client::connect(program("broken"))).await.unwrap_err();
    let Error::Unreachable(unreachable) = error else { panic!("{error}") };
    assert!(unreachable.cause.contains("the configuration is missing"), "{unreachable}");
    assert_eq!(unreachable.attempts.len(), 2);
    let error = within(Client::connect("/nowhere/to/be/found --really")).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable(_)) && error.to_string().contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn process_exit_during_a_call_fails_it_with_the_last_stderr_lines() {
    let client = within(Client::connect(program("everything"))).await.unwrap();
    let error = within(client.call("die", json!({})).into_future()).await.unwrap_err();
    let Error::Closed { cause, delivery: RequestDelivery::MaybeSent, .. } = error else { panic!("{error}") };
    assert!(cause.contains("dying on request"), "{cause}");
}

#[tokio::test]
async fn server_process_is_stopped_with_the_last_client() {
    let client = within(Client::connect(program("everything"))).await.unwrap();
    drop(client);
    // Other tests of this binary have children too, so that only those of this one can be waited for: all that are ending.
    within(process::wait_for_background_exits()).await;
}
