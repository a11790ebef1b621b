use std::fmt;
use std::sync::Arc;

use trunkline_client::config::{http_transport, target};
use trunkline_client::{BoxFuture, Client, ClientBuilder, EraCache, Error};
use trunkline_config::{ServerConfig, ServerLocation};
use trunkline_server::Handler;

/// Connects to the servers of a configuration.
///
/// A hub connects as the configuration says ([`ConfigConnector`]); a program that has servers within itself brings its own.
pub trait Connector: Send + Sync + 'static {
    /// Connects to a server, with a builder on which the hub has set who answers and within which bounds.
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>>;

    /// Returns the server itself, if it is in this process and part of the hub.
    ///
    /// What it offers is learned over a connection like any other's, but its calls go to it as they came, with their caller
    /// and without a connection; and so its names are its own, and rules about tools do not count. It is also told of calls
    /// of tools that nobody has.
    fn in_process(&self, _server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        None
    }
}

/// Connects as a configuration says: starts the program, or dials the address.
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
}

impl fmt::Debug for ConfigConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}
