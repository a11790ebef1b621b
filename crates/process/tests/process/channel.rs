//! Servers over their pipes: messages, noise, floods, and the errors after their end.

use std::sync::{Arc, Mutex};

use trunkline_transport::process::{
    self, ExitCause, ExitReport, GracePeriods, OutputLine, OutputStream, ProcessChannel, ProcessExit,
    ProcessOptions,
};
use trunkline_transport::{Channel as _, Command, ReceiveError};

use crate::support::{DEADLINE, receive, receive_watched, send, sh, soon, spawn};

/// Receives up to the end, which has to come with what is known of the server.
async fn end_of(channel: &mut ProcessChannel) -> (Vec<String>, ExitReport) {
    let mut messages = Vec::new();
    loop {
        match receive(channel).await.expect("an error before the end") {
            Ok(message) => messages.push(message),
            Err(ReceiveError::Broken(error)) => {
                let ended = error.get_ref().and_then(|error| error.downcast_ref::<ExitReport>()).cloned();
                assert!(receive(channel).await.is_none(), "after the end there is nothing");
                return (messages, ended.expect("what is known of the server"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn messages_flow_both_ways_until_shutdown() {
    let (mut channel, process) = spawn(&Command::new("cat"));
    for number in 0..100 {
        let message = format!("{{\"id\":{number}}}");
        send(&mut channel, &message).await;
        assert_eq!(receive(&mut channel).await.unwrap().unwrap(), message);
    }
    let (exit, end) = tokio::join!(soon("the end", process.shut_down()), receive(&mut channel));
    assert_eq!(exit, ProcessExit::Code(0), "closing its input is enough for it");
    assert!(end.is_none(), "an end that was asked for is no error");
}

#[tokio::test]
async fn unexpected_exit_reports_the_status_and_last_stderr() {
    // What the server does, what it sent, and the message at the end.
    let table: &[(&str, &[&str], &str)] = &[
        ("exit 0", &[], "`sh` exited with code 0"),
        (
            "echo '{\"id\":1}'; echo Banner; echo one >&2; echo two >&2; exit 3",
            &["{\"id\":1}"],
            "`sh` exited with code 3\nits standard error ended with:\n  one\n  two",
        ),
        ("kill -9 $$", &[], "`sh` was ended by SIGKILL"),
        (
            "echo 'Usage: server [options]'; exit 2",
            &[],
            "`sh` exited with code 2\nits standard output was not the protocol: Usage: server [options]",
        ),
        ("printf '{\"id\":1}'; exit 1", &["{\"id\":1}"], "`sh` exited with code 1"),
        (
            "printf '{\"id\":1,\"res'; exit 1",
            &[],
            "`sh` exited with code 1\nits standard output was not the protocol: {\"id\":1,\"res",
        ),
        (
            "echo '{}'; exec >&-; exec sleep 1000",
            &["{}"],
            "`sh` closed its standard output and was ended by SIGTERM",
        ),
        // What it started holds its output, and has to go with it.
        ("echo '{}'; sleep 1000 & exit 4", &["{}"], "`sh` exited with code 4"),
    ];
    for (script, messages, expected) in table {
        let (mut channel, process) = spawn(&sh(script));
        let (received, ended) = end_of(&mut channel).await;
        assert_eq!(received, *messages, "{script}");
        assert_eq!(ended.to_string(), *expected, "{script}");
        assert_eq!(process.exit_report(), Some(ended), "{script}");
    }
}

#[tokio::test]
async fn closed_stdin_ends_the_server_and_drops_queued_messages() {
    let (mut channel, _process) = spawn(&sh("exec <&-; echo '{}'; exec sleep 1000"));
    assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "{}");
    for _ in 0..10 {
        send(&mut channel, "{\"id\":1}").await;
    }
    assert_eq!(channel.queued(), 0);
    let (_, ended) = end_of(&mut channel).await;
    assert_eq!(ended.cause, ExitCause::ClosedInput);
    assert_eq!(ended.to_string(), "`sh` closed its standard input and was ended by SIGTERM");
}

#[tokio::test]
async fn noise_on_standard_output_is_skipped_and_counted() {
    let script = "echo 'Welcome to the server!'; echo; echo '[INFO] ready'; echo '{\"id\":1}'; echo '{ not json'; \
                  head -c 100000 /dev/zero | tr '\\0' x; echo; echo '[{\"id\":2}]'; cat";
    let (mut channel, process) = spawn(&sh(script));
    assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "{\"id\":1}");
    assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "[{\"id\":2}]");
    let noise = process.noise();
    assert_eq!((noise.lines, noise.first.as_deref()), (4, Some("Welcome to the server!")));
}

#[tokio::test]
async fn first_line_of_stdout_noise_is_stored_truncated() {
    let (mut channel, process) = spawn(&sh("head -c 100000 /dev/zero | tr '\\0' x; echo; exit 1"));
    end_of(&mut channel).await;
    assert_eq!(process.noise().first.unwrap(), "x".repeat(200));
}

#[tokio::test]
async fn endless_stdout_line_uses_at_most_the_limit_and_the_server_continues() {
    let options = ProcessOptions { message_bytes: 1000, ..ProcessOptions::default() };
    let script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo '{\"id\":1}'; cat";
    let (mut channel, _process) = process::spawn(&sh(script), options).unwrap();
    let error = receive(&mut channel).await.unwrap().unwrap_err();
    assert!(matches!(error, ReceiveError::TooLong { limit: 1000, .. }), "{error}");
    assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "{\"id\":1}");
}

#[tokio::test]
async fn flooded_stderr_never_blocks_the_server() {
    // The channel is not polled while the server writes, without a single line break, more than any pipe holds.
    let (mut channel, process) =
        spawn(&sh("head -c 67108864 /dev/zero | tr '\\0' e >&2; echo '{\"id\":1}'; exit 0"));
    soon("the end", process.exited()).await;
    let (messages, ended) = end_of(&mut channel).await;
    assert_eq!(messages, ["{\"id\":1}"]);
    assert_eq!((ended.stderr.text.len(), ended.stderr.dropped), (65_536, 67_108_864 - 65_536));
}

#[tokio::test]
async fn non_message_lines_are_passed_to_the_observer() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let seen = Arc::clone(&seen);
        Arc::new(move |line: &OutputLine<'_>| seen.lock().unwrap().push((line.stream, line.text.to_string())))
    };
    let options = ProcessOptions { on_line: Some(observer), ..ProcessOptions::default() };
    let script = "echo one >&2; printf two >&2; echo Banner; echo '{\"id\":1}'; exit 0";
    let (mut channel, process) = process::spawn(&sh(script), options).unwrap();
    let (messages, _) = end_of(&mut channel).await;
    soon("the end", process.exited()).await;
    assert_eq!(messages, ["{\"id\":1}"]);
    let seen = seen.lock().unwrap();
    let of = |source| seen.iter().filter(|line| line.0 == source).map(|line| &*line.1).collect::<Vec<_>>();
    assert_eq!((of(OutputStream::Stderr), of(OutputStream::Stdout)), (vec!["one", "two"], vec!["Banner"]));
}

#[tokio::test]
async fn shutdown_terminates_a_server_that_does_not_read() {
    let (mut channel, process) = spawn(&sh("exec sleep 1000"));
    let large = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    channel.send(&large);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while channel.poll_flush(&mut cx).is_ready() {
        channel.send(&large);
    }
    assert!(channel.queued() > 0);
    // The channel is held, and not polled any more.
    assert_eq!(soon("the end", process.shut_down()).await, ProcessExit::Signal(15));
    drop(channel);
}

#[tokio::test]
async fn output_before_an_exit_is_fully_received() {
    // As much as a pipe holds, in many short messages, so that reading them exhausts what a task may do in one turn.
    let (mut channel, process) = spawn(&sh("yes '{}' | head -n 20000; exit 6"));
    let (messages, ended) = end_of(&mut channel).await;
    assert_eq!((messages.len(), ended.exit), (20_000, ProcessExit::Code(6)));
    drop(process);
}

#[tokio::test]
async fn dropping_the_channel_closes_the_input_of_the_server() {
    let (channel, process) = spawn(&Command::new("cat"));
    drop(channel);
    assert_eq!(soon("the end", process.exited()).await, ProcessExit::Code(0));
    assert_eq!(process.exit_report().unwrap().cause, ExitCause::Voluntary);
}

#[test]
fn dropping_the_runtime_kills_its_servers() {
    let (runtime, other) = (runtime(), runtime());
    let (watched, process) = runtime.block_on(async {
        let grace = GracePeriods { after_stdin_close: DEADLINE * 10, after_sigterm: DEADLINE * 10 };
        let options = ProcessOptions { grace, ..ProcessOptions::default() };
        let script = "trap '' TERM; sleep 1000 & echo \"{\\\"pids\\\":[$$,$!]}\"; while :; do sleep 1; done";
        let (mut channel, process) = process::spawn(&sh(script), options).unwrap();
        // The task that watches the process must belong to a runtime that continues.
        let _other = other.enter();
        (receive_watched(&mut channel).await, process)
    });
    drop(runtime);
    // On a busy machine the supervisor may be dropped a moment after its runtime.
    let exit = other.block_on(async {
        let exited = async {
            loop {
                match process.exit() {
                    Some(exit) => break exit,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(DEADLINE, exited).await
    });
    assert_eq!(exit.ok(), Some(ProcessExit::Unknown), "no task waits for a server after its supervisor");
    for process in watched {
        other.block_on(process.ended());
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
