//! Servers that are reached by an address: real ones, over real sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use trunkline_client::protocol::Revision;
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{
    RemoteEndpoint, RemoteTransport, ServerConfig, ServerLocation, ServerName, StartMode,
};
use trunkline_hub::{ConfigConnector, Connector, Hub, HubLimits, HubOptions, UpstreamConnectionState};
use trunkline_server::http::{HttpServerOptions, serve};
use trunkline_server::{Host, HostOptions, ServerHandle, Shutdown};

use crate::support::{NEW, OLD, echo_tool, gated, plain_client, quick, say, tools, until, within};

/// A real server that listens.
struct ListeningServer {
    address: SocketAddr,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl ListeningServer {
    async fn at(address: &str, parts: &ServerHandle) -> Self {
        let options = HostOptions::default();
        let shutdown = options.shutdown.clone();
        let endpoint = Host::new(parts.clone(), options).unwrap().http_service(HttpServerOptions::default());
        let listener = within(listen(address)).await;
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let _ = serve(listener, &endpoint, endpoint.clone(), Duration::ZERO).await;
        });
        Self { address, shutdown, serving }
    }

    /// Ends, so that nothing is left of any session, and comes back at the same address.
    async fn restart(self, parts: &ServerHandle) -> Self {
        self.shutdown.stop();
        within(self.serving).await.unwrap();
        Self::at(&self.address.to_string(), parts).await
    }
}

/// Listens at an address, and retries for a moment: another process may have got the released port.
async fn listen(address: &str) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn endpoint(name: &str, url: String, wire: RemoteTransport) -> ServerConfig {
    let mut endpoint = RemoteEndpoint::new(&*url);
    endpoint.transport = wire;
    let mut config = ServerConfig::new(ServerName::parse(name).unwrap(), ServerLocation::Endpoint(endpoint));
    config.start = StartMode::Eager;
    config
}

/// Dials by the configuration, but with one revision.
struct PinnedConnector(ConfigConnector, Revision);

impl Connector for PinnedConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        self.0.connect(server, builder.pin(self.1))
    }
}

fn hub_speaking(revision: Option<Revision>) -> Hub {
    let connector: Arc<dyn Connector> = match revision {
        Some(revision) => Arc::new(PinnedConnector(ConfigConnector::default(), revision)),
        None => Arc::new(ConfigConnector::default()),
    };
    Hub::new(HubOptions { connector, limits: quick(), ..HubOptions::default() })
}

fn parts() -> ServerHandle {
    let (server, _) = gated();
    server.with(echo_tool("t")).handle().unwrap()
}

#[tokio::test]
async fn configured_transport_is_used_without_a_fallback() {
    let place = ListeningServer::at("127.0.0.1:0", &parts()).await;
    let url = |scheme: &str, path: &str| format!("{scheme}://{}{path}", place.address);
    let hub = hub_speaking(None);
    let configs = vec![
        endpoint("auto", url("http", "/mcp"), RemoteTransport::Auto),
        endpoint("http", url("http", "/mcp"), RemoteTransport::Http),
        endpoint("sse", url("http", "/sse"), RemoteTransport::Sse),
        endpoint("ws", url("ws", "/ws"), RemoteTransport::WebSocket),
        endpoint("ws2", url("http", "/ws"), RemoteTransport::WebSocket),
    ];
    let applied = within(hub.set_servers(configs)).await;
    assert!(applied.failed.is_empty(), "{applied:?}");
    let client = plain_client(&hub, NEW).await;
    for (name, transport, revision) in [
        ("auto", "streamable-http", NEW),
        ("http", "streamable-http", NEW),
        ("sse", "sse", OLD),
        ("ws", "websocket", NEW),
        ("ws2", "websocket", NEW),
    ] {
        let status = hub.status_of(name).unwrap();
        assert_eq!((status.transport, status.revision), (Some(transport), Some(revision)), "{name}");
        assert_eq!(say(&client, &format!("{name}__t")).await, "t");
    }
    // Nothing else is tried where the words are wrong.
    let wrong = vec![
        endpoint("http", url("http", "/sse"), RemoteTransport::Http),
        endpoint("sse", url("http", "/mcp"), RemoteTransport::Sse),
    ];
    let applied = within(hub.set_servers(wrong)).await;
    assert_eq!(applied.failed.len(), 2, "{applied:?}");
}

