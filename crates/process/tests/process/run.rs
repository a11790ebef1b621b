//! Commands that run and are over.

use std::time::Duration;

use trunkline_transport::Command;
use trunkline_transport::process::{
    CommandObserver, ExitCause, OutputLine, OutputStream, ProcessExit, RunLimits, SpawnError, run,
    run_with_lines, run_with_observer,
};

use crate::support::{Watched, alone, sh, soon};

#[tokio::test]
async fn run_captures_both_outputs_and_the_exit() {
    let table: &[(&str, ProcessExit, &str, &str)] = &[
        ("true", ProcessExit::Code(0), "", ""),
        ("echo out; echo err >&2; exit 3", ProcessExit::Code(3), "out\n", "err\n"),
        ("printf 'no end'", ProcessExit::Code(0), "no end", ""),
        ("kill -9 $$", ProcessExit::Signal(9), "", ""),
        // Stdin is empty: readers get EOF.
        ("cat; echo over", ProcessExit::Code(0), "over\n", ""),
        // What the command started writes after it has ended.
        ("(sleep 0.05; echo late) & exit 7", ProcessExit::Code(7), "late\n", ""),
    ];
    for (script, exit, stdout, stderr) in table {
        let finished = soon(script, run(&sh(script), &RunLimits::default())).await.unwrap();
        assert_eq!((finished.exit, finished.cause), (*exit, ExitCause::Voluntary), "{script}");
        assert_eq!((&*finished.stdout.text(), &*finished.stderr.text()), (*stdout, *stderr), "{script}");
        assert_eq!((finished.stdout.dropped, finished.stderr.dropped), (0, 0), "{script}");
    }
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are() {
    let arguments = ["", " ", "a b", "$HOME", "`id`", "-x", "--", "'\"\\", "line\nbreak", "ä", "*"];
    let command = Command::new("printf").arg("%s|").args(arguments);
    let finished = run(&command, &RunLimits::default()).await.unwrap();
    assert_eq!(finished.stdout.text(), arguments.map(|argument| format!("{argument}|")).concat());
}

#[tokio::test]
async fn output_beyond_the_capture_limit_is_counted() {
    let limits = RunLimits { stdout_bytes: 10, stderr_bytes: 0, ..RunLimits::default() };
    let script = "head -c 1000000 /dev/zero; head -c 300000 /dev/zero >&2; exit 4";
    let finished = soon("the end", run(&sh(script), &limits)).await.unwrap();
    assert_eq!(finished.exit, ProcessExit::Code(4));
    assert_eq!((finished.stdout.bytes.len(), finished.stdout.dropped), (10, 999_990));
    assert_eq!((finished.stderr.bytes.len(), finished.stderr.dropped), (0, 300_000));
}

/// Keeps what is beyond the limits.
#[derive(Default)]
struct Beyond {
    id: Option<u32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl CommandObserver for Beyond {
    fn started(&mut self, id: u32) {
        self.id = Some(id);
    }

    fn line(&mut self, line: OutputLine<'_>) {
        panic!("nobody wants lines: {line:?}");
    }

    fn overflow(&mut self, source: OutputStream, bytes: &[u8]) {
        match source {
            OutputStream::Stdout => self.stdout.extend_from_slice(bytes),
            OutputStream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
}

#[tokio::test]
async fn observer_receives_the_process_id_and_the_overflow() {
    let limits = RunLimits { stdout_bytes: 3, stderr_bytes: 100, ..RunLimits::default() };
    let script = "echo $$; seq 1 100000; echo all is well >&2";
    let mut beyond = Beyond::default();
    let finished = soon("the end", run_with_observer(&sh(script), &limits, &mut beyond)).await.unwrap();
    let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let whole = [&finished.stdout.bytes[..], &beyond.stdout].concat();
    assert_eq!(String::from_utf8(whole).unwrap(), format!("{}\n{numbers}", beyond.id.unwrap()));
    assert_eq!(finished.stdout.dropped, beyond.stdout.len() as u64);
    assert!(beyond.stderr.is_empty());
}

#[tokio::test]
async fn lines_are_seen_while_the_command_runs() {
    let mut seen = Vec::new();
    let (tell, told) = std::sync::mpsc::channel();
    // The command ends only after its first line was seen: the observer makes the file that it waits for.
    let file = std::env::temp_dir().join(format!("trunkline-seen-{}", std::process::id()));
    let script = "echo first; until test -e \"$1\"; do sleep 0.01; done; echo second >&2; printf third";
    let command = sh(script).arg(&file);
    let observe = |line: OutputLine<'_>| {
        if line.text == "first" {
            std::fs::write(&file, "").unwrap();
            tell.send(()).unwrap();
        }
        seen.push((line.stream, line.text.into_owned()));
    };
    let finished = soon("the end", run_with_lines(&command, &RunLimits::default(), observe)).await;
    std::fs::remove_file(&file).unwrap();
    told.try_recv().unwrap();
    assert_eq!(finished.unwrap().stdout.text(), "first\nthird");
    seen.sort_by_key(|(source, _)| *source == OutputStream::Stderr);
    let expected =
        [(OutputStream::Stdout, "first"), (OutputStream::Stdout, "third"), (OutputStream::Stderr, "second")];
    assert_eq!(seen, expected.map(|(source, text)| (source, text.to_owned())));
}

#[tokio::test]
async fn command_timeout_terminates_all_descendants() {
    // How it takes the request to end, and how it ends.
    let table = [
        ("sleep 1000 & echo $!; echo $$; wait", ProcessExit::Signal(15)),
        (
            "trap '' TERM; sh -c \"sleep 1000\" & echo $!; echo $$; while :; do wait; done",
            ProcessExit::Signal(9),
        ),
        ("setsid sleep 1000 & echo $!; echo $$; wait", ProcessExit::Signal(15)),
        ("trap 'exit 5' TERM; sleep 1000 & echo $!; echo $$; wait", ProcessExit::Code(5)),
    ];
    let limits = RunLimits {
        // Long enough for each to have printed its process ids, on a busy machine too.
        timeout: Some(Duration::from_secs(2)),
        kill_after: Duration::from_millis(200),
        ..RunLimits::default()
    };
    let rows = table.map(async |(script, exit)| {
        let mut watched = Vec::new();
        let observe = |line: OutputLine<'_>| watched.push(Watched::new(&line.text));
        let finished = soon(script, run_with_lines(&sh(script), &limits, observe)).await.unwrap();
        assert_eq!((finished.exit, finished.cause), (exit, ExitCause::TimedOut), "{script}");
        assert_eq!(watched.len(), 2, "{script}");
        for process in &watched {
            process.ended().await;
        }
    });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn command_timeout_applies_during_endless_output() {
    let limits =
        RunLimits { timeout: Some(Duration::from_millis(100)), stdout_bytes: 1000, ..RunLimits::default() };
    let finished = soon("the end", run(&Command::new("yes"), &limits)).await.unwrap();
    assert_eq!((finished.exit, finished.cause), (ProcessExit::Signal(15), ExitCause::TimedOut));
    assert_eq!(finished.stdout.bytes.len(), 1000);
    assert!(finished.stdout.dropped > 0);
}

#[tokio::test]
async fn descendants_that_hold_outputs_are_killed_after_the_drain_timeout() {
    let mut watched = Vec::new();
    let observe = |line: OutputLine<'_>| watched.push(Watched::new(&line.text));
    let limits = RunLimits { drain_timeout: Duration::from_millis(50), ..RunLimits::default() };
    // In its group, with its outputs and without, and in sessions of their own, with one of its outputs each.
    let script = "sleep 1000 & echo $!; sleep 1000 >/dev/null 2>&1 & echo $!; \
                  setsid sleep 1000 2>/dev/null & echo $!; setsid sleep 1000 >/dev/null & echo $!";
    let finished = soon("the end", run_with_lines(&sh(script), &limits, observe)).await.unwrap();
    assert_eq!(finished.exit, ProcessExit::Code(0));
    for process in &watched {
        process.ended().await;
    }
    assert_eq!(watched.len(), 4);
}

#[tokio::test]
async fn spawn_error_names_the_program_and_the_reason() {
    let table = [
        (Command::new("no-such-program"), "`no-such-program` was not found in PATH"),
        (Command::new("/no/such/program"), "`/no/such/program` was not found"),
        (
            Command::new("npx -y server"),
            "`npx -y server` was not found in PATH; its arguments have to be given apart from its name",
        ),
        (Command::new("sh").env("PATH", "/nowhere"), "`sh` was not found in PATH"),
        (Command::new(""), "`` was not found in PATH"),
        (
            Command::new("sh").current_dir("/no/such/folder"),
            "`sh` cannot start in `/no/such/folder`: it is not a folder",
        ),
        (Command::new("/etc/passwd"), "`/etc/passwd` cannot be executed: Permission denied (os error 13)"),
        (Command::new("sh").arg("nul\0byte"), "`sh` could not be started: nul byte found in provided data"),
    ];
    for (command, expected) in table {
        let error = run(&command, &RunLimits::default()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn spawn_fails_without_a_tokio_runtime() {
    let mut run = std::pin::pin!(run_nothing());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = run.as_mut().poll(&mut cx) else { panic!("it started") };
    assert!(matches!(error, SpawnError::NoRuntime { .. }), "{error}");
}

async fn run_nothing() -> Result<(), SpawnError> {
    run(&Command::new("true"), &RunLimits::default()).await.map(drop)
}

#[test]
fn gibibyte_of_output_uses_at_most_the_capture_limit() {
    alone("resource_usage::flood");
}

#[test]
fn thousand_cancelled_runs_leak_no_process_and_no_descriptor() {
    alone("resource_usage::cancelled_runs");
}
