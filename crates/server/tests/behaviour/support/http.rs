use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use trunkline_server::Host;
use trunkline_server::http::{BearerTokens, HttpServerOptions, HttpService, PeerInfo, RemoteAddress};
use trunkline_server::protocol::meta;

use super::exchange::HttpExchange;
use super::message::legacy;
use super::{note, within};

/// What a client sends that takes no streams.
pub(crate) const JSON_ONLY: &str = "application/json";

const BOTH: &str = "application/json, text/event-stream";

/// A client of the endpoint; every request is one of its own.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) service: HttpService,
    headers: Vec<(&'static str, String)>,
    peer: Option<PeerInfo>,
    address: Option<RemoteAddress>,
}

/// Makes an endpoint at which `ann` and `bob` have a token each.
pub(crate) fn service(host: &Host) -> HttpService {
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    host.http_service(HttpServerOptions {
        authenticator: std::sync::Arc::new(tokens),
        ..HttpServerOptions::default()
    })
}

impl Client {
    /// Makes an anonymous client of an endpoint.
    pub(crate) fn new(host: &Host) -> Self {
        Self::of(&host.http_service(HttpServerOptions::default()))
    }

    pub(crate) fn of(service: &HttpService) -> Self {
        Self {
            service: service.clone(),
            headers: vec![("accept", BOTH.to_owned())],
            peer: None,
            address: None,
        }
    }

    /// Carries the token of `ann` or `bob`.
    pub(crate) fn named(self, name: &str) -> Self {
        self.with("authorization", format!("Bearer {name}-token-0123456"))
    }

    /// Sets a header of every later request.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the properties of the connection, as a listener would.
    pub(crate) fn over(mut self, peer: PeerInfo) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Sets the address of the client, as a listener would.
    pub(crate) fn at_address(mut self, address: &str) -> Self {
        self.address = Some(RemoteAddress(address.parse().unwrap()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn session(&self) -> &str {
        let id = self.headers.iter().find(|(name, _)| *name == "mcp-session-id");
        id.map_or("", |(_, id)| id)
    }

    /// Opens a session of a revision and stays in it.
    pub(crate) async fn initialized(self, revision: &str) -> Self {
        let capabilities = json!({ "elicitation": {}, "sampling": {} });
        self.initialized_with(revision, capabilities).await
    }

    pub(crate) async fn initialized_with(self, revision: &str, capabilities: Value) -> Self {
        let opened = self.post(&initialize(revision, capabilities)).await;
        assert_eq!(opened.status, 200, "{:?}", opened.headers);
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let client = self.with("mcp-session-id", id).with("mcp-protocol-version", revision);
        let noted = client.post(&note("notifications/initialized", json!({}))).await;
        assert_eq!(noted.status, 202);
        client
    }

    /// Posts a message, with the headers that mirror it where it is modern.
    pub(crate) async fn post(&self, message: &Value) -> HttpExchange {
        let mut mirrors = Vec::new();
        if message["params"]["_meta"].get(meta::PROTOCOL_VERSION).is_some() {
            mirrors.push(("mcp-protocol-version", "2026-07-28".to_owned()));
            mirrors.push(("mcp-method", message["method"].as_str().unwrap_or_default().to_owned()));
            let name = message["params"].get("name").or_else(|| message["params"].get("uri"));
            mirrors.extend(name.and_then(Value::as_str).map(|name| ("mcp-name", name.to_owned())));
        }
        self.send(Method::POST, &mirrors, message.to_string()).await
    }

    /// Opens a standing stream.
    pub(crate) async fn get(&self) -> HttpExchange {
        self.send(Method::GET, &[], String::new()).await
    }

    /// Comes back to a stream after an event.
    pub(crate) async fn resume(&self, last: &str) -> HttpExchange {
        self.send(Method::GET, &[("last-event-id", last.to_owned())], String::new()).await
    }

    pub(crate) async fn delete(&self) -> HttpExchange {
        self.send(Method::DELETE, &[], String::new()).await
    }

    async fn send(&self, method: Method, more: &[(&str, String)], body: String) -> HttpExchange {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let own = self.headers.iter().filter(|(name, _)| more.iter().all(|(other, _)| other != name));
        for (name, value) in own {
            request = request.header(*name, value);
        }
        for (name, value) in more {
            request = request.header(*name, value);
        }
        if let Some(peer) = self.peer {
            request = request.extension(peer);
        }
        if let Some(address) = self.address {
            request = request.extension(address);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        HttpExchange::new(within(self.service.handle(request)).await)
    }
}

/// Makes the handshake of a revision.
pub(crate) fn initialize(revision: &str, capabilities: Value) -> Value {
    let client = json!({ "name": "test", "version": "1" });
    legacy(
        "hello",
        "initialize",
        json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client }),
    )
}
