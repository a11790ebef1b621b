//! Counters of the command itself, which its metrics have beside those of the server.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessCounter {
    /// Log lines beyond the rate of their kind.
    SuppressedLogLines,
    /// Lines of the audit log that could not be written.
    LostAuditLines,
}

static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl ProcessCounter {
    const ALL: [Self; 2] = [Self::SuppressedLogLines, Self::LostAuditLines];

    pub(crate) fn add(self, count: u64) {
        if let Some(counter) = COUNTS.get(self as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(self) -> u64 {
        COUNTS.get(self as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Returns the name of the metric, and its description.
    const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::SuppressedLogLines => (
                "trunkline_log_lines_suppressed_total",
                "Log lines that were suppressed, since too many were alike.",
            ),
            Self::LostAuditLines => {
                ("trunkline_audit_lines_lost_total", "Lines of the audit log that could not be written.")
            }
        }
    }

    /// Writes all counters in the text format of Prometheus.
    pub(crate) fn metrics() -> String {
        let mut text = String::new();
        for counter in Self::ALL {
            let (name, help) = counter.describe();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {}", counter.get());
        }
        text
    }
}
