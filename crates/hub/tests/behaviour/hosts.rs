//! Anonymous clients of several hosts, which compete for connections to a server.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use trunkline_config::CallRate;
use trunkline_hub::AnonymousClients::Isolated;
use trunkline_hub::HubLimits;
use trunkline_server::http::{HttpServerOptions, HttpService, RemoteAddress};

use crate::support::{
    OLD, ScriptReply, TestServers, echo_server, lazy, quick, script, serve_hub, text_result, until, within,
};

/// A session of a client at some address.
pub(crate) struct HostSession<'s> {
    service: &'s HttpService,
    address: RemoteAddress,
    id: Option<String>,
    /// A further header of each request.
    header: Option<(&'static str, &'static str)>,
    /// The response to `initialize`.
    pub(crate) opened: Value,
}

impl<'s> HostSession<'s> {
    async fn open(service: &'s HttpService, address: &str) -> Self {
        Self::open_with(service, address, None).await
    }

    pub(crate) async fn open_with(
        service: &'s HttpService,
        address: &str,
        header: Option<(&'static str, &'static str)>,
    ) -> Self {
        let address = RemoteAddress(address.parse().unwrap());
        let mut session = Self { service, address, id: None, header, opened: Value::Null };
        let params = json!({
            "protocolVersion": OLD.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        });
        let (id, body) = session.post("initialize", &params).await;
        (session.id, session.opened) = (id, message_in(&body));
        session
    }

    async fn post(&self, method: &str, params: &Value) -> (Option<String>, String) {
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .extension(self.address);
        if let Some((name, value)) = self.header {
            request = request.header(name, value);
        }
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id).header("mcp-protocol-version", OLD.as_str());
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = request.body(Full::new(Bytes::from(message.to_string()))).unwrap();
        let response = within(self.service.handle(request)).await;
        assert!([200, 429].contains(&response.status().as_u16()), "{}", response.status());
        let id = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let body = within(response.into_body().collect()).await.unwrap().to_bytes();
        (id, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Sends a request, and returns the response.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> Value {
        message_in(&self.post(method, params).await.1)
    }

    /// Calls the server, and returns over which connection it was called.
    pub(crate) async fn call(&self) -> String {
        let answer = self.request("tools/call", &json!({ "name": "a__t", "arguments": {} })).await;
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

/// Reads the message of a response, which is JSON or an event stream with one event.
fn message_in(body: &str) -> Value {
    serde_json::from_str(body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(body)).unwrap()
}

#[tokio::test]
async fn host_with_many_sessions_never_evicts_the_only_connection_of_another() {
    let town = TestServers::default();
    let (heard, opener) = script(|peer, message| match message["method"].as_str() {
        Some("tools/call") => ScriptReply::Result(text_result(&peer.number.to_string())),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub_for(Isolated, HubLimits { connections_per_server: 4, ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    let service = serve_hub(&hub).http_service(HttpServerOptions::default());
    let one = HostSession::open(&service, "192.0.2.1").await;
    let ones = one.call().await;
    // Any address of the network of a host is that host.
    for number in 0..12 {
        let other = HostSession::open(&service, &format!("2001:db8::{number:x}")).await;
        assert_ne!(other.call().await, ones);
    }
    assert_eq!(one.call().await, ones, "its process goes on as it was");
    until(|| heard.open() <= 4).await;
}

#[tokio::test]
async fn clients_behind_a_proxy_on_the_same_host_are_counted_each() {
    let town = TestServers::default();
    let (_heard, opener) = script(|peer, message| match message["method"].as_str() {
        Some("tools/call") => ScriptReply::Result(text_result(&peer.number.to_string())),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub_for(Isolated, HubLimits { connections_per_server: 2, ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    let service = serve_hub(&hub).http_service(HttpServerOptions::default());
    let direct = HostSession::open(&service, "192.0.2.1").await;
    let first = direct.call().await;
    // With three parties and two connections, the longest idle one is evicted.
    for _ in 0..2 {
        HostSession::open(&service, "127.0.0.1").await.call().await;
    }
    assert_ne!(direct.call().await, first);
}

#[tokio::test]
async fn anonymous_clients_of_another_host_have_a_rate_of_their_own() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub_for(Isolated, quick());
    hub.set_caller_rate(CallRate::parse("1/1h"));
    within(hub.set_servers(vec![lazy("a")])).await;
    let service = serve_hub(&hub).http_service(HttpServerOptions::default());
    for (address, is_allowed) in [
        ("192.0.2.1", true),
        ("192.0.2.1", false),
        ("192.0.2.2", true),
        ("2001:db8::1", true),
        ("2001:db8::2", false),
        // A proxy on this host brings clients of any.
        ("127.0.0.1", true),
        ("::1", false),
    ] {
        let session = HostSession::open(&service, address).await;
        let (_, body) = session.post("tools/call", &json!({ "name": "a__t", "arguments": {} })).await;
        assert_eq!(!body.contains("rate_limited"), is_allowed, "{address}: {body}");
    }
}
