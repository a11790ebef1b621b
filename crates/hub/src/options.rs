use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_protocol::model::Implementation;

use crate::connector::{ConfigConnector, Connector};
use crate::limits::HubLimits;
use crate::names::NameTemplate;
use crate::registry::ResourceTools;

/// How a hub presents its servers, and how it deals with them.
#[derive(Clone)]
pub struct HubOptions {
    /// What the hub calls itself to its clients. Default `trunkline` and its version.
    pub identity: Implementation,
    /// What it calls itself to its servers. Default the same.
    pub client_identity: Implementation,
    /// How tools and prompts are named. Default `server__tool`.
    pub names: NameTemplate,
    /// Whether agents that know only tools can list and read resources. Default yes.
    pub resource_tools: ResourceTools,
    /// Where listings are kept for the next run, in which clients are served from them until the servers have started. Default
    /// nowhere.
    pub catalogue_file: Option<PathBuf>,
    /// How servers are connected to. Default as their configuration says.
    pub connector: Arc<dyn Connector>,
    /// Who clients without credentials are to each other. Default strangers.
    pub anonymous: AnonymousClients,
    /// The bounds.
    pub limits: HubLimits,
}

/// Who clients are to each other that are all [anonymous](trunkline_session::Principal::Anonymous), since no credentials were asked
/// for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousClients {
    /// They may be anyone, and share nothing that a server keeps: each session or connection has its own, and so has each
    /// call that comes without either. The default.
    #[default]
    Isolated,
    /// All of them are the one person whose machine it is. Right where only that person can reach the hub, such as on the
    /// loopback without a proxy in front of it.
    SingleUser,
}

impl Default for HubOptions {
    fn default() -> Self {
        let identity = Implementation::new("trunkline", env!("CARGO_PKG_VERSION"));
        Self {
            client_identity: identity.clone(),
            identity,
            names: NameTemplate::hub(),
            resource_tools: ResourceTools::default(),
            catalogue_file: None,
            connector: Arc::new(ConfigConnector::default()),
            anonymous: AnonymousClients::default(),
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
