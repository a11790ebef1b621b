use serde_json::{Map, Value, json};
use trunkline_server::http::{HttpService, PeerInfo};
use trunkline_server::{Host, http::HttpOptions};

use super::{Client, Modern, Peer, legacy, response};

/// The revision of the legacy callers; any would do.
const LEGACY: &str = "2025-11-25";

/// One way to reach a handler: an era over a transport.
///
/// A transport is added by a variant here and a line in [`Ways::open`].
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) is_legacy: bool,
    line: Line,
    capabilities: Value,
    /// What the client answers when it is asked for its roots.
    roots: Value,
    calls: u64,
}

#[derive(Debug)]
enum Line {
    Channel(Peer),
    Http(Client),
}

/// What the callers of a table have in common.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    pub(crate) capabilities: Value,
    pub(crate) roots: Value,
    /// Headers, for the transports that have them.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Default for Ways {
    fn default() -> Self {
        Self { capabilities: json!({ "roots": {}, "sampling": {} }), roots: json!([]), headers: Vec::new() }
    }
}

impl Ways {
    /// Opens every way there is to a host.
    pub(crate) async fn open(&self, host: &Host) -> Vec<Way> {
        let service = host.http(HttpOptions::default());
        let channel = Peer::initialized_with(host, LEGACY, self.capabilities.clone()).await;
        let client = self.client(&service).initialized_with(LEGACY, self.capabilities.clone()).await;
        vec![
            self.way("legacy over a channel", true, Line::Channel(channel)),
            self.way("legacy over HTTP", true, Line::Http(client)),
            self.way("modern over a channel", false, Line::Channel(Peer::new(host))),
            self.way("modern over HTTP", false, Line::Http(self.client(&service))),
        ]
    }

    fn client(&self, service: &HttpService) -> Client {
        let local = Client::of(service).over(PeerInfo { loopback: true, tls: false });
        self.headers.iter().fold(local, |client, (name, value)| client.with(name, value.clone()))
    }

    fn way(&self, name: &'static str, is_legacy: bool, line: Line) -> Way {
        let (capabilities, roots) = (self.capabilities.clone(), self.roots.clone());
        Way { name, is_legacy, line, capabilities, roots, calls: 0 }
    }
}

impl Way {
    /// Calls a tool, answers what it asks on the way, and returns its answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let answer = if self.is_legacy {
            self.call_legacy(tool, arguments).await
        } else {
            self.call_modern(tool, arguments).await
        };
        assert!(answer.get("id").is_some(), "{}: {answer}", self.name);
        answer
    }

    /// Calls a tool and returns its structured content.
    pub(crate) async fn structured(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert_ne!(answer["result"]["isError"], true, "{}: {answer}", self.name);
        answer["result"]["structuredContent"].clone()
    }

    fn answer_to(&self, asked: &Value) -> Value {
        assert_eq!(asked["method"], "roots/list", "{}: {asked}", self.name);
        json!({ "roots": self.roots })
    }

    async fn call_legacy(&mut self, tool: &str, arguments: &Value) -> Value {
        let request = legacy(self.calls, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let mut stream = match &mut self.line {
            Line::Channel(peer) => {
                peer.send(&request).await;
                None
            }
            Line::Http(client) => {
                let mut response = client.post(&request).await;
                if !response.is_stream() {
                    return response.rest().await.pop().unwrap();
                }
                Some(response)
            }
        };
        loop {
            let message = match (&mut self.line, &mut stream) {
                (_, Some(stream)) => stream.message().await.unwrap(),
                (Line::Channel(peer), None) => peer.receive().await,
                (Line::Http(_), None) => unreachable!("a plain answer was returned above"),
            };
            if message.get("method").is_none() {
                return message;
            }
            let answer = response(&message, self.answer_to(&message));
            match &mut self.line {
                Line::Channel(peer) => peer.send(&answer).await,
                Line::Http(client) => drop(client.post(&answer).await),
            }
        }
    }

    async fn call_modern(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.calls;
        let capabilities = self.capabilities.clone();
        let request = Modern::tool(tool).id(id).arguments(arguments.clone()).capabilities(capabilities);
        let mut next = request.clone();
        loop {
            let answer = match &mut self.line {
                Line::Channel(peer) => peer.call(&next.value()).await,
                Line::Http(client) => client.post(&next.value()).await.answer().await,
            };
            let Some(asked) = answer["result"]["inputRequests"].as_object() else { return answer };
            let answers: Map<String, Value> =
                asked.iter().map(|(key, asked)| (key.clone(), self.answer_to(asked))).collect();
            next = request.clone().answers(Value::Object(answers)).after(&answer);
        }
    }
}
