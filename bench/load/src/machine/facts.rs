//! What a reader must know of the machine to judge a figure.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The machine and the moment of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Tasks that wanted a core over the last minute; above 1 before a run, the figures are noise.
    pub(crate) load_average: String,
    pub(crate) unix_time: u64,
}

/// Collects facts from `/proc`; a field that cannot be read has the reason.
pub(crate) fn facts() -> Facts {
    let unknown = || "unknown".to_owned();
    let read = |path| fs::read_to_string(path).ok();
    let processor = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, name)| name.trim().to_owned())
    });
    let kernel = read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    let load = read("/proc/loadavg").and_then(|text| text.split(' ').next().map(str::to_owned));
    Facts {
        processor: processor.unwrap_or_else(unknown),
        // The generator is pinned, so the standard library would count one.
        cores: read("/proc/cpuinfo").map_or(0, |text| text.matches("\nprocessor").count() + 1),
        kernel: kernel.unwrap_or_else(unknown),
        load_average: load.unwrap_or_else(unknown),
        unix_time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    }
}
