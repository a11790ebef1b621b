//! One server as a configuration describes it, whatever dialect the file is in.

mod location;
mod name;
mod options;
mod table;
mod tools;

use std::time::Duration;

pub use self::location::{LocalProgram, RemoteEndpoint, ServerLocation};
pub use self::name::{ServerName, ServerNameError};
pub use self::options::{ConnectionSharing, ProtocolEra, ProtocolRevision, RemoteTransport, StartMode};
pub(crate) use self::table::{KEYS, ServerTable, obsolete_key_reason, read};
pub use self::tools::{NamePattern, ToolRules};

/// One server: how it is reached, and how it is treated.
///
/// Two are equal if everything that they stand for is, variables included. Debug output has no secrets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// What it is called.
    pub name: ServerName,
    /// How it is reached.
    pub location: ServerLocation,
    /// Whether its tools are offered. Default yes.
    pub enabled: bool,
    /// Whether nothing is served without it. Default no.
    pub required: bool,
    /// How long a call may take; `None` leaves that to whoever calls.
    pub timeout: Option<Duration>,
    /// When it is started. Default when it is first needed.
    pub start: StartMode,
    /// How long it may be unused before it is stopped; `None` leaves that to whoever starts it.
    pub idle: Option<Duration>,
    /// Who shares one connection to it.
    pub sharing: ConnectionSharing,
    /// The era in which it is spoken to; `None` leaves that to who is connected.
    pub era: Option<ProtocolEra>,
    /// The revision in which it is spoken to; `None` leaves that to the server.
    pub revision: Option<ProtocolRevision>,
    /// Which of its tools are offered, and how.
    pub tools: ToolRules,
    /// A variable that it needs and that has no value. Only one that is not enabled is read so, with its variables as they
    /// are written, and it cannot be used.
    pub unset_variable: Option<String>,
}

impl ServerConfig {
    /// Makes the configuration of a server with everything else at its default.
    pub fn new(name: ServerName, reach: ServerLocation) -> Self {
        Self {
            name,
            location: reach,
            enabled: true,
            required: false,
            timeout: None,
            start: StartMode::default(),
            idle: None,
            sharing: ConnectionSharing::default(),
            era: None,
            revision: None,
            tools: ToolRules::default(),
            unset_variable: None,
        }
    }

    /// Tells whether a connection that was made for the one serves the other as well.
    pub fn same_connection(&self, other: &Self) -> bool {
        let who = |server: &Self| (server.name.clone(), server.sharing, server.unset_variable.clone());
        let spoken = |server: &Self| (server.era, server.revision);
        self.location == other.location && who(self) == who(other) && spoken(self) == spoken(other)
    }

    /// Tells whether two servers are described in the same words, variables by name, whatever files they are in.
    pub fn same_definition(&self, other: &Self) -> bool {
        let with = |server: &Self| Self { location: other.location.clone(), ..server.clone() };
        self.location.same_definition(&other.location) && with(self) == with(other)
    }
}
