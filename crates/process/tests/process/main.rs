//! Real processes: how they are started, written to and ended, and that no process is left.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is a test"
)]

mod channel;
mod isolation;
mod reaper;
mod resource_usage;
mod run;
mod support;
mod termination;
