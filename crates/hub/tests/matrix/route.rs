//! The way from a client over one transport, through a bridge, to a server over another: real sockets, and real processes
//! where there are pipes.

use std::net::SocketAddr;
use std::time::Duration;

use trunkline_client::protocol::{Era, Revision, RevisionSet};
use trunkline_client::transport::{Command, Target};
use trunkline_config::{LocalProgram, RemoteEndpoint, ServerConfig, ServerLocation, ServerName};
use trunkline_hub::{AnonymousClients, Hub, HubOptions};
use trunkline_server::http::{HttpServerOptions, serve as serve_http};
use trunkline_server::{Host, HostOptions, ServerTransport as _, Shutdown, stdio};

use crate::driver::{MatrixClient, within};
use crate::server::server;

/// Names the role of a process; without it, it is a test program.
const ROLE: &str = "TRUNKLINE_MATRIX_ROLE";

/// How long what still runs may take when a route is closed; nothing should.
const GRACE: Duration = Duration::from_secs(5);

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixTransport {
    Stdio,
    Streamable,
    Sse,
    WebSocket,
}

impl MatrixTransport {
    pub(crate) const ALL: [Self; 4] = [Self::Stdio, Self::Streamable, Self::Sse, Self::WebSocket];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Streamable => "Streamable HTTP",
            Self::Sse => "HTTP+SSE",
            Self::WebSocket => "WebSocket",
        }
    }

    /// Returns where something that listens is reached over this transport; over pipes nothing listens.
    fn url(self, address: SocketAddr) -> Option<String> {
        match self {
            Self::Stdio => None,
            Self::Streamable => Some(format!("http://{address}/mcp")),
            Self::Sse => Some(format!("http://{address}/sse")),
            Self::WebSocket => Some(format!("ws://{address}/ws")),
        }
    }
}

pub(crate) fn name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn newest(era: Era) -> Revision {
    RevisionSet::ALL.newest_of(era).unwrap()
}

/// A client at the one end, and everything between it and the server at the other.
pub(crate) struct MatrixRoute {
    pub(crate) driver: MatrixClient,
    listening: Vec<Shutdown>,
}

impl MatrixRoute {
    /// Opens the way; what listens does so for this route alone.
    ///
    /// # Errors
    /// The end that refused an era over a transport.
    pub(crate) async fn open(
        front: (MatrixTransport, Era),
        back: (MatrixTransport, Era),
    ) -> Result<Self, String> {
        let mut listening = Vec::new();
        let target = match back.0 {
            MatrixTransport::Stdio => format!("server {}", name(back.1)),
            over => {
                let (address, shutdown) = listen(far(back.1)).await;
                listening.push(shutdown);
                over.url(address).unwrap()
            }
        };
        let driver = match front.0 {
            MatrixTransport::Stdio => {
                let command = Command::new(program()).args(ARGUMENTS).env(ROLE, format!("bridge {target}"));
                MatrixClient::connect(Target::Command(command), newest(front.1)).await
            }
            over => {
                let hub = bridge(&target).await?;
                let (address, shutdown) = listen(Host::new(hub, HostOptions::default()).unwrap()).await;
                listening.push(shutdown);
                MatrixClient::connect(over.url(address).unwrap(), newest(front.1)).await
            }
        };
        Ok(Self { driver: driver.map_err(|error| error.to_string())?, listening })
    }

    pub(crate) async fn close(self) {
        within("the end of the client", self.driver.client.clone().close()).await;
        for shutdown in self.listening {
            shutdown.drain();
        }
    }
}

/// The far server, in one era alone.
fn far(era: Era) -> Host {
    let revisions =
        RevisionSet::from_revisions(Revision::ALL.into_iter().filter(|revision| revision.era() == era));
    server().host(HostOptions { revisions, ..HostOptions::default() }).unwrap()
}

/// Serves on an address of its own.
async fn listen(host: Host) -> (SocketAddr, Shutdown) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = host.shutdown().clone();
    tokio::spawn(async move {
        let endpoint = host.http_service(HttpServerOptions::default());
        serve_http(listener, &endpoint, endpoint.clone(), GRACE).await.unwrap();
    });
    (address, shutdown)
}

/// Puts a bridge in front of a server that is in a process of its own, or at an address.
async fn bridge(target: &str) -> Result<Hub, String> {
    let reach = match target.starts_with("server ") {
        true => {
            let mut program = LocalProgram::new(program().as_str());
            program.args = ARGUMENTS.map(Into::into).to_vec();
            program.env.insert(ROLE.to_owned(), target.into());
            ServerLocation::Program(program)
        }
        false => ServerLocation::Endpoint(RemoteEndpoint::new(target)),
    };
    let config = ServerConfig::new(ServerName::parse("far").unwrap(), reach);
    // It listens on the loopback, where all clients are one person.
    let options = HubOptions { anonymous: AnonymousClients::SingleUser, ..HubOptions::default() };
    within("the bridge", Hub::bridge(config, options)).await.map_err(|error| error.to_string())
}

/// What makes this test program a process that others start.
const ARGUMENTS: [&str; 4] = ["--exact", "route::serve", "--ignored", "--quiet"];

fn program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

#[test]
#[ignore = "serves only as the process that other tests start"]
fn serve() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let host = match role.split_once(' ') {
            Some(("bridge", target)) => {
                Host::new(bridge(target).await.unwrap(), HostOptions::default()).unwrap()
            }
            Some(("server", "modern")) => far(Era::Modern),
            _ => far(Era::Legacy),
        };
        stdio().serve(host).await.unwrap();
    });
}
