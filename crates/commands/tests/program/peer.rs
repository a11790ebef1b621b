use std::future::poll_fn;

use serde_json::{Value, json};
use trunkline_server::Host;
use trunkline_server::transport::{Channel as _, MemoryChannel};

use crate::support::DEADLINE;

/// A client at the other end of a channel within this process.
pub(crate) struct LegacyPeer {
    channel: MemoryChannel,
    next: u64,
}

impl LegacyPeer {
    /// Shakes hands in the newest legacy revision.
    pub(crate) async fn legacy(host: &Host, capabilities: Value) -> Self {
        let mut peer = Self { channel: host.connect(), next: 0 };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let hello = peer.request("initialize", params).await;
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        peer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.channel.send(&message.to_string());
        let flushed = tokio::time::timeout(DEADLINE, poll_fn(|cx| self.channel.poll_flush(cx)));
        flushed.await.expect("the server reads").unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let received = tokio::time::timeout(DEADLINE, poll_fn(|cx| self.channel.poll_receive(cx)));
        let message = received.await.expect("the server answers").expect("the channel goes on").unwrap();
        serde_json::from_slice(&message).unwrap()
    }

    /// Sends a request and returns its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Sends a request and returns everything up to its answer, which is the last.
    pub(crate) async fn exchange(&mut self, method: &str, params: Value) -> Vec<Value> {
        let id = self.begin(method, params).await;
        let mut messages = Vec::new();
        loop {
            messages.push(self.receive().await);
            if messages.last().is_some_and(|last| last["id"] == id && last.get("method").is_none()) {
                return messages;
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.exchange(method, params).await.pop().unwrap()
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        answer.get("result").cloned().unwrap_or_else(|| panic!("{tool}: {answer}"))
    }
}

/// Returns the text of a result's blocks.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}
