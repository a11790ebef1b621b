//! What a hub does with its servers, seen by clients in front of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::unused_async,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod access;
mod addresses;
mod anonymous_clients;
mod asking;
mod attribution;
mod authorization;
mod caller_effects;
mod connecting;
mod content;
mod counted_items;
mod era_listings;
mod eras;
mod failing_servers;
mod forwarding;
mod hosts;
mod isolation;
mod library;
mod linked_resources;
mod listing;
mod listing_bounds;
mod loops;
mod malformed;
mod manual_control;
mod message_memory;
mod naming;
mod ownership;
mod pooling;
mod private_lists;
mod programs;
mod rates;
mod readable_messages;
mod refusing;
mod replacing;
mod schemas;
mod session_roots;
mod stored_sessions;
mod stress;
mod supervision;
mod support;
mod suspended_calls;
mod switching;
mod unbridgeable;
mod unreadable_replies;
mod views;
mod warnings;
mod watching;
