//! Texts of peers, bounded before they enter the ring.

/// The most bytes of a text that a peer chose, such as its name, a reason or a line.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Cuts a text of a peer.
pub(super) fn bounded(text: &str) -> String {
    prefix(text, MAX_TEXT_BYTES).to_owned()
}

/// Returns the beginning of a text, of at most so many bytes.
pub(super) fn prefix(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
