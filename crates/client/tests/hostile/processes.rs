//! Hostile servers that are programs: their errors, and that no process is left.
#![cfg(target_os = "linux")]

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline_client::{Client, ClientLimits, Error, RequestDelivery};
use trunkline_transport::Command;
use trunkline_transport::process::{child_count, wait_for_background_exits};

use crate::child::{self, TEXT, server, server_below};
use crate::peer::call;

/// A test that takes longer than this hangs; the clock is real here.
const DEADLINE: Duration = Duration::from_secs(60);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

async fn connect(command: Command) -> Result<Client, Error> {
    let limits = ClientLimits { close_timeout: Duration::from_secs(30), ..ClientLimits::default() };
    soon("a connection", Client::builder().limits(limits).connect(command)).await
}

#[tokio::test]
async fn process_exit_is_reported_with_status_and_last_stderr_lines() {
    // The role, and parts of the error of the first call.
    let table: &[(&str, &[&str])] = &[
        ("dies-after-the-handshake", &["exited with code 3", "\n  one\n  two\n  three"]),
        ("dies-in-mid-call", &["was ended by SIGABRT", "thread panicked at 'oh no'"]),
        ("closes-its-output", &["exited with code 0"]),
    ];
    for (role, expected) in table {
        let client = connect(server(role)).await.unwrap();
        let error = soon(role, call(&client, "a")).await.unwrap_err();
        assert!(matches!(error, Error::Closed { .. }), "{role}: {error}");
        for text in *expected {
            assert!(error.to_string().contains(text), "{role}: {error}");
        }
        // A later call gets the same error, and was not sent.
        let error = soon(role, call(&client, "a")).await.unwrap_err();
        assert!(error.to_string().contains(expected[0]), "{role}: {error}");
        assert!(!error.may_have_run(), "{role}: {error}");
    }
}

#[tokio::test]
async fn process_failing_before_the_handshake_is_unreachable_with_every_attempt() {
    let table: &[(Command, &[&str])] = &[
        (server("dies-at-start"), &["exited with code 78", "cannot find its configuration"]),
        (server("dies-at-the-probe"), &["no answer within"]),
        (Command::new("no-such-program"), &["`no-such-program` was not found in PATH"]),
        (
            Command::new("sh").args(["-c", "echo Usage: nothing; exit 2"]),
            &["exited with code 2", "Usage: nothing"],
        ),
        (Command::new("true"), &["exited with code 0"]),
    ];
    for (command, expected) in table {
        let limits = ClientLimits { handshake_timeout: Duration::from_secs(2), ..ClientLimits::default() };
        let connecting = Client::builder().limits(limits).connect(command.clone());
        let error = soon("the end", connecting).await.unwrap_err();
        let Error::Unreachable(unreachable) = &error else { panic!("{command}: {error}") };
        for text in *expected {
            assert!(error.to_string().contains(text), "{command}: {error}");
        }
        assert!(!unreachable.attempts.is_empty(), "{command}");
    }
}

#[tokio::test]
async fn process_exit_within_a_response_at_any_byte_is_reported() {
    let length = child::answer(&json!(2)).len();
    let cuts: Vec<usize> = (0..=length).collect();
    // A few at one time: the machine has other things to do as well.
    for cuts in cuts.chunks(4) {
        let rows = cuts.iter().map(|cut| async move {
            let client = connect(server(&format!("dies-in-mid-message:{cut}"))).await.unwrap();
            let outcome = soon("the call", call(&client, "a")).await;
            if *cut >= length - 1 {
                assert_eq!(outcome.unwrap(), TEXT, "cut at {cut}");
                return;
            }
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, Error::Closed { delivery: RequestDelivery::MaybeSent, .. }),
                "cut at {cut}: {error}"
            );
            assert!(error.to_string().contains("exited with code 4"), "cut at {cut}: {error}");
            let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            assert!(source.is_some(), "cut at {cut}: {error:?}");
        });
        futures_util::future::join_all(rows).await;
    }
}

