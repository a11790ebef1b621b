use trunkline_config::{ServerConfig, StartMode};

use super::{Hub, IdentitySource, ManageError};
use crate::names::NameTemplate;
use crate::options::HubOptions;
use crate::registry::ResourceTools;

impl Hub {
    /// Proxies one server for clients of every revision: names, URIs, identity and capabilities are passed on
    /// unchanged.
    ///
    /// # Errors
    /// The server cannot be connected to.
    pub async fn bridge(mut server: ServerConfig, options: HubOptions) -> Result<Self, ManageError> {
        let options = HubOptions {
            names: NameTemplate::verbatim(),
            resource_tools: ResourceTools::Disabled,
            ..options
        };
        let hub = Self::with_identity_source(options, IdentitySource::Upstream);
        (server.enabled, server.start) = (true, StartMode::Eager);
        match hub.set_servers(vec![server]).await.failed.pop() {
            None => Ok(hub),
            // The first call requests a login of its user.
            Some((server, _)) if hub.inner.awaits_login(server.as_str()) => Ok(hub),
            Some((server, reason)) => Err(ManageError::Unavailable { server, reason, source: None }),
        }
    }
}
