//! The server that every transport serves, and the places where it does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trunkline_server::http::{BearerTokens, DrainOutcome, HttpServerOptions, HttpService, serve};
use trunkline_server::{
    Confirm, Context, EnvPolicy, Host, HostOptions, Server, ServerHandle, ServerLimits, Tool, ToolError, ask,
};

use crate::seen_caller::look;

/// Long enough for any machine, and only ever waited for by a test that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
#[track_caller]
pub(crate) fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened at {caller}"),
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Size {
    bytes: usize,
}

/// Counts the calls of `wait` that are under way.
#[derive(Clone, Debug)]
pub(crate) struct WaitingCount(watch::Sender<usize>);

struct BegunGuard(watch::Sender<usize>);

impl WaitingCount {
    fn begin(&self) -> BegunGuard {
        self.0.send_modify(|count| *count += 1);
        BegunGuard(self.0.clone())
    }

    /// Waits until this many calls are under way.
    pub(crate) async fn are(&self, wanted: usize) {
        within(self.0.subscribe().wait_for(|count| *count == wanted)).await.unwrap();
    }
}

impl Drop for BegunGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A variable that every process has, and that clients over HTTP send.
pub(crate) const VARIABLE: &str = "PATH";

pub(crate) fn variable() -> String {
    std::env::var(VARIABLE).unwrap()
}

/// A server that listens on a free port.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    pub(crate) endpoint: HttpService,
    pub(crate) parts: ServerHandle,
    pub(crate) waiting: WaitingCount,
    served: JoinHandle<io::Result<DrainOutcome>>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::start_with(HttpServerOptions::default(), ServerLimits::default()).await
    }

    /// Starts a server at which `ann` and `bob` have a token each.
    pub(crate) async fn start_with_tokens() -> Self {
        let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
        let options = HttpServerOptions { authenticator: Arc::new(tokens), ..HttpServerOptions::default() };
        Self::start_with(options, ServerLimits::default()).await
    }

    pub(crate) async fn start_with(options: HttpServerOptions, limits: ServerLimits) -> Self {
        let (host, parts, waiting) = host(limits);
        let endpoint = host.http_service(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = {
            let endpoint = endpoint.clone();
            tokio::spawn(async move { serve(listener, &endpoint, endpoint.clone(), DEADLINE).await })
        };
        Self { address, host, endpoint, parts, waiting, served }
    }

    /// Waits until no call runs or is suspended, and no channel is open.
    pub(crate) async fn is_left_alone(&self) {
        within(async {
            while self.host.load() != (0, 0) || self.endpoint.channels() != 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Waits until the server has ended after it began to drain.
    pub(crate) async fn ended(self) -> DrainOutcome {
        within(self.served).await.unwrap().unwrap()
    }
}

/// Makes the server ready to be served.
pub(crate) fn host(limits: ServerLimits) -> (Host, ServerHandle, WaitingCount) {
    let waiting = WaitingCount(watch::Sender::new(0));
    let parts = server(&waiting).handle().unwrap();
    let names = vec![VARIABLE.to_owned()];
    let env = EnvPolicy { from_process: names.clone(), from_headers: names };
    let host = Host::new(parts.clone(), HostOptions { limits, env, ..HostOptions::default() }).unwrap();
    (host, parts, waiting)
}

fn server(waiting: &WaitingCount) -> Server {
    let waiting = waiting.clone();
    Server::new("everywhere")
        .with(Tool::new("add").run(async |Pair { a, b }| a + b))
        .with(Tool::new("steps").run(async |cx: Context| {
            cx.progress(1, 2);
            tokio::task::yield_now().await;
            cx.progress(2, 2);
            tokio::task::yield_now().await;
            "done"
        }))
        .with(Tool::new("confirm").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(ask::<Confirm>("Sure?").key("sure")).await?.0.to_string())
        }))
        .with(Tool::new("large").run(async |Size { bytes }| "x".repeat(bytes)))
        .with(Tool::new("bag").run(async |cx: Context| format!("{}", cx.caller().state_id.unwrap())))
        .with(Tool::new("count").run(async |cx: Context| -> Result<String, ToolError> {
            let state = cx.state::<u32>(None)?;
            state.update(|count| *count += 1);
            Ok(state.get().to_string())
        }))
        .with(look())
        .with(Tool::new("wait").run(move || {
            let waiting = waiting.clone();
            async move {
                let _begun = waiting.begin();
                std::future::pending::<()>().await;
                "never"
            }
        }))
}

/// Makes a legacy request.
pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Calls a tool in the legacy era.
pub(crate) fn tool(id: u64, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

pub(crate) fn initialize(revision: &str) -> Value {
    let client = json!({ "name": "peer", "version": "1" });
    let capabilities = json!({ "elicitation": {} });
    let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client });
    request(0, "initialize", params)
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Makes a modern request.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "peer", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    request(id, method, params)
}
