//! Server-sent events (WHATWG HTML §9.2), encoded and decoded without IO.
//!
//! [`SseDecoder`] reads a stream in pieces of any size and holds no more than one event of the permitted size.
//! The `write_` functions append to a buffer; no bytes in their arguments can inject further fields or events.
//!
//! # Invariants
//!
//! - An event over the limit is rejected before its end and never buffered whole:
//!   `sse_decoder_rejects_an_endless_event_within_its_memory_limit`.

mod decode;
mod encode;

pub use self::decode::{EventTooLarge, SseDecoder, SseEvent};
pub use self::encode::{write_comment, write_event, write_priming, write_retry};
