//! Talking to a hub that runs: a socket that only its own user can reach, one line of JSON for each request and each answer.
//!
//! A hub listens at a place that follows from its configuration file, so that whoever knows the file finds the hub.

mod client;
mod place;
mod protocol;
#[cfg(unix)]
mod socket;

pub(crate) use self::client::{AdminError, Hub};
#[cfg(unix)]
pub(crate) use self::place::of_config;
pub(crate) use self::protocol::ServerState;
#[cfg(unix)]
pub(crate) use self::protocol::{Answer, Applied, Problem, ProblemKind, Report, Request};
#[cfg(unix)]
pub(crate) use self::socket::AdminSocket;
