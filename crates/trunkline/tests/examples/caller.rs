//! A client of either era over HTTP, as small as can be.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use trunkline::Host;
use trunkline::server::http::{HttpServerOptions, HttpService, PeerInfo};

/// A client on this machine.
pub(crate) struct Caller {
    service: HttpService,
    variable: Option<(&'static str, &'static str)>,
    capabilities: Value,
    session: Option<String>,
}

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

impl Caller {
    /// Makes a legacy client with an open session, and a modern one.
    pub(crate) async fn both(
        host: &Host,
        capabilities: Value,
        variable: Option<(&'static str, &'static str)>,
    ) -> [Self; 2] {
        let service = host.http_service(HttpServerOptions::default());
        let modern = Self { service: service.clone(), variable, capabilities, session: None };
        let capabilities = modern.capabilities.clone();
        let mut legacy = Self { service, variable, capabilities, session: None };
        legacy.initialize().await;
        [legacy, modern]
    }

    pub(crate) fn revision(&self) -> &'static str {
        if self.session.is_some() { LEGACY } else { MODERN }
    }

    async fn initialize(&mut self) {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let response = self.service.handle(self.request(&hello)).await;
        let id = response.headers().get("mcp-session-id").expect("a session").to_str().expect("an id");
        self.session = Some(id.to_owned());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.service.handle(self.request(&ready)).await;
    }

    /// Calls a tool, and responds with `said` to every input request.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value, said: &Value) -> Value {
        self.call_with(tool, arguments, &|_| said.clone()).await
    }

    /// Calls a tool, and responds to its input requests by their parameters.
    pub(crate) async fn call_with(
        &mut self,
        tool: &str,
        arguments: &Value,
        said: &impl Fn(&Value) -> Value,
    ) -> Value {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        loop {
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let answer = self.exchange(&call, said).await;
            let Some(asked) = answer["result"]["inputRequests"].as_object() else { return answer };
            let answers: Map<String, Value> =
                asked.iter().map(|(key, question)| (key.clone(), said(&question["params"]))).collect();
            params["inputResponses"] = Value::Object(answers);
            params["requestState"] = answer["result"]["requestState"].clone();
        }
    }

    /// Sends a request and responds to the input requests on its stream, up to the response.
    async fn exchange(&self, call: &Value, said: &impl Fn(&Value) -> Value) -> Value {
        let mut body = self.service.handle(self.request(call)).await.into_body();
        let mut text = String::new();
        loop {
            let frame = body.frame().await.expect("an answer").expect("a body");
            text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("a text"));
            let lines = text.lines().map(|line| line.trim_start_matches("data: "));
            let messages: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
            for message in messages.into_iter().filter(Value::is_object) {
                if message.get("method").is_none() {
                    return message;
                }
                text.clear();
                let answer =
                    json!({ "jsonrpc": "2.0", "id": message["id"], "result": said(&message["params"]) });
                self.service.handle(self.request(&answer)).await;
            }
        }
    }

    fn request(&self, message: &Value) -> Request<Full<Bytes>> {
        let mut request = Request::post("/mcp")
            .extension(PeerInfo { loopback: true, tls: false })
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        // A session remembers the variables of its beginning.
        let begins = message["method"] == "initialize";
        if let Some((name, value)) = self.variable.filter(|_| begins || self.session.is_none()) {
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        } else if !begins {
            let name = message["params"]["name"].as_str().unwrap_or_default();
            request = request
                .header("mcp-protocol-version", MODERN)
                .header("mcp-method", "tools/call")
                .header("mcp-name", name);
        }
        request.body(Full::new(Bytes::from(message.to_string()))).expect("a request")
    }
}
