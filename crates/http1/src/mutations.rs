//! Texts for tests that are nearly what they should be.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Makes texts of which a few bytes are others than in one that is right.
pub(crate) fn mutated(
    right: &'static [&'static [u8]],
    others: &'static [u8],
) -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<Index>(), select(others)), 0..4);
    (select(right), changes).prop_map(|(text, changes)| {
        let mut text = text.to_vec();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text
    })
}
