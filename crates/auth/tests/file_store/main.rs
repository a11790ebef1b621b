//! A token store in a file, as several processes use it.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod child;
mod crash;
mod error_sources;
mod race;
mod store;
mod token_endpoint;
