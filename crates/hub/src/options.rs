use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_config::CallRate;
use trunkline_protocol::model::Implementation;

use crate::access::AccessRules;
use crate::connector::{ConfigConnector, Connector};
use crate::limits::HubLimits;
use crate::login::UserLogins;
use crate::names::NameTemplate;
use crate::registry::ResourceTools;
use crate::upstream_sessions::UpstreamSessions;

/// Options of a hub: identity, naming, connecting and limits.
#[derive(Clone)]
pub struct HubOptions {
    /// The implementation name and version sent to clients. Default `trunkline` and its version.
    pub identity: Implementation,
    /// The implementation name and version sent to upstreams. Default the same.
    pub client_identity: Implementation,
    /// How tools and prompts are named. Default `server__tool`.
    pub names: NameTemplate,
    /// Whether agents that know only tools can list and read resources. Default yes.
    pub resource_tools: ResourceTools,
    /// The file in which listings are cached for the next run, so that clients are served from it until the upstreams
    /// have started. Default none.
    pub listings_file: Option<PathBuf>,
    /// Opens connections to servers. Default [`ConfigConnector`].
    pub connector: Arc<dyn Connector>,
    /// Whether clients without credentials share connections and state. Default isolated.
    pub anonymous: AnonymousClients,
    /// Whether the principal [`Process`](trunkline_session::Principal::Process) has the hub to itself. Default yes.
    pub process: ProcessCaller,
    /// Which callers may use what; [`Hub::set_access`](crate::Hub::set_access) replaces the rules later. Default none, so
    /// that every caller may use everything.
    pub access: AccessRules,
    /// The calls that each caller may make; [`Hub::set_caller_rate`](crate::Hub::set_caller_rate) replaces it later.
    /// Default no limit.
    pub caller_rate: Option<CallRate>,
    /// How users log in to servers that demand it. Default not at all: such a server is unavailable.
    pub logins: Option<UserLogins>,
    /// Stores the sessions with servers over Streamable HTTP, so that the next run continues them. Default not: they end
    /// with the hub.
    pub upstream_sessions: Option<UpstreamSessions>,
    /// The bounds.
    pub limits: HubLimits,
}

/// Whether [anonymous](trunkline_session::Principal::Anonymous) clients, those of a server without authentication,
/// share connections and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousClients {
    /// They may be different users and share no server-side state: each session or connection has its own, and so has
    /// each call without either. The default.
    #[default]
    Isolated,
    /// All of them are the one user of this machine. Correct only if no other user can reach the hub, such as on the
    /// loopback interface without a proxy in front of it.
    SingleUser,
}

/// Who the principal [`Process`](trunkline_session::Principal::Process) is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessCaller {
    /// The only caller, such as the client on the other end of stdio. The default.
    #[default]
    Alone,
    /// An operator beside users: what a server lists in the operator's session is not shown to them.
    Operator,
}

impl Default for HubOptions {
    fn default() -> Self {
        let identity = Implementation::new("trunkline", env!("CARGO_PKG_VERSION"));
        Self {
            client_identity: identity.clone(),
            identity,
            names: NameTemplate::hub(),
            resource_tools: ResourceTools::default(),
            listings_file: None,
            connector: Arc::new(ConfigConnector::default()),
            anonymous: AnonymousClients::default(),
            process: ProcessCaller::default(),
            access: AccessRules::default(),
            caller_rate: None,
            logins: None,
            upstream_sessions: None,
            limits: HubLimits::default(),
        }
    }
}

impl fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubOptions")
            .field("identity", &self.identity)
            .field("names", &self.names)
            .field("resource_tools", &self.resource_tools)
            .field("anonymous", &self.anonymous)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
