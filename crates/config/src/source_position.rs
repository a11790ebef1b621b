use std::fmt;

/// A position in a text, as editors count: from one, and columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl SourcePosition {
    /// Returns the line and column of a byte offset, capped at the end of the text.
    pub(crate) fn from_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let within = before.get(line_start..).unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: within.chars().count() + 1 }
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_positions_count_lines_and_characters_from_one() {
        let text = "a\näöü = 1\r\nlast";
        for (offset, line, column) in [(0, 1, 1), (1, 1, 2), (2, 2, 1), (8, 2, 4), (14, 3, 1), (999, 3, 5)] {
            assert_eq!(
                SourcePosition::from_offset(text, offset),
                SourcePosition { line, column },
                "{offset}"
            );
        }
    }
}
