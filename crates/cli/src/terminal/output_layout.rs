use std::io::IsTerminal as _;

use super::style::TextStyle;
use super::width::terminal_columns;

/// What data are printed on: how wide it is, and what emphasis it can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputLayout {
    pub(crate) columns: usize,
    pub(crate) style: TextStyle,
}

/// Nothing is cut for programs that read on.
const UNLIMITED_COLUMNS: usize = 100_000;

impl OutputLayout {
    /// Takes standard output.
    pub(crate) fn stdout() -> Self {
        let stdout = std::io::stdout();
        let columns = if stdout.is_terminal() { terminal_columns() } else { UNLIMITED_COLUMNS };
        Self { columns, style: TextStyle::for_stream(&stdout) }
    }
}