/// Answers every request with 404, and writes down the first line of each.
async fn refuses_everything() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let lines = lines.clone();
            tokio::spawn(async move {
                let mut read = vec![0; 65536];
                let Ok(length) = socket.read(&mut read).await else { return };
                let text = String::from_utf8_lossy(&read[..length]).into_owned();
                lines.lock().unwrap().extend(text.lines().next().map(str::to_owned));
                let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = socket.write_all(refusal.as_bytes()).await;
            });
        }
    });
    (address, heard)
}

#[tokio::test]
async fn only_requests_of_the_configured_transport_are_sent() {
    for (wire, methods) in [
        (RemoteTransport::Sse, vec!["GET"]),
        (RemoteTransport::Http, vec!["POST", "POST"]),
        (RemoteTransport::Auto, vec!["POST", "POST", "GET"]),
    ] {
        let (address, heard) = refuses_everything().await;
        let later = Duration::from_secs(600);
        let limits = HubLimits { restart_delay: later, max_restart_delay: later, ..quick() };
        let hub = Hub::new(HubOptions { limits, ..HubOptions::default() });
        let applied = within(hub.set_servers(vec![endpoint("a", format!("http://{address}/x"), wire)])).await;
        assert_eq!(applied.failed.len(), 1);
        let heard: Vec<_> = heard
            .lock()
            .unwrap()
            .iter()
            .filter_map(|line| line.split(' ').next().map(str::to_owned))
            .collect();
        assert_eq!(heard, methods, "{wire:?}");
    }
}

#[tokio::test]
async fn expired_upstream_session_is_reopened_and_the_call_succeeds() {
    for revision in [Revision::V2025_03_26, OLD, NEW] {
        let parts = parts();
        let mut place = ListeningServer::at("127.0.0.1:0", &parts).await;
        let hub = hub_speaking(Some(revision));
        let config = endpoint("a", format!("http://{}/mcp", place.address), RemoteTransport::Http);
        within(hub.set_servers(vec![config])).await;
        let client = plain_client(&hub, NEW).await;
        for round in 0..5 {
            assert_eq!(say(&client, "a__t").await, "t", "{revision}, {round}");
            place = place.restart(&parts).await;
        }
        assert_eq!(say(&client, "a__t").await, "t", "{revision}");
        assert_eq!(tools(&client).await, ["a__t", "a__wait"]);
    }
}

#[tokio::test]
async fn unreachable_http_server_fails_with_a_reason_and_recovers() {
    for revision in [OLD, NEW] {
        let parts = parts();
        let place = ListeningServer::at("127.0.0.1:0", &parts).await;
        let address = place.address;
        let hub = hub_speaking(Some(revision));
        within(hub.set_servers(vec![endpoint("a", format!("http://{address}/mcp"), RemoteTransport::Http)]))
            .await;
        let client = plain_client(&hub, OLD).await;
        assert_eq!(say(&client, "a__t").await, "t");
        place.shutdown.stop();
        within(place.serving).await.unwrap();
        let failed = within(client.call("a__t", json!({}))).await;
        let Err(Error::ErrorResponse(refused)) = failed else { panic!("{failed:?}") };
        assert_eq!(refused.code, -32603);
        assert!(refused.message.starts_with("upstream `a` "), "{}", refused.message);
        assert!(hub.status_of("a").unwrap().reason.is_some());
        let back = ListeningServer::at(&address.to_string(), &parts).await;
        assert_eq!(say(&client, "a__t").await, "t", "{revision}");
        assert_eq!(hub.status_of("a").unwrap().reason, None);
        back.shutdown.stop();
    }
}

#[tokio::test]
async fn call_aborted_over_http_is_cancelled_at_the_server_in_every_pair_of_eras() {
    for up in [OLD, NEW] {
        for down in [OLD, NEW] {
            let (server, gate) = gated();
            let place = ListeningServer::at("127.0.0.1:0", &server.handle().unwrap()).await;
            let hub = hub_speaking(Some(up));
            within(hub.set_servers(vec![endpoint(
                "a",
                format!("http://{}/mcp", place.address),
                RemoteTransport::Http,
            )]))
            .await;
            let client = plain_client(&hub, down).await;
            let call = {
                let client = client.clone();
                tokio::spawn(async move { say(&client, "a__wait").await })
            };
            gate.waiting(1).await;
            call.abort();
            gate.waiting(0).await;
            until(|| hub.status_of("a").unwrap().calls == 0).await;
            assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::Ready);
            place.shutdown.stop();
        }
    }
}
