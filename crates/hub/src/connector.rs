use std::fmt;
use std::sync::Arc;

use trunkline_client::config::{over_http, target};
use trunkline_client::{BoxFuture, Builder, Client, Error, Verdicts};
use trunkline_config::{Reach, ServerConfig};
use trunkline_server::Handler;

/// Connects to the servers of a configuration.
///
/// A hub connects as the configuration says ([`Dial`]); a program that has servers within itself brings its own.
pub trait Connector: Send + Sync + 'static {
    /// Connects to a server, with a builder on which the hub has set who answers and within which bounds.
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>>;

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
pub struct Dial {
    verdicts: Verdicts,
}

impl Connector for Dial {
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        let builder = builder.verdicts(self.verdicts.clone()).over_http(over_http(&server.reach));
        let builder = match &server.reach {
            Reach::Program(_) => builder,
            Reach::Endpoint(endpoint) => endpoint
                .headers
                .iter()
                .fold(builder, |builder, (name, value)| builder.header(name.clone(), value.expose())),
        };
        match target(&server.reach) {
            Ok(target) => Box::pin(builder.connect(target)),
            Err(error) => {
                let error = Error::Invalid(format!("the address is not usable: {error}"));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}
