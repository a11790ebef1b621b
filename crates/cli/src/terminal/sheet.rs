use std::io::IsTerminal as _;

use super::style::Style;
use super::width::terminal_columns;

/// What data are printed on: how wide it is, and what emphasis it can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sheet {
    pub(crate) columns: usize,
    pub(crate) style: Style,
}

/// Nothing is cut for programs that read on.
const ENDLESS: usize = 100_000;

impl Sheet {
    /// Takes standard output.
    pub(crate) fn stdout() -> Self {
        let stdout = std::io::stdout();
        let columns = if stdout.is_terminal() { terminal_columns() } else { ENDLESS };
        Self { columns, style: Style::of(&stdout) }
    }
}
