//! The decisions of the protocol, as tables.
#![allow(clippy::panic, reason = "a helper that cannot go on fails its test")]

mod envelope;
mod ladder;
mod routes;

use trunkline_protocol::envelope::{Bounds, Incoming, Malformed, read};
use trunkline_protocol::{Message, Request};

/// Reads a single message that must be legible.
fn message(text: &str) -> Message {
    match read(text.to_owned().into(), Bounds::default()) {
        Ok(Incoming::One(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

/// Reads a request that must be legible.
fn request(text: &str) -> Request {
    match message(text) {
        Message::Request(request) => request,
        other => panic!("{text}: {other:?}"),
    }
}

/// Reads a text that must be refused.
fn malformed(bytes: &[u8]) -> Malformed {
    match read(bytes.to_vec().into(), Bounds::default()) {
        Err(malformed) => malformed,
        Ok(read) => panic!("{}: {read:?}", String::from_utf8_lossy(bytes)),
    }
}
