//! One server as a configuration describes it, whatever dialect the file is in.

mod auth;
mod location;
mod name;
mod options;
mod table;
mod tools;

use std::time::Duration;

pub use self::auth::{AuthKind, DpopUse, ServerAuth};
pub use self::location::{LocalProgram, RemoteEndpoint, ServerLocation};
pub use self::name::{ServerName, ServerNameError};
pub use self::options::{ConnectionSharing, ProtocolEra, ProtocolRevision, RemoteTransport, StartMode};
pub(crate) use self::table::{KEYS, ServerTable, obsolete_key_reason, read};
pub use self::tools::{NamePattern, ToolRules};
use crate::call_rate::CallRate;

/// The definition of one server.
///
/// Two are equal if all of their expanded values are. Debug output has no secrets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The name of the server.
    pub name: ServerName,
    /// The program or the URL.
    pub location: ServerLocation,
    /// Whether its tools are exposed. Default yes.
    pub enabled: bool,
    /// Whether the hub is ready only while it is connected. Default no.
    pub required: bool,
    /// The timeout of a call; `None` means the caller's default.
    pub timeout: Option<Duration>,
    /// When it is started. Default on first use.
    pub start: StartMode,
    /// The idle time after which it is stopped; `None` means the caller's default.
    pub idle: Option<Duration>,
    /// The calls of all callers together; `None` means no limit.
    pub rate: Option<CallRate>,
    /// Which callers share one connection to it.
    pub sharing: ConnectionSharing,
    /// The protocol era to use; `None` means that of the client.
    pub era: Option<ProtocolEra>,
    /// The protocol revision to use; `None` leaves the choice to the server.
    pub revision: Option<ProtocolRevision>,
    /// How the tokens that it demands are obtained, if it has a URL.
    pub auth: ServerAuth,
    /// Variables of the caller that it gets, as far as the operator lets callers have them: a program in its
    /// environment, a URL in `X-Env-NAME` headers. Callers with different values use different connections.
    pub caller_env: Vec<String>,
    /// Which of its tools are exposed, and how.
    pub tools: ToolRules,
    /// An unset variable of the definition. Only a disabled server is read despite one, with its variables
    /// unexpanded, and it cannot be used.
    pub unset_variable: Option<String>,
}

impl ServerConfig {
    /// Creates a configuration with everything else at its default.
    pub fn new(name: ServerName, location: ServerLocation) -> Self {
        Self {
            name,
            location,
            enabled: true,
            required: false,
            timeout: None,
            start: StartMode::default(),
            idle: None,
            rate: None,
            sharing: ConnectionSharing::default(),
            era: None,
            revision: None,
            auth: ServerAuth::default(),
            caller_env: Vec::new(),
            tools: ToolRules::default(),
            unset_variable: None,
        }
    }

    /// Reports whether a connection for the one serves the other as well.
    pub fn same_connection(&self, other: &Self) -> bool {
        let identity = |server: &Self| (server.name.clone(), server.sharing, server.unset_variable.clone());
        let protocol = |server: &Self| (server.era, server.revision);
        self.location == other.location
            && self.auth == other.auth
            && self.caller_env == other.caller_env
            && identity(self) == identity(other)
            && protocol(self) == protocol(other)
    }

    /// Reports whether two servers have the same definition as written, with unexpanded variables, in whatever files.
    pub fn same_definition(&self, other: &Self) -> bool {
        let with = |server: &Self| Self {
            location: other.location.clone(),
            auth: server.auth.without_files(),
            ..server.clone()
        };
        self.location.same_definition(&other.location) && with(self) == with(other)
    }
}
