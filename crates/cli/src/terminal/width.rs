use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The assumed width of a terminal that does not report it.
pub(crate) const DEFAULT_COLUMNS: usize = 80;

/// Below this nothing is readable, so that nothing is fitted into less.
const MIN_COLUMNS: usize = 20;

/// Returns how many columns a line takes.
pub(crate) fn display_width(line: &str) -> usize {
    line.width()
}

/// Returns how many columns the terminal has that standard output or standard error is, or the usual number.
pub(crate) fn terminal_columns() -> usize {
    let configured = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked_columns().or(configured).filter(|columns| *columns > 0).unwrap_or(DEFAULT_COLUMNS).max(MIN_COLUMNS)
}

#[cfg(unix)]
fn asked_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout())
        .or_else(|_| rustix::termios::tcgetwinsize(std::io::stderr()));
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn asked_columns() -> Option<usize> {
    None
}

/// Cuts a line to a number of columns, marking that it was cut.
pub(crate) fn truncate_to_width(line: &str, columns: usize) -> String {
    if display_width(line) <= columns {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut width = 0;
    for c in line.chars() {
        width += c.width().unwrap_or(0);
        if width >= columns {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Wraps a line between words; continuation lines are indented.
pub(crate) fn wrap(line: &str, columns: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        let wide = display_width(word);
        if wrapped.is_empty() {
            width = wide;
        } else if width + 1 + wide > columns {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            width = indent + wide;
        } else {
            wrapped.push(' ');
            width += 1 + wide;
        }
        wrapped.push_str(word);
    }
    wrapped
}

/// Wraps the lines of a text that are too long between words. A line of a list, with a gap of two spaces or more, goes on
/// below the text behind the gap.
pub(crate) fn fit_lines(text: &str, columns: usize) -> String {
    let fitted = text.split_inclusive('\n').map(|line| {
        let body = line.strip_suffix('\n').unwrap_or(line);
        if display_width(body) <= columns {
            return line.to_owned();
        }
        let (start, rest) = body.split_at(hanging_indent(body, columns));
        let rest = wrap(rest, columns - start.len(), 0);
        let end = if body.len() < line.len() { "\n" } else { "" };
        format!("{start}{}{end}", rest.replace('\n', &format!("\n{}", " ".repeat(start.len()))))
    });
    fitted.collect()
}

/// Returns where the text of a line begins that goes on below: behind its first gap, or else behind its leading spaces.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let leading = line.len() - line.trim_start_matches(' ').len();
    let gap = line.trim_start_matches(' ').find("  ").map(|at| at + leading);
    let behind = gap.map(|at| line.len() - line.get(at..).unwrap_or_default().trim_start_matches(' ').len());
    behind.filter(|at| *at <= columns / 2 && line.is_char_boundary(*at)).unwrap_or(leading.min(columns / 2))
}

/// Adds spaces until a line takes a number of columns.
pub(crate) fn pad(line: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(display_width(line));
    format!("{line}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_help_are_wrapped_between_words_below_their_text() {
        for (text, fitted) in [
            ("short\n", "short\n"),
            ("one two three four five six\n", "one two three four\nfive six\n"),
            ("  -v  prints all of it here\nend", "  -v  prints all of\n      it here\nend"),
            ("    indented text goes on", "    indented text\n    goes on"),
            ("wonderfulunbreakableword yes", "wonderfulunbreakableword\nyes"),
            ("\n", "\n"),
        ] {
            assert_eq!(fit_lines(text, 20), fitted, "{text:?}");
        }
    }

    #[test]
    fn wide_lines_break_between_words() {
        for (line, columns, expected) in [
            ("f(a: int, b: int)", 80, "f(a: int, b: int)"),
            ("f(a: int, b: int)", 10, "f(a: int,\n    b:\n    int)"),
            ("f(日本: int)", 8, "f(日本:\n    int)"),
            ("much-too-long-for-this x", 10, "much-too-long-for-this\n    x"),
            ("", 10, ""),
        ] {
            assert_eq!(wrap(line, columns, 4), expected, "{line}");
        }
    }

    #[test]
    fn lines_are_cut_to_columns_and_never_within_a_character() {
        for (line, columns, fitted) in [
            ("hello", 5, "hello"),
            ("hello", 4, "hel…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("", 0, ""),
            ("x", 0, "…"),
        ] {
            assert_eq!(truncate_to_width(line, columns), fitted, "{line} {columns}");
        }
    }

    #[test]
    fn wide_characters_count_twice_when_a_line_is_filled_up() {
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(pad("long", 2), "long");
    }
}
