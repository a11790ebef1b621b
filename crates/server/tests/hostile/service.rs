//! The server under attack: a real listener on a free port, with a tool for each thing that a peer can be slow at.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use trunkline_server::http::{DrainOutcome, HttpServerOptions, HttpService, IncomingRequest, serve};
use trunkline_server::{
    Context, Host, HostOptions, Metrics, Resource, Server, ServerHandle, ServerLimits, Tool,
};

use crate::raw_http::{self, Connection, RawReply};

/// Long enough for any machine, and only ever waited for by a test that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FloodArguments {
    count: u32,
    /// How long each report is.
    #[serde(default)]
    bytes: usize,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct BulkArguments {
    bytes: usize,
}

/// How the server is set up.
pub(crate) struct Setup {
    pub(crate) address: SocketAddr,
    pub(crate) limits: ServerLimits,
    pub(crate) http: HttpServerOptions,
    pub(crate) grace: Duration,
    /// Whether the endpoint answers in place, as with our own listener; otherwise as a program with another listener
    /// uses it.
    pub(crate) directly: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (limits, http) = (ServerLimits::default(), HttpServerOptions::default());
        Self { address, limits, http, grace: DEADLINE, directly: true }
    }
}

/// A server that listens.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    pub(crate) endpoint: HttpService,
    pub(crate) metrics: Metrics,
    pub(crate) parts: ServerHandle,
    /// One permit lets one call of `wait` finish.
    pub(crate) gate: Arc<Semaphore>,
    served: JoinHandle<io::Result<DrainOutcome>>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::start_with(Setup::default()).await
    }

    pub(crate) async fn start_with(setup: Setup) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let parts = server(&gate).handle().unwrap();
        let metrics = Metrics::new();
        let options =
            HostOptions { limits: setup.limits, metrics: Some(metrics.clone()), ..HostOptions::default() };
        let host = Host::new(parts.clone(), options).unwrap();
        let endpoint = host.http_service(setup.http);
        let listener = TcpListener::bind(setup.address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = {
            let endpoint = endpoint.clone();
            tokio::spawn(async move {
                match setup.directly {
                    true => serve(listener, &endpoint, endpoint.clone(), setup.grace).await,
                    false => {
                        let foreign = endpoint.clone();
                        let answer = move |request: IncomingRequest| {
                            let endpoint = foreign.clone();
                            async move { endpoint.handle(request.into_request()).await }
                        };
                        serve(listener, &endpoint, answer, setup.grace).await
                    }
                }
            })
        };
        Self { address, host, endpoint, metrics, parts, gate, served }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn ask(&self, request: &[u8]) -> RawReply {
        let mut connection = self.connect().await;
        connection.send(request).await;
        connection.reply().await
    }

    /// Opens a legacy session and returns its id.
    pub(crate) async fn session(&self, revision: &str) -> String {
        let reply = self.ask(&raw_http::post(&[], raw_http::initialize(revision).as_bytes())).await;
        reply.header("mcp-session-id").expect("a session").to_owned()
    }

    /// Asserts that a client that keeps the rules is served.
    #[track_caller]
    pub(crate) fn still_serves(&self) -> impl Future<Output = ()> {
        let after = std::panic::Location::caller();
        async move {
            let reply = self.ask(&raw_http::modern("tools/call", "echo", &raw_http::echo(7, "good"))).await;
            let answer: Value = reply.json();
            assert_eq!(reply.status, 200, "{after}");
            assert_eq!(answer["result"]["content"][0]["text"], "good", "{after}");
        }
    }

    /// Waits until no call runs and none waits for an answer.
    pub(crate) async fn idle(&self) {
        eventually("nothing is left running", || self.host.load() == (0, 0)).await;
    }

    /// Waits for the server to end after shutdown was requested.
    pub(crate) async fn drained(self) -> DrainOutcome {
        tokio::time::timeout(DEADLINE, self.served).await.expect("the server ends").unwrap().unwrap()
    }
}

/// The parts that every hostile test calls.
pub(crate) fn server(gate: &Arc<Semaphore>) -> Server {
    let gate = gate.clone();
    Server::new("target")
        .with(Tool::new("echo").run(|echo: EchoArguments| async move { echo.message }))
        .with(Tool::new("wait").run(move || {
            let gate = gate.clone();
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                "waited"
            }
        }))
        .with(Tool::new("flood").run(|context: Context, flood: FloodArguments| async move {
            let words = "w".repeat(flood.bytes);
            for n in 1..=flood.count {
                context.progress_with(n, None, words.clone());
                tokio::task::yield_now().await;
            }
            "flooded"
        }))
        .with(Tool::new("bulk").run(|bulk: BulkArguments| async move { "b".repeat(bulk.bytes) }))
        .with(Resource::new("test://page", "page").text("a page"))
}

/// Waits, within the deadline, until a condition holds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
