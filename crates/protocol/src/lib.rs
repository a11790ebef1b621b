//! The Model Context Protocol as pure functions and types.
//!
//! Nothing here does IO, reads a clock, or panics on a peer's bytes.
#![forbid(unsafe_code)]

pub mod header;
pub mod line;
pub mod mirror;
pub mod sse;
pub mod template;
