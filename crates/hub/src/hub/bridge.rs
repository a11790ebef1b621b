use trunkline_config::{ServerConfig, Start};

use super::{Hub, ManageError, SpeaksFor};
use crate::names::NameTemplate;
use crate::options::HubOptions;
use crate::registry::ResourceTools;

impl Hub {
    /// Connects to one server and stands in for it: names, addresses and what it says of itself are untouched, and clients
    /// of every revision can use it.
    ///
    /// # Errors
    /// The server cannot be connected to.
    pub async fn bridge(mut server: ServerConfig, options: HubOptions) -> Result<Self, ManageError> {
        let options =
            HubOptions { names: NameTemplate::untouched(), resource_tools: ResourceTools::Absent, ..options };
        let hub = Self::speaking(options, SpeaksFor::ItsServer);
        (server.enabled, server.start) = (true, Start::Eager);
        match hub.set_servers(vec![server]).await.failed.pop() {
            None => Ok(hub),
            Some((server, reason)) => Err(ManageError::Unavailable { server, reason }),
        }
    }
}
