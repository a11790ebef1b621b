//! The process under test: a hub over HTTP that reads commands from its standard input, line by line.

use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{LocalProgram, RemoteEndpoint, ServerConfig, ServerLocation, ServerName};
use trunkline_hub::{ConfigConnector, Connector, Hub, HubLimits, HubOptions, ServerSwitch};
use trunkline_server::{Host, HostOptions, ServerTransport as _, http};

/// The prefix of servers that are connected to in a revision with sessions.
const OLD: &str = "old";

pub(crate) fn main(address: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(serve(address));
}

async fn serve(address: &str) {
    let limits = HubLimits {
        // A server that is killed a thousand times would be left alone for a minute each time.
        restart_delay: Duration::from_millis(2),
        max_restart_delay: Duration::from_millis(20),
        ..HubLimits::default()
    };
    let connector = Arc::new(PinningConnector(ConfigConnector::default()));
    let hub = Hub::new(HubOptions { limits, connector, ..HubOptions::default() });
    let host = Host::new(hub.clone(), HostOptions::default()).unwrap();
    let (told, mut orders) = tokio::sync::mpsc::channel::<String>(64);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if told.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let shutdown = host.shutdown().clone();
    let obeying = async {
        while let Some(line) = orders.recv().await {
            let (number, order) = line.split_once(' ').unwrap_or((&line, ""));
            let (number, order, hub, host) = (number.to_owned(), order.to_owned(), hub.clone(), host.clone());
            tokio::spawn(async move { println!("{number} {}", obey(&hub, &host, &order).await) });
        }
        hub.shutdown().await;
        shutdown.stop();
    };
    let (served, ()) = tokio::join!(http(address).serve(host.clone()), obeying);
    served.unwrap();
}

/// Runs one command, and returns its result.
async fn obey(hub: &Hub, host: &Host, order: &str) -> Value {
    let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
    match verb {
        "set" => {
            let servers = rest.split_whitespace().map(config).collect();
            let applied = hub.set_servers(servers).await;
            let names = |names: &[ServerName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
            json!({ "added": names(&applied.added), "removed": names(&applied.removed), "updated": names(&applied.updated) })
        }
        "on" => json!(hub.toggle(rest, ServerSwitch::On).is_ok()),
        "off" => json!(hub.toggle(rest, ServerSwitch::Off).is_ok()),
        "held" => {
            let connections: usize = hub.status().iter().map(|status| status.connections).sum();
            let (running, parked) = host.load();
            // Without the task that answers this.
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks() - 1;
            json!({ "tasks": tasks, "connections": connections, "calls": running + parked })
        }
        other => json!(format!("there is no order `{other}`")),
    }
}

/// Reads a server: `NAME=stdio,VARIANT` or `NAME=http://ADDRESS/mcp`.
fn config(text: &str) -> ServerConfig {
    let (name, reach) = text.split_once('=').unwrap();
    let reach = match reach.strip_prefix("stdio,") {
        Some(variant) => {
            let mut program = LocalProgram::new(std::env::current_exe().unwrap().to_str().unwrap());
            program.args = ["upstream", name, variant].map(Into::into).to_vec();
            ServerLocation::Program(program)
        }
        None => ServerLocation::Endpoint(RemoteEndpoint::new(reach)),
    };
    ServerConfig::new(ServerName::parse(name).unwrap(), reach)
}

/// Connects to some servers with the revision before the newest, so that both eras are behind the hub.
struct PinningConnector(ConfigConnector);

impl Connector for PinningConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        let is_old = server.name.as_str().starts_with(OLD);
        self.0.connect(server, if is_old { builder.pin(Revision::V2025_11_25) } else { builder })
    }
}
