//! What a client does, whatever the server is.
//!
//! Nothing here opens a socket or starts a program. Time is tokio's paused clock, so that a wait which never ends fails at
//! once instead of hanging the run.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod attribution;
mod features;
mod hostile;
mod illegible;
mod lists;
mod probing;
mod steps;
mod support;
