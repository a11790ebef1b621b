use std::fmt;
use std::sync::Arc;

use trunkline_client::config::{http_transport, target};
use trunkline_client::{BoxFuture, Client, ClientBuilder, EraCache, Error};
use trunkline_config::{ServerConfig, ServerLocation};
use trunkline_server::Handler;

/// Connects to the servers of a configuration.
///
/// By default a hub connects as configured ([`ConfigConnector`]); a program with in-process servers supplies its own
/// connector.
pub trait Connector: Send + Sync + 'static {
    /// Connects to a server, with a builder on which the hub has set the input handler and the limits.
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>>;

    /// Forgets what earlier connections learned about the eras of servers, since one may have been upgraded. Called
    /// before a manual connect.
    fn forget_eras(&self) {}

    /// Returns the server itself, if it is in this process and part of the hub.
    ///
    /// The hub lists its items over a connection, as for any server, but passes calls to it directly, with their
    /// caller and without a connection. Therefore its names are not prefixed and tool rules do not apply. It also
    /// receives calls of tools that no server has.
    fn in_process(&self, _server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        None
    }
}

/// Connects as configured: starts the program, or connects to the URL.
#[derive(Clone, Default)]
pub struct ConfigConnector {
    era_cache: EraCache,
}

impl Connector for ConfigConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        let builder =
            builder.era_cache(self.era_cache.clone()).http_transport(http_transport(&server.location));
        let builder = match &server.location {
            ServerLocation::Program(_) => builder,
            ServerLocation::Endpoint(endpoint) => endpoint
                .headers
                .iter()
                .fold(builder, |builder, (name, value)| builder.header(name.clone(), value.expose())),
        };
        match target(&server.location) {
            Ok(target) => Box::pin(builder.connect(target)),
            Err(error) => {
                let error = Error::Invalid(format!("the address is not usable: {error}"));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }

    fn forget_eras(&self) {
        self.era_cache.clear();
    }
}

impl fmt::Debug for ConfigConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}
