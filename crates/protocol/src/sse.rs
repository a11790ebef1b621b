//! Server-sent events (WHATWG HTML §9.2), encoded and decoded without IO.
//!
//! [`SseDecoder`] reads a stream in pieces of any size and holds no more than one event of the permitted size.
//! The `write_` functions append to a buffer; no bytes in their arguments can inject further fields or events.
//!
//! # Invariants
//!
//! - An event over the limit is rejected before its end and never buffered whole:
//!   `endless_event_is_refused_before_its_end_and_costs_no_more`.

mod decode;
mod encode;

pub use self::decode::{EventTooLarge, SseDecoder, SseEvent};
pub use self::encode::{write_comment, write_event, write_priming, write_retry};
