//! Nothing outlives us, whatever becomes of us.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use trunkline_transport::process::{RunLimits, run_with_lines};

use crate::support::{Watched, alone, itself, processes_with, receive, sh, soon, spawn};

/// The scripts that the parent runs, as a server and as a command. Each prints the ids of its processes.
const SERVERS: [&str; 5] = [
    "sleep 1000 & echo \"{\\\"pids\\\":[$$,$!]}\"; wait",
    // It does not notice that its input ends, nor does it heed a request.
    "trap '' TERM; sleep 1000 & echo \"{\\\"pids\\\":[$$,$!]}\"; while :; do sleep 1; done",
    // A session of its own, below a parent that lives.
    "setsid sh -c 'sleep 1000; true' & echo \"{\\\"pids\\\":[$$,$!]}\"; wait",
    // Job control, with outputs that are elsewhere.
    "set -m; sleep 1000 >/dev/null 2>&1 & echo \"{\\\"pids\\\":[$$,$!]}\"; wait",
    // A daemon that kept its standard error: in a session of its own, and its parents are gone.
    "D=$(setsid sh -c 'sleep 1000 >/dev/null & echo $!'); echo \"{\\\"pids\\\":[$$,$D]}\"; wait; cat",
];

const COMMAND: &str = "sleep 1000 & echo $$; echo $!; wait";

#[tokio::test]
#[ignore = "is the parent that is killed"]
async fn parent() {
    let mut held = Vec::new();
    for script in SERVERS {
        let (mut channel, process) = spawn(&sh(script));
        println!("{}", receive(&mut channel).await.unwrap().unwrap());
        held.push((channel, process));
    }
    let command = sh(COMMAND);
    let limits = RunLimits::default();
    let run = run_with_lines(&command, &limits, |line| println!("{{\"pids\":[{}]}}", line.text));
    run.await.unwrap();
}

#[allow(clippy::zombie_processes, reason = "a test that panics here ends, and the parent with it")]
/// Starts the parent, and watches its children and grandchildren.
fn start() -> (Child, Vec<Watched>) {
    let mut parent = itself("reaper::parent").spawn().unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut watched = Vec::new();
    for line in lines {
        if let Some(list) = line.split("{\"pids\":[").nth(1) {
            watched.extend(list.split([',', ']', '}']).filter(|id| !id.is_empty()).map(Watched::new));
        }
        if watched.len() == 2 * SERVERS.len() + 2 {
            return (parent, watched);
        }
    }
    panic!("the parent ended after {} processes", watched.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_parent_kills_children_and_grandchildren() {
    let (mut parent, watched) = tokio::task::block_in_place(start);
    assert!(watched.iter().all(Watched::is_alive));
    let guard = guard_of(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    for process in &watched {
        process.ended().await;
    }
    guard.ended().await;
}

#[tokio::test]
#[ignore = "is the parent that is killed"]
async fn prolific_parent() {
    let unique = std::env::var("UNIQUE").unwrap();
    println!("begun");
    let limits = RunLimits::default();
    let command = sh("sleep $1 & setsid sleep $1 & wait").arg(unique);
    let starting = std::iter::repeat_with(|| async {
        let run = run_with_lines(&command, &limits, |_| {});
        // Some are cancelled, so that children are ended while others start.
        tokio::time::timeout(std::time::Duration::from_millis(20), run).await.unwrap_err();
    });
    futures_util::future::join_all(starting.take(500)).await;
    println!("over");
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_parent_during_spawns_and_exits_leaves_no_child() {
    for round in 0..20 {
        let unique = format!("8{}{round:02}", std::process::id());
        let mut parent = itself("reaper::prolific_parent").env("UNIQUE", &unique).spawn().unwrap();
        let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("begun")));
        // Killed whenever the scheduler gets to it, a little later each round; the guard exists from the first child on.
        let guard = wait_for_guard(parent.id()).await;
        tokio::time::sleep(std::time::Duration::from_millis(3 * round)).await;
        parent.kill().unwrap();
        parent.wait().unwrap();
        guard.ended().await;
        assert_eq!(processes_with(&unique), Vec::<String>::new());
    }
}

#[test]
fn killed_reaper_is_replaced() {
    alone("reaper::replaced");
}

#[tokio::test]
#[ignore = "runs alone"]
async fn replaced() {
    let (mut channel, _process) = spawn(&sh(SERVERS[0]));
    receive(&mut channel).await.unwrap().unwrap();
    let first = guard_of(std::process::id());
    first.kill();
    first.ended().await;
    let (mut channel, _process) = spawn(&sh(SERVERS[0]));
    receive(&mut channel).await.unwrap().unwrap();
    assert!(guard_of(std::process::id()).is_alive());
}

#[test]
fn reaper_holds_no_descriptors_of_its_parent() {
    alone("reaper::bare");
}

#[tokio::test]
#[ignore = "runs alone"]
async fn bare() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let (mut channel, _process) = spawn(&sh(SERVERS[0]));
    receive(&mut channel).await.unwrap().unwrap();
    let guard = guard_of(std::process::id());
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", guard.id())).unwrap();
    let mut kinds: Vec<String> = descriptors
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .map(|target| target.split([':', ' ']).next().unwrap().to_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["/memfd", "socket"]);
    // It is in a session and a folder of its own.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", guard.id())).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, guard.id().to_string());
    assert_eq!(std::fs::read_link(format!("/proc/{}/cwd", guard.id())).unwrap().to_str(), Some("/"));
    // Its command line is not that of its parent, which `ps` would show twice.
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", guard.id())).unwrap();
    assert_eq!(line.trim_end_matches('\0'), "trunkline-guard");
    let ours = std::fs::read_to_string("/proc/self/cmdline").unwrap();
    assert!(ours.contains("reaper::bare"), "{ours}");
    drop(writer);
}

/// Waits until a process has a guard.
async fn wait_for_guard(parent: u32) -> Watched {
    let found = async {
        loop {
            match find_guard(parent) {
                Some(guard) => break guard,
                None => tokio::task::yield_now().await,
            }
        }
    };
    soon("a guard", found).await
}

fn guard_of(parent: u32) -> Watched {
    find_guard(parent).expect("there is a guard")
}

/// Finds the guard of a process.
fn find_guard(parent: u32) -> Option<Watched> {
    let found = std::fs::read_dir("/proc").unwrap().flatten().find(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        name.ends_with("(trunkline-guard") && rest.split_whitespace().nth(1) == Some(&parent.to_string())
    });
    Some(Watched::new(&found?.file_name().to_string_lossy()))
}
