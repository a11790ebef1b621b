use std::future::poll_fn;
use std::time::Duration;

use serde_json::{Map, Value, json};
use trunkline::transport::{Channel as _, MemoryChannel};
use trunkline::{HostOptions, Server, StateKeys};

/// Long enough for any machine, and only ever waited for by a test that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A client of the newest revision that accepts forms.
pub(crate) struct Client {
    channel: MemoryChannel,
}

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        Self::of_replica(server, &StateKeys::random().unwrap())
    }

    /// Connects to a host of its own, which has nothing in common with others but the keys of state.
    pub(crate) fn of_replica(server: &Server, keys: &StateKeys) -> Self {
        let options = HostOptions { state_keys: Some(keys.clone()), ..HostOptions::default() };
        Self { channel: server.host(options).unwrap().connect() }
    }

    /// Sends a request and returns the result, or the error.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let Value::Object(mut params) = params else { panic!("params are an object") };
        params.insert("_meta".to_owned(), about_the_client());
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.channel.send(&request.to_string());
        let answered = async {
            poll_fn(|cx| self.channel.poll_flush(cx)).await.unwrap();
            poll_fn(|cx| self.channel.poll_receive(cx)).await.unwrap().unwrap()
        };
        let answer = tokio::time::timeout(DEADLINE, answered).await.expect("the server answers");
        let mut answer: Map<String, Value> = serde_json::from_slice(&answer).unwrap();
        let result = answer.remove("result").or_else(|| answer.remove("error"));
        result.expect("a result or an error")
    }
}

fn about_the_client() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    })
}

/// Sends one request to a server.
pub(crate) async fn request(server: &Server, method: &str, params: Value) -> Value {
    Client::of(server).request(method, params).await
}

/// Returns the only item of a list.
pub(crate) async fn only(server: &Server, method: &str, list: &str) -> Value {
    let mut listed = request(server, method, json!({})).await;
    match listed[list].take() {
        Value::Array(items) if items.len() == 1 => items.into_iter().next().unwrap_or_default(),
        other => panic!("not one item: {other}"),
    }
}

/// Calls a tool without a transport and returns its structured content, or else its text, after a `!` if it failed.
pub(crate) async fn call(server: &Server, tool: &str, arguments: Value) -> Value {
    let result = server.call(tool, arguments).await.unwrap();
    match result.structured {
        Some(structured) => structured.decode().unwrap(),
        None => {
            let text = result.content.first().and_then(|content| content.as_text()).unwrap_or_default();
            json!(format!("{}{text}", if result.is_error { "!" } else { "" }))
        }
    }
}
