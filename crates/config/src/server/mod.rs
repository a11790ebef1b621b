//! One server as a configuration describes it, whatever dialect the file is in.

mod name;
mod options;
mod reach;
mod table;
mod tools;

use std::time::Duration;

pub use self::name::{ServerName, ServerNameError};
pub use self::options::{ProtocolEra, ProtocolRevision, Share, Start, Wire};
pub use self::reach::{Endpoint, Program, Reach};
pub(crate) use self::table::{KEYS, ServerTable, read, without_effect};
pub use self::tools::{Pattern, ToolRules};

/// One server: how it is reached, and how it is treated.
///
/// Two are equal if everything that they stand for is, variables included. Debug output has no secrets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// What it is called.
    pub name: ServerName,
    /// How it is reached.
    pub reach: Reach,
    /// Whether its tools are offered. Default yes.
    pub enabled: bool,
    /// Whether nothing is served without it. Default no.
    pub required: bool,
    /// How long a call may take; `None` leaves that to whoever calls.
    pub timeout: Option<Duration>,
    /// When it is started. Default when it is first needed.
    pub start: Start,
    /// How long it may be unused before it is stopped; `None` leaves that to whoever starts it.
    pub idle: Option<Duration>,
    /// Who shares one connection to it.
    pub share: Share,
    /// The era in which it is spoken to; `None` leaves that to who is connected.
    pub era: Option<ProtocolEra>,
    /// The revision in which it is spoken to; `None` leaves that to the server.
    pub revision: Option<ProtocolRevision>,
    /// Which of its tools are offered, and how.
    pub tools: ToolRules,
    /// A variable that it needs and that has no value. Only one that is not enabled is read so, with its variables as they
    /// are written, and it cannot be used.
    pub unset: Option<String>,
}

impl ServerConfig {
    /// Makes the configuration of a server with everything else at its default.
    pub fn new(name: ServerName, reach: Reach) -> Self {
        Self {
            name,
            reach,
            enabled: true,
            required: false,
            timeout: None,
            start: Start::default(),
            idle: None,
            share: Share::default(),
            era: None,
            revision: None,
            tools: ToolRules::default(),
            unset: None,
        }
    }

    /// Tells whether a connection that was made for the one serves the other as well.
    pub fn connects_like(&self, other: &Self) -> bool {
        let who = |server: &Self| (server.name.clone(), server.share, server.unset.clone());
        let spoken = |server: &Self| (server.era, server.revision);
        self.reach == other.reach && who(self) == who(other) && spoken(self) == spoken(other)
    }

    /// Tells whether two servers are described in the same words, variables by name, whatever files they are in.
    pub fn is_written_like(&self, other: &Self) -> bool {
        let with = |server: &Self| Self { reach: other.reach.clone(), ..server.clone() };
        self.reach.is_written_like(&other.reach) && with(self) == with(other)
    }
}
