//! Whether anything is left of the programs that were started: they all carry a mark in their environment, and so does
//! whatever they start in turn.

use std::fs;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::{Checked, require};

/// The variable that marks what a run has started.
pub(crate) const MARK: &str = "TRUNKLINE_INTEROP_RUN";

/// Returns a mark that no other run has.
pub(crate) fn mark() -> String {
    let nanoseconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    format!("{}-{nanoseconds}", std::process::id())
}

/// How long the last of what a program left may take to go after it, and how often it is looked.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Fails if processes with this mark stay.
///
/// Child processes may end a moment after the program.
pub(crate) async fn none_stays(mark: &str) -> Checked {
    let deadline = Instant::now() + GONE_WITHIN;
    while Instant::now() < deadline {
        if none_is_left(mark).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    none_is_left(mark)
}

/// Fails if a process with this mark is there; where the system does not show environments, nothing is known.
fn none_is_left(mark: &str) -> Checked {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        // A process that ended meanwhile is as good as one that was never there.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    require(found.is_empty(), format_args!("these are still there: {}", found.join("; ")))
}
