use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{
    ConnectionSharing, LocalProgram, ServerConfig, ServerLocation, ServerName, StartMode,
};
use trunkline_server::{Handler, Host, HostOptions, ServerHandle, StateKeysError};

use crate::connector::{ConfigConnector, Connector};

/// A [`Connector`] for servers within this process, beside those of a configuration.
///
/// The tools of such a server may be added and removed while the hub runs ([`ServerHandle::add`],
/// [`ServerHandle::remove_tool`]), and clients are notified. They keep their names, without the prefix of a server, and
/// their handlers see the caller of the hub.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use trunkline_hub::config::ServerName;
/// use trunkline_hub::{Hub, HubOptions, LocalServers};
/// use trunkline_server::{Server, Tool};
///
/// let own = Server::new("own").advertise_tools().handle()?;
/// let local = Arc::new(LocalServers::default());
/// let config = local.add(ServerName::parse("own")?, &own)?;
/// let hub = Hub::new(HubOptions { connector: local, ..HubOptions::default() });
/// hub.set_servers(vec![config]).await;
/// own.add(Tool::new("hello").description("Returns a greeting.").run(async || "hello"))?;
/// # Ok(()) }
/// ```
pub struct LocalServers {
    servers: RwLock<HashMap<ServerName, LocalServer>>,
    others: Arc<dyn Connector>,
}

#[derive(Clone)]
struct LocalServer {
    handle: ServerHandle,
    /// Serves the hub, which lists it like any other server.
    host: Host,
}

impl LocalServers {
    /// Connects to servers that are not in this process with another connector.
    pub fn with_others(others: Arc<dyn Connector>) -> Self {
        Self { servers: RwLock::default(), others }
    }

    /// Adds a server of this process, or replaces the one of the same name, and returns its configuration, for
    /// [`Hub::set_servers`](crate::Hub::set_servers).
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn add(&self, name: ServerName, server: &ServerHandle) -> Result<ServerConfig, StateKeysError> {
        let host = Host::new(server.clone(), HostOptions::default())?;
        let program = LocalProgram::new("in this process");
        let mut config = ServerConfig::new(name.clone(), ServerLocation::Program(program));
        (config.start, config.sharing) = (StartMode::Eager, ConnectionSharing::All);
        self.servers.write().insert(name, LocalServer { handle: server.clone(), host });
        Ok(config)
    }

    fn find(&self, server: &ServerConfig) -> Option<LocalServer> {
        self.servers.read().get(&server.name).cloned()
    }
}

impl Default for LocalServers {
    fn default() -> Self {
        Self::with_others(Arc::new(ConfigConnector::default()))
    }
}

impl Connector for LocalServers {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        match self.find(server) {
            Some(local) => Box::pin(builder.connect(local.host)),
            None => self.others.connect(server, builder),
        }
    }

    fn forget_eras(&self) {
        self.others.forget_eras();
    }

    fn in_process(&self, server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        match self.find(server) {
            Some(local) => Some(Arc::new(local.handle)),
            None => self.others.in_process(server),
        }
    }
}

impl fmt::Debug for LocalServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalServers").finish_non_exhaustive()
    }
}
