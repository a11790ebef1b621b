//! The decisions of the protocol, as tables.
#![allow(clippy::panic, reason = "a helper that cannot go on fails its test")]

mod envelope;
mod request_validation;
mod routes;

use trunkline_protocol::envelope::{MalformedMessage, MessageLimits, MessageOrBatch, read};
use trunkline_protocol::{Message, Request};

/// Reads a single message that must be legible.
fn message(text: &str) -> Message {
    match read(text.to_owned().into(), MessageLimits::default()) {
        Ok(MessageOrBatch::One(message)) => message,
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
fn malformed(bytes: &[u8]) -> MalformedMessage {
    match read(bytes.to_vec().into(), MessageLimits::default()) {
        Err(malformed) => malformed,
        Ok(read) => panic!("{}: {read:?}", String::from_utf8_lossy(bytes)),
    }
}
