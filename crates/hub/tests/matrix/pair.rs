//! A client of one revision and a server of another in this process, and the bridge between them.

use std::sync::Arc;

use trunkline_client::protocol::Revision;
use trunkline_client::{BoxFuture, Builder, Client, Error};
use trunkline_config::{Program, Reach, ServerConfig, ServerName};
use trunkline_hub::{Connector, Hub, HubOptions};
use trunkline_server::{Host, HostOptions};

use crate::driver::{Driver, within};
use crate::server::server;

/// Puts a bridge between a client of one revision and a server of another.
pub(crate) async fn pair(down: Revision, up: Revision) -> Driver {
    let host = server().host(HostOptions::default()).unwrap();
    let options = HubOptions { connector: Arc::new(Here { host, pin: up }), ..HubOptions::default() };
    let reach = Reach::Program(Program::new("in this process"));
    let config = ServerConfig::new(ServerName::parse("far").unwrap(), reach);
    let hub = within("the bridge", Hub::bridge(config, options)).await.unwrap();
    let front = Host::new(hub, HostOptions::default()).unwrap();
    Driver::connect(front, down).await.unwrap()
}

/// Connects to the server in this process, in one revision.
struct Here {
    host: Host,
    pin: Revision,
}

impl Connector for Here {
    fn connect(&self, _: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        Box::pin(builder.pin(self.pin).connect(self.host.clone()))
    }
}
