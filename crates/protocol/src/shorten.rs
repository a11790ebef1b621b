/// The most characters of a peer's text that we repeat to it.
const MAX_CHARACTERS: usize = 128;

/// Truncates a text of a peer, or one that contains it, for an error message.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS).and_then(|(at, _)| text.get(..at)) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorten_truncates_long_texts_at_character_boundaries() {
        for (length, expected) in [
            (MAX_CHARACTERS, MAX_CHARACTERS),
            (MAX_CHARACTERS + 1, MAX_CHARACTERS + 1),
            (MAX_CHARACTERS * 50, MAX_CHARACTERS + 1),
        ] {
            assert_eq!(shorten(&"é".repeat(length)).chars().count(), expected, "{length}");
        }
        assert_eq!(shorten("short"), "short");
    }
}
