//! Talking to a hub that runs: a socket that only its own user can reach, one line of JSON for each request and each answer.
//!
//! The path of the socket is derived from the configuration file, so that a client that knows the file finds the hub.

mod client;
mod protocol;
#[cfg(unix)]
mod socket;
mod socket_path;

#[cfg(unix)]
pub(crate) use self::client::EventLines;
pub(crate) use self::client::{AdminClient, AdminError};
#[cfg(unix)]
pub(crate) use self::protocol::{AdminFailure, AdminRequest, AdminResponse, ReloadSummary};
pub(crate) use self::protocol::{AdminFailureKind, HubReport, ServerState, SessionReport, SessionState};
#[cfg(unix)]
pub(crate) use self::socket::AdminSocket;
#[cfg(unix)]
pub(crate) use self::socket_path::admin_socket_path;
