//! Talking to a hub that runs: a socket that only its own user can reach, one line of JSON for each request and each answer.
//!
//! A hub listens at a place that follows from its configuration file, so that whoever knows the file finds the hub.

// The commands that act on a running hub are its users.
#[allow(dead_code, reason = "what is not used yet is used by commands to come")]
mod client;
#[allow(dead_code, reason = "what is not used yet is used by commands to come")]
mod place;
#[allow(dead_code, reason = "what is not used yet is used by commands to come")]
mod protocol;

#[allow(unused_imports, reason = "what is not used yet is used by commands to come")]
pub(crate) use self::client::{AdminError, Hub};
#[allow(unused_imports, reason = "what is not used yet is used by commands to come")]
pub(crate) use self::protocol::{Applied, ServerState};
