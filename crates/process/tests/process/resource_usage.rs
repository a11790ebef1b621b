//! Tests that look at the whole process, so that no other may run beside them. Each is started by one that is not ignored.

use std::time::Duration;

use trunkline_transport::Command;
use trunkline_transport::process::{RunLimits, child_count, run, run_with_lines, wait_for_background_exits};

use crate::support::{processes_with, sh, soon};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn memory(figure: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(figure)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Counts the children of this process that ended and were not reaped.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(&format!(" Z {own} "))))
        .count()
}

#[tokio::test]
#[ignore = "runs alone"]
async fn flood() {
    const LIMIT: usize = 8 * 1024 * 1024;
    let limits = RunLimits { stdout_bytes: LIMIT, timeout: None, ..RunLimits::default() };
    run(&Command::new("true"), &limits).await.unwrap();
    let before = memory("VmHWM");
    let flood = Command::new("head").args(["-c", "1073741824", "/dev/zero"]);
    let finished = soon("the end", run(&flood, &limits)).await.unwrap();
    let cost = memory("VmHWM") - before;
    assert_eq!(finished.stdout.bytes.len(), LIMIT);
    assert_eq!(finished.stdout.dropped, (1 << 30) - LIMIT as u64);
    assert!(cost <= LIMIT + 1024 * 1024, "{cost} bytes");
}

#[tokio::test]
#[ignore = "runs alone"]
async fn cancelled_runs() {
    const RUNS: usize = 1_000;
    // A sleep duration unique to this test.
    let unique = format!("9{}", std::process::id());
    let limits = RunLimits { kill_after: Duration::from_millis(100), ..RunLimits::default() };
    run(&Command::new("true"), &limits).await.unwrap();
    let before = open_descriptors();
    // Cancelled at once, when it has begun, and when it ignores that.
    let scripts = [
        "sleep $1 & sleep $1",
        "sleep $1 & echo begun; sleep $1",
        "trap '' TERM; echo begun; sleep $1; sleep $1",
    ];
    for number in 0..RUNS {
        let kind = match number % 100 {
            0..50 => 0,
            50..98 => 1,
            _ => 2,
        };
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let mut tell = Some(tell);
        let command = sh(scripts[kind]).arg(&unique);
        let running = run_with_lines(&command, &limits, |_| tell = None);
        tokio::select! {
            finished = running => panic!("it is over: {finished:?}"),
            _ = told, if kind > 0 => {}
            () = tokio::task::yield_now(), if kind == 0 => {}
        }
    }
    soon("all are ended", wait_for_background_exits()).await;
    assert_eq!(processes_with(&unique), Vec::<String>::new());
    assert_eq!((child_count(), zombies()), (0, 0));
    assert_eq!(open_descriptors(), before);
}

#[tokio::test]
#[ignore = "runs alone"]
async fn cheap() {
    let limits = RunLimits::default();
    run(&Command::new("true"), &limits).await.unwrap();
    let mut ballast = vec![1u8; 64 * 1024 * 1024];
    let pages = ballast.len() / 4096;
    let (threads, before) = (threads(), page_faults());
    for _ in 0..3 {
        let finished = run(&Command::new("true").current_dir("/"), &limits).await.unwrap();
        assert!(finished.exit.success());
        // After a copy of the process every page that is written to faults once more.
        ballast.iter_mut().step_by(4096).for_each(|byte| *byte += 1);
    }
    let faults = page_faults() - before;
    assert!(faults < pages / 4, "{faults} page faults, with {pages} pages");
    assert_eq!(self::threads(), threads);
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}
