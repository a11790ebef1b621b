//! Bounds of texts that repeat what a server sent: they are stored, logged and shown.

use trunkline_server::UpstreamItem;

/// The suffix of a truncated text.
const TRUNCATION_MARK: &str = "… (cut)";

/// The most bytes of the reason of a failure, with the output of the program.
const MAX_REASON_BYTES: usize = 8 * 1024;

/// The most bytes of a line about an item of a list.
const MAX_LINE_BYTES: usize = 1024;

/// Truncates a text that is too long, at a character boundary; reports whether it was.
pub(super) fn truncate(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    let end = (0..=most.saturating_sub(TRUNCATION_MARK.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text.push_str(TRUNCATION_MARK);
    // Otherwise a few bytes would keep the memory of the whole text.
    text.shrink_to_fit();
    true
}

/// Bounds the reason of a failure.
pub(super) fn bounded_reason(mut text: String) -> String {
    UpstreamItem::Truncated.count(usize::from(truncate(&mut text, MAX_REASON_BYTES)));
    text
}

/// Bounds a line about an item of a list.
pub(super) fn bounded_line(mut text: String) -> String {
    UpstreamItem::Truncated.count(usize::from(truncate(&mut text, MAX_LINE_BYTES)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character_boundary_within_the_bound() {
        for (text, most, expected) in [
            ("short".to_owned(), 5, "short"),
            ("é".repeat(20), 20, "ééééé… (cut)"),
            ("x".repeat(20), 0, "… (cut)"),
        ] {
            let mut cut = text.clone();
            assert_eq!(truncate(&mut cut, most), cut != text);
            assert_eq!(cut, expected);
        }
        assert_eq!(bounded_reason("x".repeat(1 << 20)).len(), MAX_REASON_BYTES);
        assert!(bounded_line("x".repeat(1 << 20)).capacity() <= MAX_LINE_BYTES);
    }
}
