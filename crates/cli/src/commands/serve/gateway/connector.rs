use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{ConfigText, ServerConfig, ServerLocation};
use trunkline_hub::{ConfigConnector, Connector};
use trunkline_server::{Handler, Host};

use super::own_server::{OWN_SERVER_NAME, OwnServer};
use super::self_reference;
use crate::terminal::escape_line;

/// Connects to trunkline's own server, in memory, and to servers by their configuration; each command line is logged
/// before it is started.
#[derive(Default)]
pub(super) struct GatewayConnector {
    dial: ConfigConnector,
    own_server: Mutex<Option<OwnServer>>,
    /// The enclosing hubs, passed to started programs.
    enclosing_hubs: String,
    /// Where this hub is served, if that is an address.
    address: OnceLock<SocketAddr>,
}

impl GatewayConnector {
    pub(super) fn new(within: String) -> Self {
        Self { enclosing_hubs: within, ..Self::default() }
    }

    pub(super) fn own_server(&self) -> MutexGuard<'_, Option<OwnServer>> {
        self.own_server.lock()
    }

    /// Notes where this hub is served.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // It is served at one address only.
        let _ = self.address.set(address);
    }

    fn own_host(&self, server: &ServerConfig) -> Option<Host> {
        (server.name == OWN_SERVER_NAME)
            .then(|| self.own_server().as_ref().map(|own| own.host.clone()))
            .flatten()
    }
}

impl Connector for GatewayConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        if let Some(host) = self.own_host(server) {
            return Box::pin(builder.connect(host));
        }
        let mut server = server.clone();
        let line = server.location.to_string();
        match &mut server.location {
            ServerLocation::Program(program) => {
                tracing::info!(server = %server.name, "starting {}", escape_line(&line));
                program.env.insert(
                    self_reference::ENCLOSING_HUBS_VARIABLE.to_owned(),
                    ConfigText::new(&*self.enclosing_hubs),
                );
            }
            ServerLocation::Endpoint(endpoint) => {
                tracing::info!(server = %server.name, "connecting to {}", escape_line(&line));
                if let Some(here) = self.address.get().copied() {
                    let url = endpoint.url.clone();
                    let connecting = self.dial.connect(&server, builder);
                    return Box::pin(async move {
                        if self_reference::is_own_address(url.expose(), here).await {
                            return Err(Error::Invalid("the URL is this hub itself".to_owned()));
                        }
                        connecting.await
                    });
                }
            }
        }
        self.dial.connect(&server, builder)
    }

    fn in_process(&self, server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        if server.name != OWN_SERVER_NAME {
            return None;
        }
        self.own_server().as_ref().map(|own| -> Arc<dyn Handler> { Arc::new(own.handle.clone()) })
    }
}
