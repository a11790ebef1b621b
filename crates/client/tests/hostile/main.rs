//! Servers that break the rules: every call ends with an error that names the violation, within its
//! deadline; nothing is left behind, and calls that they do answer are unharmed.
//!
//! Most of them are scripts at the other end of a channel in memory, with a paused clock. Hostile processes are this
//! test program, started once more.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod answers;
mod child;
mod cursors;
mod deaths;
mod floods;
mod peer;
mod processes;
mod questions;
mod silence;
