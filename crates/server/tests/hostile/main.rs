//! Peers that violate the protocol, over real sockets and pipes: whatever they do, the server responds as documented,
//! holds no more memory than documented, and continues to serve all other peers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod child;
mod connection_limits;
mod cors;
mod drain;
mod floods;
mod foreign_origins;
mod half_closed;
mod http1;
mod large_requests;
mod malformed;
mod malformed_channels;
mod messages;
mod other_services;
mod oversized;
mod raw_http;
mod retention;
mod service;
mod slow_readers;
mod stdio;
mod stores;
mod truncated_connections;
mod unread_memory;
