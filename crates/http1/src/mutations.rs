//! Mutated inputs for property tests.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Generates inputs from valid ones by replacing up to three bytes.
pub(crate) fn mutated(
    valid: &'static [&'static [u8]],
    replacements: &'static [u8],
) -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<Index>(), select(replacements)), 0..4);
    (select(valid), changes).prop_map(|(text, changes)| {
        let mut text = text.to_vec();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text
    })
}
