//! What a hub does with its servers, seen by clients in front of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::unused_async,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod addresses;
mod asking;
mod attribution;
mod by_hand;
mod circles;
mod connecting;
mod content;
mod era_listings;
mod eras;
mod isolation;
mod listing;
mod malformed;
mod naming;
mod ownership;
mod parked;
mod passing;
mod pointing;
mod pooling;
mod programs;
mod refusing;
mod replacing;
mod schemas;
mod storm;
mod strangers;
mod supervision;
mod support;
mod switching;
mod troubles;
mod unbridgeable;
mod views;
mod warnings;
mod watching;
