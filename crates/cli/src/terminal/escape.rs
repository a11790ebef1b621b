use std::borrow::Cow;
use std::fmt::Write as _;

/// Makes every character of a peer's text one that only shows: what would steer the terminal, or hide or reorder other
/// text, is written as an escape. Line ends and tabs stay.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    escape_chars(text, |c| is_unsafe_char(c) && c != '\n' && c != '\t')
}

/// Makes a peer's text visible on one line: line ends and tabs are written as escapes too.
pub(crate) fn escape_line(text: &str) -> Cow<'_, str> {
    escape_chars(text, is_unsafe_char)
}

/// Returns the first non-blank line of a peer's text, escaped and with runs of space collapsed.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    escape_line(&line.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Reports whether a character does something else than show itself.
pub(crate) fn is_unsafe_char(c: char) -> bool {
    matches!(c,
        // C0, DEL and C1: the last holds one-character forms of the sequences that begin with ESC.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks that turn the direction of text around.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Line separators that not every program treats as such.
        | '\u{2028}' | '\u{2029}'
        // Invisible characters. Joiners (U+200C, U+200D) and the common variation selectors belong to scripts and emoji.
        | '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        // Tags and the supplementary selectors, in which a whole text can be hidden.
        | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape_chars(text: &str, hazardous: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&hazardous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // The other half of a line end that stays.
            '\r' if rest.peek() == Some(&'\n') && !hazardous('\n') => {}
            c if !hazardous(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_ascii() => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_for_the_terminal_are_shown_and_not_obeyed() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("\x1b]8;;http://evil\x1b\\click", "\\x1b]8;;http://evil\\x1b\\click"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("safe\rerased", "safe\\rerased"),
            ("two\r\nlines", "two\nlines"),
            ("abc\x08\x08", "abc\\x08\\x08"),
            ("user\u{202e}txt.exe", "user\\u{202e}txt.exe"),
            ("hid\u{e0041}den\u{200b}", "hid\\u{e0041}den\\u{200b}"),
            ("Grüße 日本 👩\u{200d}🔧 ❤\u{fe0f}", "Grüße 日本 👩\u{200d}🔧 ❤\u{fe0f}"),
        ] {
            assert_eq!(escape_text(text), shown, "{text:?}");
        }
        assert_eq!(escape_line("a\r\n\tb"), "a\\r\\n\\tb");
    }

    #[test]
    fn first_line_skips_blank_lines() {
        for (text, line) in
            [("\n\n  Adds   two\tnumbers. \nMore.", "Adds two numbers."), ("", ""), ("a\x1b[2J", "a\\x1b[2J")]
        {
            assert_eq!(first_line(text), line, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn escaped_peer_text_never_contains_control_characters(text in any::<String>(), hazards in "[\u{0}-\u{9f}\u{200b}-\u{206f}\u{e0000}-\u{e00ff}]{0,40}") {
            let text = format!("{text}{hazards}{text}");
            prop_assert!(!escape_line(&text).chars().any(is_unsafe_char));
            prop_assert!(!first_line(&text).chars().any(is_unsafe_char));
            prop_assert!(!escape_text(&text).chars().any(|c| is_unsafe_char(c) && c != '\n' && c != '\t'));
        }

        #[test]
        fn printable_text_is_not_escaped(text in "[ -~äöü日本語\n\t]{0,60}") {
            prop_assert_eq!(escape_text(&text), text.as_str());
        }
    }
}
