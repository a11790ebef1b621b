//! Whether anything is left of the programs that were started: they all carry a mark in their environment, and so does
//! whatever they start in turn.

use std::fs;

use crate::report::{Checked, require};

/// The variable that marks what a run has started.
pub(crate) const MARK: &str = "TRUNKLINE_INTEROP_RUN";

/// Returns a mark that no other run has.
pub(crate) fn mark() -> String {
    let nanoseconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    format!("{}-{nanoseconds}", std::process::id())
}

/// Fails if a process with this mark is there; where the system does not show environments, nothing is known.
pub(crate) fn none_is_left(mark: &str) -> Checked {
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
