use std::ops::Range;

/// A replacement of a range of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextEdit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl TextEdit {
    pub(super) fn replace(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }

    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(at..at, text)
    }

    pub(super) fn delete(range: Range<usize>) -> Self {
        Self::replace(range, "")
    }
}

/// Applies all edits at once; their ranges are those of the original text. Everything outside of them is copied.
pub(super) fn apply(text: &str, mut splices: Vec<TextEdit>) -> String {
    splices.sort_by_key(|splice| splice.range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for splice in splices {
        // What overlaps was deleted already.
        let start = splice.range.start.max(done);
        out.push_str(text.get(done..start).unwrap_or_default());
        out.push_str(&splice.text);
        done = splice.range.end.max(start);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// Returns where the line of a range begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Returns where the line after that of a range begins.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|after| after.find('\n')).map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the start and the text of the previous line.
pub(super) fn line_above(text: &str, start: usize) -> Option<(usize, &str)> {
    let end = start.checked_sub(1)?;
    let above = line_start(text, end);
    Some((above, text.get(above..end)?.trim()))
}

/// Returns how lines end in a text.
pub(super) fn newline(text: &str) -> &'static str {
    let first = text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r'));
    if first { "\r\n" } else { "\n" }
}

/// Returns the blanks at the beginning of the line of a range.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    let end = line.find(|c: char| c != ' ' && c != '\t').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_edits_are_applied_together_and_change_nothing_else() {
        let splices = vec![
            TextEdit::insert(9, "!"),
            TextEdit::replace(0..3, "A"),
            TextEdit::delete(4..7),
            TextEdit::delete(5..8),
        ];
        assert_eq!(apply("one two.x", splices), "A x!");
        assert_eq!(apply("same", Vec::new()), "same");
    }
}
