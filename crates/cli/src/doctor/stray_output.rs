use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_client::transport::process::{OutputLine, OutputStream};

use super::report::DoctorReport;

/// How much of a line is shown.
const SHOWN_COLUMNS: usize = 60;

/// Lines that a program wrote to standard output and that are not messages. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct StrayOutput(Arc<Mutex<StrayLineCount>>);

#[derive(Debug, Default)]
struct StrayLineCount {
    lines: usize,
    first: String,
}

impl StrayOutput {
    /// Counts a line, if it is one.
    pub(crate) fn record(&self, line: &OutputLine<'_>) {
        if line.stream == OutputStream::Stdout && !line.text.trim().is_empty() {
            let mut counted = self.0.lock();
            counted.lines += 1;
            if counted.lines == 1 {
                counted.first = line.text.trim().chars().take(SHOWN_COLUMNS).collect();
            }
        }
    }

    /// Reports the stray lines: this client skips them, but not every client does.
    pub(crate) fn add_to_report(&self, report: &mut DoctorReport) {
        let counted = self.0.lock();
        let StrayLineCount { lines, first } = &*counted;
        match lines {
            0 => {}
            1 => report.problem("stdout", &format!("1 line on stdout is not JSON-RPC: {first}")),
            _ => {
                report
                    .problem("stdout", &format!("{lines} lines on stdout are not JSON-RPC; first: {first}"));
            }
        }
    }
}
