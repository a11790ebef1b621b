//! Cutting bytes into the pieces a peer might send them in.

/// Cuts `bytes` into pieces of the given sizes, over and over; sizes of zero give empty pieces.
pub(crate) fn cut<'b>(bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    if sizes.iter().all(|size| *size == 0) {
        return vec![bytes];
    }
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
