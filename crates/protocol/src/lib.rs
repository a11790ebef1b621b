//! The Model Context Protocol as pure functions and types.
//!
//! Every revision from 2024-11-05 to 2026-07-28 in both eras: JSON-RPC envelopes, identifiers and sans-IO framing,
//! one superset type per concept, one dialect per revision, and the tables that decide era, version and refusal.
//! Nothing here does IO, reads a clock, or panics on a peer's bytes.
//!
//! # Invariants
//!
//! - No input causes a panic, also if it is truncated at any byte: `every_target_survives_being_cut_short`.
#![forbid(unsafe_code)]

pub mod header;
pub mod line;
pub mod mirror;
pub mod sse;
pub mod template;

pub mod codec;
pub mod emit;
pub mod envelope;
pub mod era;
pub mod error_code;
pub mod json;
mod logging_level;
mod member_case;
pub mod meta;
mod method;
pub mod model;
mod rate_limit;
pub mod refusal;
mod request_id;
mod revision;
mod revision_set;
mod shorten;
pub mod trace;

pub use bytestring::ByteString;

pub use self::envelope::{Message, Notification, Params, Request, Response};
pub use self::json::{JsonObject, JsonWriter, RawJson};
pub use self::logging_level::LoggingLevel;
pub use self::method::Method;
pub use self::refusal::{Incompatibility, Refusal};
pub use self::request_id::RequestId;
pub use self::revision::{Era, Revision};
pub use self::revision_set::RevisionSet;
pub use self::shorten::shorten;
pub use self::trace::TraceContext;
