//! The example of a store, held to what every store has to keep.

use trunkline::session::contract;

#[path = "../../../examples/plain_store.rs"]
#[allow(dead_code, reason = "its main is not what is tested")]
mod example;

#[test]
fn the_example_keeps_what_every_store_has_to_keep() {
    contract::sessions(example::PlainStore::new);
}
