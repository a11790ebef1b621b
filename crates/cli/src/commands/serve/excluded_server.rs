//! Servers of the file that the hub does not have: each is unavailable alone, and everything that shows servers shows the reason.

use trunkline_config::{ConfigProblem, InvalidServer, ServerConfig};

use super::gateway::OWN_SERVER_NAME;

/// A server of the file that the hub leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExcludedServer {
    pub(super) name: String,
    pub(super) cause: ExclusionCause,
    /// Whether the hub is not ready without it.
    pub(super) required: bool,
    /// Its command line or URL, without secrets; empty if the file has none that can be read.
    pub(super) location: String,
    /// What is wrong, where, and what to do about it.
    pub(super) reason: String,
}

/// Why a server is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExclusionCause {
    /// Its definition cannot be used.
    Invalid,
    /// Its command is new or changed, and not trusted.
    Untrusted,
}

impl ExclusionCause {
    /// Returns the state that is displayed for the server.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Untrusted => "untrusted",
        }
    }
}

impl ExcludedServer {
    /// Leaves out a server that the file does not define properly.
    pub(super) fn invalid(server: InvalidServer) -> Self {
        Self {
            name: server.name,
            cause: ExclusionCause::Invalid,
            required: server.required && server.enabled,
            location: server.location.map(|location| location.to_string()).unwrap_or_default(),
            reason: server.problem.to_string(),
        }
    }

    /// Leaves out a server with the name of trunkline's own.
    pub(super) fn reserved_name(server: &ServerConfig, file: &std::path::Path) -> Self {
        let what = format!("the name `{OWN_SERVER_NAME}` is reserved for trunkline's own server");
        let reason = ConfigProblem::new(file, what).server(OWN_SERVER_NAME).to_string();
        Self::readable(server, ExclusionCause::Invalid, reason)
    }

    /// Leaves out a server that the user does not trust yet.
    pub(super) fn untrusted(server: &ServerConfig, file: &str) -> Self {
        let reason = format!("not trusted; review {file}, then run `trunkline trust {file}`");
        Self::readable(server, ExclusionCause::Untrusted, reason)
    }

    fn readable(server: &ServerConfig, cause: ExclusionCause, reason: String) -> Self {
        let (name, location) = (server.name.to_string(), server.location.to_string());
        Self { name, cause, required: server.required && server.enabled, location, reason }
    }
}
