//! What tests of several crates need. Crates have it as a dev-dependency only, so it is never part of a program
//! (`every_crate_uses_only_crates_of_lower_layers`), and it depends on nothing.

mod memory;
mod wake_counter;

pub use self::memory::{peak_bytes, resident_bytes};
pub use self::wake_counter::WakeCounter;
