//! Walks the authorization flow with canned responses, without IO.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod driver;
mod fallback;
mod grants;
mod metadata;
mod registration;
mod responses;
mod step_up;
