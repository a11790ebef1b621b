//! The error −32042 of revision 2025-11-25: a client has to send its user to a page and to repeat the call.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_hub::Hub;
use trunkline_server::{Host, HostOptions};
use trunkline_session::Principal;
use trunkline_transport::{Channel as _, MemoryChannel, memory};

use crate::browser::Browser;
use crate::front::{Front, link_in};
use crate::protected_server::ProtectedServer;
use crate::within;

/// A client that sends and receives messages as they are.
struct RawClient(MemoryChannel);

impl RawClient {
    /// Opens a session with these capabilities.
    async fn open(hub: &Hub, capabilities: Value) -> Self {
        let (ours, theirs) = memory(1 << 20);
        let host = Host::new(hub.clone(), HostOptions::default()).unwrap();
        tokio::spawn(async move { host.serve_channel(ours, Principal::Process).await.map(drop) });
        let mut client = Self(theirs);
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "raw", "version": "1" },
        });
        client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        client.receive(|message| message["id"] == 0).await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.0.send(&message.to_string());
        within(std::future::poll_fn(|cx| self.0.poll_flush(cx))).await.unwrap();
    }

    /// Returns the first message that fits, and skips others.
    async fn receive(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let received = within(std::future::poll_fn(|cx| self.0.poll_receive(cx))).await.unwrap().unwrap();
            let message: Value = serde_json::from_slice(&received).unwrap();
            if fits(&message) {
                return message;
            }
        }
    }

    async fn call(&mut self, id: u64, tool: &str) {
        let params = json!({ "name": tool, "arguments": {} });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
}

fn elicitation_in(answer: &Value) -> Value {
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    let elicitations = answer["error"]["data"]["elicitations"].as_array().unwrap();
    assert_eq!(elicitations.len(), 1, "{answer}");
    assert_eq!(elicitations[0]["mode"], "url", "{answer}");
    elicitations[0].clone()
}

#[tokio::test]
async fn call_that_waits_too_long_for_a_login_requires_the_url_and_is_notified_of_the_end() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_local_user(vec![server.config("notes")]).await;
    let mut client = RawClient::open(&front.hub, json!({ "elicitation": { "url": {} } })).await;
    client.call(1, "notes__whoami").await;
    let asked = client.receive(|message| message["method"] == "elicitation/create").await;
    let accepted = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    client.send(&accepted).await;
    // The answer is read before the ping.
    client.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await;
    client.receive(|message| message["id"] == 9).await;
    // The user takes longer than clients wait for a call.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(46)).await;
    tokio::time::resume();
    let answer = client.receive(|message| message["id"] == 1).await;
    let elicitation = elicitation_in(&answer);
    for member in ["url", "elicitationId"] {
        assert_eq!(elicitation[member], asked["params"][member], "the same login: {answer}");
    }
    let link = elicitation["url"].as_str().unwrap();
    let page = Browser::default().log_in(link, "ann-there").await;
    assert!(page.text.contains("You are logged in"), "{}", page.text);
    let complete = client.receive(|message| message["method"] == "notifications/elicitation/complete").await;
    assert_eq!(complete["params"]["elicitationId"], elicitation["elicitationId"]);
    client.call(2, "notes__whoami").await;
    let answer = client.receive(|message| message["id"] == 2).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ann-there", "{answer}");
}

#[tokio::test]
async fn request_that_cannot_ask_requires_the_url_only_of_clients_that_open_urls() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_local_user(vec![server.config("notes")]).await;
    let mut plain = RawClient::open(&front.hub, json!({})).await;
    let mut opening = RawClient::open(&front.hub, json!({ "elicitation": { "url": {} } })).await;
    plain.call(1, "notes__login").await;
    let answer = plain.receive(|message| message["id"] == 1).await;
    let link = link_in(answer["result"]["content"][0]["text"].as_str().unwrap());
    Browser::default().log_in(&link, "ann-there").await;
    for client in [&mut plain, &mut opening] {
        client.call(2, "notes__whoami").await;
        let answer = client.receive(|message| message["id"] == 2).await;
        assert_eq!(answer["result"]["content"][0]["text"], "ann-there", "{answer}");
    }
    server.issuer.expire_access();
    server.issuer.forget_refresh();
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "diary:day" }, "argument": { "name": "a", "value": "" },
    });
    let request = json!({ "jsonrpc": "2.0", "id": 3, "method": "completion/complete", "params": params });
    opening.send(&request).await;
    let answer = opening.receive(|message| message["id"] == 3).await;
    let elicitation = elicitation_in(&answer);
    assert!(elicitation["url"].as_str().unwrap().starts_with(&front.origin), "{answer}");
    plain.send(&request).await;
    let answer = plain.receive(|message| message["id"] == 3).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("requires a login") && message.contains("/connect/"), "{answer}");
}