#[tokio::test]
async fn stdout_and_stderr_floods_do_not_block_responses() {
    for role in ["floods-stderr", "floods-stdout"] {
        let client = connect(server(role)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(soon(role, call(&client, "a")).await.unwrap(), TEXT, "{role}");
        }
        soon("the end", client.close()).await;
    }
}

#[tokio::test]
async fn processes_that_ignore_shutdown_are_killed() {
    // A grandchild beside it, one in a session of its own, and servers that heed neither their input nor a request.
    let commands = [
        server("ignores-everything"),
        server("never-ends-a-line"),
        server_below("trap '' TERM", "ignores-everything"),
        server_below("sleep 1000 & setsid sleep 1000 &", "ignores-everything"),
        server_below("trap '' TERM; sleep 1000 &", "never-ends-a-line"),
    ];
    let rows = commands.into_iter().map(|command| async move {
        let client = connect(command.clone()).await.unwrap();
        let began = Instant::now();
        let error = client.call("a", json!({})).timeout(Duration::from_millis(300)).await.unwrap_err();
        // A line without an end can only be the response to the only call, which fails before its deadline.
        assert!(matches!(error, Error::TimedOut { .. } | Error::TooLong { .. }), "{command}: {error}");
        soon("the end", client.close()).await;
        assert!(began.elapsed() < DEADLINE / 2, "{command}: {:?}", began.elapsed());
    });
    futures_util::future::join_all(rows).await;
}

/// Runs alone, in a process of its own: it counts what the whole process has.
#[tokio::test]
#[ignore = "runs alone"]
async fn process_leak_check_child() {
    let roles = [
        "dies-at-start",
        "dies-at-the-probe",
        "dies-after-the-handshake",
        "dies-in-mid-call",
        "dies-in-mid-message:20",
        "closes-its-output",
        "floods-stdout",
        "ignores-everything",
        "never-ends-a-line",
        "sane",
    ];
    let limits = ClientLimits {
        handshake_timeout: Duration::from_millis(300),
        close_timeout: Duration::from_secs(30),
        ..ClientLimits::default()
    };
    let meet = |role: &'static str| {
        let unique = format!("8{}", std::process::id());
        let command = server_below(&format!("sleep {unique} & setsid sleep {unique} &"), role);
        let connecting = Client::builder().limits(limits.clone()).connect(command);
        async move {
            let Ok(client) = soon(role, connecting).await else { return 0 };
            let patience = Duration::from_millis(300);
            let _ = soon(role, client.call("a", json!({})).timeout(patience).into_future()).await;
            // In an orderly way, or by just letting go.
            if role.len().is_multiple_of(2) {
                soon("the end", client.close()).await;
            }
            1
        }
    };
    let round = || async {
        let connected: usize =
            futures_util::future::join_all(roles.map(|role| Box::pin(meet(role)))).await.into_iter().sum();
        assert_eq!(connected, roles.len() - 2, "all but those that die before the handshake");
        soon("all are ended", wait_for_background_exits()).await;
    };
    round().await;
    let before = (descriptors(), tasks().await);
    for _ in 0..2 {
        round().await;
        assert_eq!(unique_processes(), Vec::<String>::new());
        assert_eq!(child_count(), 0, "children");
        assert_eq!((descriptors(), tasks().await), before, "descriptors and tasks");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the process that is started is this test itself")]
fn hostile_processes_leave_no_process_descriptor_or_task() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "processes::process_leak_check_child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "no test has that name: {text}");
}

/// Lists the processes that were started below servers of this process.
fn unique_processes() -> Vec<String> {
    let unique = format!("8{}", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|word| word == unique)).collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Counts the tasks once those that only have to notice that they are over have done so.
async fn tasks() -> usize {
    let metrics = tokio::runtime::Handle::current().metrics();
    let mut fewest = usize::MAX;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        fewest = fewest.min(metrics.num_alive_tasks());
    }
    fewest
}
