//! CPU time of a process in nanoseconds.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Reads how long a process has been on a core, user and kernel time together.
///
/// `/proc/PID/stat` counts in ticks of 10 ms and `/proc/PID/schedstat` covers one thread, so the threads' own
/// `schedstat` files are summed. A thread that has ended is no longer counted; the measured servers keep theirs.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let tasks = format!("/proc/{pid}/task");
    let mut nanoseconds = 0;
    for task in fs::read_dir(&tasks).with_context(|| format!("the process {pid} has ended"))? {
        let file = task?.path().join("schedstat");
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(file) else { continue };
        nanoseconds +=
            on_core_nanoseconds(&text).with_context(|| format!("unexpected schedstat `{text}`"))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Reads how long the processes that a process started have been on a core, and those that they started.
///
/// Those that have ended are counted in ticks of 10 ms, and only once they were waited for.
pub(crate) fn cpu_time_of_children(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("the process {pid} has ended"))?;
    let mut time = ended_children(&stat).context("unexpected stat")?;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let children = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
            // A child may end between the listing and the reading.
            time += cpu_time(child).unwrap_or_default() + cpu_time_of_children(child).unwrap_or_default();
        }
    }
    Ok(time)
}

/// The fields `cutime` and `cstime`; the name of the program before them may have any characters.
fn ended_children(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace().skip(13);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn on_core_nanoseconds(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_field_of_schedstat_is_the_cpu_time() {
        assert_eq!(on_core_nanoseconds("538248589 833194 70\n"), Some(538_248_589));
        assert_eq!(on_core_nanoseconds(""), None);
    }

    #[test]
    fn stat_has_the_cpu_time_of_ended_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 1 0 9 9 9";
        assert_eq!(ended_children(stat), Some(Duration::from_millis(1500)));
        assert_eq!(ended_children("7 (a"), None);
    }

    #[test]
    fn cpu_time_of_this_process_grows_with_its_work() {
        let before = cpu_time(std::process::id()).unwrap();
        let mut text = String::new();
        while cpu_time(std::process::id()).unwrap() == before {
            assert!(text.len() < 100_000_000, "no CPU time was accounted");
            text.push_str("work to be accounted for");
        }
    }
}
