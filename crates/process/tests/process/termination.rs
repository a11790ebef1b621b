//! How servers end, with everything that they started.

use std::time::Duration;

use trunkline_transport::process::{
    self, GracePeriods, ProcessExit, ProcessOptions, wait_for_background_exits,
};

use crate::support::{Watched, receive, receive_watched, sh, soon, spawn};

/// Prints the ids of its processes, and waits for the end of its input.
const LEADER: &str = "echo \"{\\\"pids\\\":[$$,$!]}\"; ";

#[tokio::test]
async fn shutdown_terminates_all_descendants_however_the_server_reacts() {
    // What it is, and how its leader ends.
    let table = [
        // It ends when its input does; what it started is ended with it.
        (format!("sleep 1000 & {LEADER} cat; exit 0"), ProcessExit::Code(0)),
        (format!("sleep 1000 >/dev/null 2>&1 </dev/null & {LEADER} cat; exit 0"), ProcessExit::Code(0)),
        // It ignores its input, and ends with SIGTERM.
        (format!("sleep 1000 & {LEADER} wait"), ProcessExit::Signal(15)),
        // A grandchild beyond a child, a session of its own, and job control.
        (format!("sh -c 'sleep 1000; true' & {LEADER} wait"), ProcessExit::Signal(15)),
        (format!("setsid sleep 1000 & {LEADER} wait"), ProcessExit::Signal(15)),
        (format!("set -m; sleep 1000 & {LEADER} wait"), ProcessExit::Signal(15)),
        // It ignores that too, and so does what it started.
        (format!("trap '' TERM; sleep 1000 & {LEADER} while :; do sleep 1; done"), ProcessExit::Signal(9)),
        (
            format!("trap '' TERM; setsid sleep 1000 & {LEADER} while :; do sleep 1; done"),
            ProcessExit::Signal(9),
        ),
    ];
    let rows = table.map(async |(script, exit)| {
        let (mut channel, process) = spawn(&sh(&script));
        let watched = receive_watched(&mut channel).await;
        let (ended, _) = tokio::join!(soon(&script, process.shut_down()), receive(&mut channel));
        assert_eq!(ended, exit, "{script}");
        for process in &watched {
            process.ended().await;
        }
    });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn holders_of_output_pipes_are_killed_after_a_voluntary_exit() {
    let table = [
        "sleep 1000",
        "setsid sleep 1000",
        "setsid sleep 1000 2>/dev/null",
        "setsid sleep 1000 >/dev/null",
        "sleep 1000 >/dev/null 2>&1",
    ];
    let rows = table.map(async |stray| {
        let (mut channel, process) = spawn(&sh(&format!("{stray} & {LEADER} read line; exit 3")));
        let watched = receive_watched(&mut channel).await;
        drop(channel);
        assert_eq!(soon(stray, process.exited()).await, ProcessExit::Code(3), "{stray}");
        for process in &watched {
            process.ended().await;
        }
    });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn dropping_the_handle_terminates_the_server_in_the_background() {
    for script in [
        format!("sleep 1000 & {LEADER} cat; exit 0"),
        format!("trap '' TERM; sleep 1000 & {LEADER} while :; do sleep 1; done"),
    ] {
        let (mut channel, process) = spawn(&sh(&script));
        let watched = receive_watched(&mut channel).await;
        drop(process);
        assert!(receive(&mut channel).await.is_none(), "an end that was asked for is no error");
        for process in &watched {
            process.ended().await;
        }
        soon("all are ended", wait_for_background_exits()).await;
    }
}

#[tokio::test]
async fn dropped_shutdown_continues_in_the_background() {
    let (mut channel, process) =
        spawn(&sh(&format!("trap '' TERM; sleep 1000 & {LEADER} while :; do sleep 1; done")));
    let watched = receive_watched(&mut channel).await;
    drop(tokio::time::timeout(Duration::ZERO, process.shut_down()).await);
    for process in &watched {
        process.ended().await;
    }
}

#[tokio::test]
async fn server_that_exits_within_its_grace_period_gets_no_signal() {
    let options = ProcessOptions {
        grace: GracePeriods { after_stdin_close: crate::support::DEADLINE, after_sigterm: Duration::ZERO },
        ..ProcessOptions::default()
    };
    let script = "trap 'exit 99' TERM; echo \"{\\\"pids\\\":[$$]}\"; cat; exit 5";
    let (mut channel, process) = process::spawn(&sh(script), options).unwrap();
    let watched: Vec<Watched> = receive_watched(&mut channel).await;
    let (exit, _) = tokio::join!(soon("the end", process.shut_down()), receive(&mut channel));
    assert_eq!(exit, ProcessExit::Code(5));
    watched[0].ended().await;
}
