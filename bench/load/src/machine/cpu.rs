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

fn on_core_nanoseconds(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_of_schedstat_is_the_time_on_a_core() {
        assert_eq!(on_core_nanoseconds("538248589 833194 70\n"), Some(538_248_589));
        assert_eq!(on_core_nanoseconds(""), None);
    }

    #[test]
    fn the_time_of_this_process_grows_with_its_work() {
        let before = cpu_time(std::process::id()).unwrap();
        let mut text = String::new();
        while cpu_time(std::process::id()).unwrap() == before {
            assert!(text.len() < 100_000_000, "no CPU time was accounted");
            text.push_str("work to be accounted for");
        }
    }
}
