use std::future::poll_fn;
use std::task::Poll;

use serde_json::{Value, json};
use trunkline_server::Host;
use trunkline_server::transport::{Channel as _, MemoryChannel};

use super::http::initialize;
use super::{note, settle, within};

/// A client at the other end of a channel. Dropping it ends the channel.
#[derive(Debug)]
pub(crate) struct Peer {
    channel: MemoryChannel,
}

impl Peer {
    pub(crate) fn new(host: &Host) -> Self {
        Self { channel: host.connect() }
    }

    /// Opens a session of a revision.
    pub(crate) async fn initialized(host: &Host, revision: &str) -> Self {
        Self::initialized_with(host, revision, json!({ "elicitation": {}, "sampling": {} })).await
    }

    pub(crate) async fn initialized_with(host: &Host, revision: &str, capabilities: Value) -> Self {
        let mut peer = Self::new(host);
        peer.send(&initialize(revision, capabilities)).await;
        let hello = peer.receive().await;
        assert_eq!(hello["result"]["protocolVersion"], revision, "{hello}");
        peer.send(&note("notifications/initialized", json!({}))).await;
        peer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.channel.send(&message.to_string());
        within(poll_fn(|cx| self.channel.poll_flush(cx))).await.unwrap();
    }

    /// Returns the next message; `None` when the server has ended the channel.
    pub(crate) async fn try_receive(&mut self) -> Option<Value> {
        let message = within(poll_fn(|cx| self.channel.poll_receive(cx))).await?;
        Some(serde_json::from_slice(&message.unwrap()).unwrap())
    }

    pub(crate) async fn receive(&mut self) -> Value {
        self.try_receive().await.expect("the channel goes on")
    }

    /// Returns what has come by the time that the server has nothing left to do.
    pub(crate) async fn received(&mut self) -> Vec<Value> {
        settle().await;
        let mut messages = Vec::new();
        loop {
            match poll_fn(|cx| Poll::Ready(self.channel.poll_receive(cx))).await {
                Poll::Ready(Some(message)) => {
                    messages.push(serde_json::from_slice(&message.unwrap()).unwrap());
                }
                Poll::Ready(None) | Poll::Pending => return messages,
            }
        }
    }

    /// Sends a request and returns everything up to its answer, which is the last.
    pub(crate) async fn exchange(&mut self, request: &Value) -> Vec<Value> {
        self.send(request).await;
        let mut messages = Vec::new();
        loop {
            let message = self.receive().await;
            let over = message["id"] == request["id"] && message.get("method").is_none();
            messages.push(message);
            if over {
                return messages;
            }
        }
    }

    pub(crate) async fn call(&mut self, request: &Value) -> Value {
        self.exchange(request).await.pop().unwrap()
    }
}
