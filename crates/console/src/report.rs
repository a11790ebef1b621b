use std::fmt;

use serde::Serialize;

use crate::sessions::ConsoleRole;

/// A server of the hub, for the overview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleServer {
    /// Its name in the configuration.
    pub name: String,
    /// Its connection state, such as `ready`.
    pub state: String,
    /// Why it is not available, or why it last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The negotiated revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport, such as `stdio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// How often it was connected.
    pub starts: u64,
    /// The tools of its last listing.
    pub tools: usize,
}

/// Where the console learns of the servers.
pub trait ServerReports: fmt::Debug + Send + Sync {
    /// Returns the state of every server.
    fn servers(&self) -> Vec<ConsoleServer>;
}

/// What the page learns of the hub.
#[derive(Debug, Serialize)]
pub(crate) struct ConsoleReport<'a> {
    pub(crate) version: &'a str,
    /// The URL of the MCP endpoint.
    pub(crate) endpoint: &'a str,
    pub(crate) role: ConsoleRole,
    /// Whether the session sees everything, or else a user's own calls only.
    pub(crate) sees_all: bool,
    /// Whether there is a stream of events, or else a record file.
    pub(crate) live: bool,
    pub(crate) servers: Vec<ConsoleServer>,
}
