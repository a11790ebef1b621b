//! Servers behind a hub, clients in front of it, and their handlers of input requests.

mod answers;
mod script;
mod test_servers;

use std::time::Duration;

use tokio::sync::watch;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::{ChannelOpener, memory};
use trunkline_client::{Client, ClientBuilder};
use trunkline_config::{LocalProgram, ServerConfig, ServerLocation, ServerName};
use trunkline_hub::Hub;
use trunkline_server::http::{HttpServerOptions, serve as serve_http};
use trunkline_server::{Host, HostOptions, Server, Tool};
use trunkline_session::Principal;

pub(crate) use self::answers::RecordingHandler;
pub(crate) use self::script::{ScriptConnection, ScriptReply, ScriptedServer, script, text_result};
pub(crate) use self::test_servers::{TestServers, eager, lazy, quick, remote};

/// Longer than anything here takes, however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
#[track_caller]
pub(crate) fn within<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future.into_future()).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened at {caller}"),
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let mut what = what;
        let waited = tokio::time::timeout(DEADLINE, async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(waited.await.is_ok(), "it never came to what is waited for at {caller}");
    }
}

/// Serves a hub to any number of clients.
pub(crate) fn serve_hub(hub: &Hub) -> Host {
    Host::new(hub.clone(), HostOptions::default()).unwrap()
}

/// Connects a client of one revision without capabilities.
pub(crate) async fn plain_client(hub: &Hub, revision: Revision) -> Client {
    client(&serve_hub(hub), Client::builder().pin(revision), Principal::Process).await
}

/// Serves a hub over HTTP to anonymous clients, and returns the address.
pub(crate) async fn serve_hub_over_http(hub: &Hub) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = serve_hub(hub).http_service(HttpServerOptions::default());
    tokio::spawn(async move {
        serve_http(listener, &endpoint, endpoint.clone(), DEADLINE).await.unwrap();
    });
    format!("http://{address}/mcp")
}

pub(crate) fn named_principal(name: &str) -> Principal {
    Principal::Named(name.into())
}

/// Connects a client with this principal.
pub(crate) async fn client(front: &Host, builder: ClientBuilder, principal: Principal) -> Client {
    let front = front.clone();
    let opener = ChannelOpener::new("the hub", move || {
        let (ours, theirs) = memory(64);
        let (front, principal) = (front.clone(), principal.clone());
        tokio::spawn(async move {
            let _ = front.serve_channel(ours, principal).await;
        });
        std::future::ready(Ok(theirs))
    });
    within(builder.connect(opener)).await.unwrap()
}

/// A server with tools that return their own name.
pub(crate) fn echo_server(names: &[&'static str]) -> Server {
    names.iter().fold(Server::new("parrots").advertise_tools(), |server, name| server.with(echo_tool(name)))
}

pub(crate) fn echo_tool(name: &'static str) -> Tool {
    Tool::new(name).run(move || async move { name })
}

/// Lists the names of the tools that a client sees.
pub(crate) async fn tools(client: &Client) -> Vec<String> {
    let tools = within(client.tools()).await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Calls a tool without arguments, and returns its text.
pub(crate) async fn say(client: &Client, tool: &str) -> String {
    match within(client.call(tool, serde_json::json!({}))).await {
        Ok(said) => said.text(),
        Err(error) => format!("error: {error}"),
    }
}

/// The newest revision of either era.
pub(crate) const OLD: Revision = Revision::NEWEST_LEGACY;
pub(crate) const NEW: Revision = Revision::NEWEST;

pub(crate) fn names(names: &[ServerName]) -> Vec<&str> {
    names.iter().map(ServerName::as_str).collect()
}

/// Describes a server otherwise than before, so that it has to be connected to anew.
pub(crate) fn moved(mut config: ServerConfig) -> ServerConfig {
    let mut program = LocalProgram::new("elsewhere");
    program.env.insert("MOVED".to_owned(), "yes".into());
    config.location = ServerLocation::Program(program);
    config
}

/// Keeps calls waiting until it is opened.
#[derive(Clone)]
pub(crate) struct CallGate {
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl CallGate {
    fn new() -> Self {
        Self { is_open: watch::Sender::new(false), waiting: watch::Sender::new(0) }
    }

    /// Waits to be let through, and is counted meanwhile.
    pub(crate) async fn pass(&self) {
        struct LeaveGuard<'g>(&'g CallGate);
        impl Drop for LeaveGuard<'_> {
            fn drop(&mut self) {
                self.0.waiting.send_modify(|count| *count -= 1);
            }
        }
        self.waiting.send_modify(|count| *count += 1);
        let _leaves = LeaveGuard(self);
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
    }

    /// Waits until as many calls wait.
    pub(crate) async fn waiting(&self, calls: usize) {
        within(async { self.waiting.subscribe().wait_for(|count| *count == calls).await.map(drop) })
            .await
            .unwrap();
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }
}

/// A server with one tool, `wait`, that waits at a gate.
pub(crate) fn gated() -> (Server, CallGate) {
    let gate = CallGate::new();
    let passing = gate.clone();
    let wait = Tool::new("wait").run(move || {
        let gate = passing.clone();
        async move {
            gate.pass().await;
            "waited"
        }
    });
    (Server::new("gated").with(wait), gate)
}
