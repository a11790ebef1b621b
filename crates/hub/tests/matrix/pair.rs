//! A client of one revision and a server of another in this process, and the bridge between them.

use std::sync::Arc;

use trunkline_client::protocol::Revision;
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{LocalProgram, ServerConfig, ServerLocation, ServerName};
use trunkline_hub::{Connector, Hub, HubOptions};
use trunkline_server::{Host, HostOptions};

use crate::driver::{MatrixClient, within};
use crate::server::server;

/// Puts a bridge between a client of one revision and a server of another.
pub(crate) async fn pair(down: Revision, up: Revision) -> MatrixClient {
    let host = server().host(HostOptions::default()).unwrap();
    let options =
        HubOptions { connector: Arc::new(LocalConnector { host, pin: up }), ..HubOptions::default() };
    let reach = ServerLocation::Program(LocalProgram::new("in this process"));
    let config = ServerConfig::new(ServerName::parse("far").unwrap(), reach);
    let hub = within("the bridge", Hub::bridge(config, options)).await.unwrap();
    let front = Host::new(hub, HostOptions::default()).unwrap();
    MatrixClient::connect(front, down).await.unwrap()
}

/// Connects to the server in this process, in one revision.
struct LocalConnector {
    host: Host,
    pin: Revision,
}

impl Connector for LocalConnector {
    fn connect(&self, _: &ServerConfig, builder: ClientBuilder) -> BoxFuture<'static, Result<Client, Error>> {
        Box::pin(builder.pin(self.pin).connect(self.host.clone()))
    }
}
