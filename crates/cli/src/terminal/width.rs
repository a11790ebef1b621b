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
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked_columns().or(told).filter(|columns| *columns > 0).unwrap_or(DEFAULT_COLUMNS).max(MIN_COLUMNS)
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

/// Adds spaces until a line takes a number of columns.
pub(crate) fn pad(line: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(display_width(line));
    format!("{line}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_wide_is_broken_between_words() {
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
    fn a_line_is_cut_to_its_columns_and_never_within_a_character() {
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
