//! Sessions, events and handler state in one file, which survive a restart of the process.
//!
//! [`FileStore`] opens the file and gives the three stores: [`FileSessions`], [`FileEvents`] and [`FileStates`]. All
//! content is also in memory, within the limits of the stores in memory, and reads come from there. A change is made in
//! memory, then written by one thread, and acknowledged when it is on disk; all changes that arrive during one commit
//! share the next one. One process has the file at a time.
//!
//! What a loss of power can cost: nothing that was acknowledged. The times of last use may be behind by the granularity
//! of the clocks, for which every session gets that much more time after a restart; and an expired or forgotten record
//! may come back, and then expires again.
//!
//! # Invariants
//!
//! - The stores keep the contracts: `file_sessions_pass_the_contract_suite`, `file_events_pass_the_contract_suite`,
//!   `file_states_pass_the_contract_suite`.
//! - What was acknowledged survives a killed process, and what was deleted stays deleted:
//!   `acknowledged_changes_survive_a_killed_process`.
//! - A disk that fails and recovers loses nothing that was acknowledged: `failed_writes_are_refused_and_made_up_for`.
//! - A file that was cut off or overwritten is refused, or read as far as it is intact, and nothing panics:
//!   `file_that_was_cut_off_is_refused_and_nothing_panics`, `file_that_was_overwritten_in_part_never_has_another_content`.
//! - A creation that was interrupted begins again: `creation_that_was_interrupted_at_any_step_begins_again`.
//! - The file shows no id and no content: `file_contains_neither_ids_nor_content`.
#![forbid(unsafe_code)]

mod database_file;
mod error;
#[cfg(test)]
mod failing_disk;
mod file_events;
mod file_sessions;
mod file_states;
mod file_store;
mod row;
mod store_core;
mod tables;
mod write_queue;

use std::time::Duration;

pub use self::error::FileStoreError;
pub use self::file_events::FileEvents;
pub use self::file_sessions::FileSessions;
pub use self::file_states::FileStates;
pub use self::file_store::{FileStore, FileStoreLimits};

/// Returns how far a recorded time of last use may be behind, for a limit on idleness.
fn clock_granularity(idle: Duration) -> Duration {
    idle / 16
}
