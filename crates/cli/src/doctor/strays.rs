use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_client::transport::process::{Line, Source};

use super::report::Report;

/// How much of a line is shown.
const SHOWN: usize = 60;

/// Lines that a program wrote to standard output although they are no messages. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strays(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    lines: usize,
    first: String,
}

impl Strays {
    /// Counts a line, if it is one.
    pub(crate) fn note(&self, line: &Line<'_>) {
        if line.source == Source::Stdout && !line.text.trim().is_empty() {
            let mut counted = self.0.lock();
            counted.lines += 1;
            if counted.lines == 1 {
                counted.first = line.text.trim().chars().take(SHOWN).collect();
            }
        }
    }

    /// Says what there was: we pass it over, and not every client does.
    pub(crate) fn tell(&self, report: &mut Report) {
        let counted = self.0.lock();
        let Counted { lines, first } = &*counted;
        match lines {
            0 => {}
            1 => report.problem("stdout", &format!("a line is no message: {first}")),
            _ => report.problem("stdout", &format!("{lines} lines are no messages, the first: {first}")),
        }
    }
}
