use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::transport::{ChannelOpener, MockPeer, mock};

/// A scripted server: each connection is a mock with responses from one function.
#[derive(Clone)]
pub(crate) struct ScriptedServer {
    connections: Arc<Mutex<Vec<MockPeer>>>,
}

impl ScriptedServer {
    /// Returns the newest connection.
    pub(crate) fn newest(&self) -> MockPeer {
        self.connections.lock().unwrap().last().cloned().expect("somebody has connected")
    }

    /// Returns one of the connections that there ever were, counted from zero.
    pub(crate) fn connection(&self, number: usize) -> MockPeer {
        self.connections.lock().unwrap()[number].clone()
    }

    /// Returns the messages of a method that came over one connection.
    pub(crate) fn of_connection(&self, number: usize, method: &str) -> Vec<Value> {
        let sent = self.connection(number).sent().into_iter();
        let sent = sent.map(|message| serde_json::from_str::<Value>(&message).unwrap());
        sent.filter(|message| message["method"] == method).collect()
    }

    /// Answers a call over one connection.
    pub(crate) fn answer_over(&self, number: usize, call: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": call["id"], "result": result });
        self.connection(number).receive(answer.to_string());
    }

    /// Returns how many connections there are.
    pub(crate) fn open(&self) -> usize {
        let connections = self.connections.lock().unwrap().clone();
        connections.iter().filter(|connection| !connection.is_closed()).count()
    }

    /// Returns everything that was sent, over all connections.
    pub(crate) fn sent(&self) -> Vec<Value> {
        let connections = self.connections.lock().unwrap().clone();
        let sent = connections.iter().flat_map(MockPeer::sent);
        sent.map(|message| serde_json::from_str(&message).unwrap()).collect()
    }

    /// Sends a message over the newest connection.
    pub(crate) fn send(&self, message: &Value) {
        self.newest().receive(message.to_string());
    }

    /// Returns the answer that a question of this id got, if it got one.
    pub(crate) fn answer_to(&self, id: &Value) -> Option<Value> {
        self.sent().into_iter().find(|message| message.get("method").is_none() && message["id"] == *id)
    }

    /// Answers a call that was received over the newest connection.
    pub(crate) fn answer(&self, call: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }));
    }

    /// Waits until as many messages of a method have come, and returns them.
    pub(crate) async fn received(&self, method: &str, count: usize) -> Vec<Value> {
        super::until(|| self.of(method).len() >= count).await;
        self.of(method)
    }

    /// Waits for the answer to a question, and returns it.
    pub(crate) async fn answered(&self, id: &Value) -> Value {
        super::until(|| self.answer_to(id).is_some()).await;
        self.answer_to(id).unwrap_or_default()
    }

    /// Returns the messages of a method.
    pub(crate) fn of(&self, method: &str) -> Vec<Value> {
        self.sent().into_iter().filter(|message| message["method"] == method).collect()
    }
}

/// One connection to a script, from the script's side.
#[derive(Clone)]
pub(crate) struct ScriptConnection {
    /// Connections are counted from zero.
    pub(crate) number: usize,
    mock: MockPeer,
}

impl ScriptConnection {
    /// Sends a message, after the one that is being written.
    pub(crate) fn send(&self, message: Value) {
        let mock = self.mock.clone();
        tokio::spawn(async move { mock.receive(message.to_string()) });
    }

    /// Sends a message at once, which is possible only from a task of its own.
    pub(crate) fn send_now(&self, message: &Value) {
        self.mock.receive(message.to_string());
    }

    /// Answers a call.
    pub(crate) fn answer(&self, call: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }));
    }
}

/// The response of a script to a message: a result, an error, or none.
pub(crate) enum ScriptReply {
    Result(Value),
    Error(Value),
    Nothing,
    /// The default response of every script.
    AsUsual,
}

/// Makes a server with one tool, `t`, that responds by a function.
pub(crate) fn script(
    says: impl Fn(&ScriptConnection, &Value) -> ScriptReply + Send + Sync + 'static,
) -> (ScriptedServer, ChannelOpener) {
    let script = ScriptedServer { connections: Arc::default() };
    let (opened, says) = (script.clone(), Arc::new(says));
    let opener = ChannelOpener::new("a script", move || {
        let (mock, channel) = mock();
        let number = {
            let mut connections = opened.connections.lock().unwrap();
            connections.push(mock.clone());
            connections.len() - 1
        };
        let (says, peer) = (says.clone(), ScriptConnection { number, mock: mock.clone() });
        mock.respond_with(move |sent| {
            let message: Value = serde_json::from_str(sent).unwrap();
            let answered = match says(&peer, &message) {
                ScriptReply::AsUsual => usual(&message),
                other => other,
            };
            // Answers of ours are nothing to answer.
            let id = message.get("id").filter(|_| message.get("method").is_some())?;
            match answered {
                ScriptReply::Result(result) => Some(json!({ "jsonrpc": "2.0", "id": id, "result": result })),
                ScriptReply::Error(error) => Some(json!({ "jsonrpc": "2.0", "id": id, "error": error })),
                ScriptReply::Nothing | ScriptReply::AsUsual => None,
            }
            .map(|answer| answer.to_string())
        });
        std::future::ready(Ok(channel))
    });
    (script, opener)
}

fn usual(message: &Value) -> ScriptReply {
    let info = json!({ "name": "script", "version": "1" });
    let capabilities = json!({ "tools": {}, "resources": {} });
    ScriptReply::Result(match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "serverInfo": info,
            "capabilities": capabilities,
        }),
        "server/discover" => json!({
            "resultType": "complete",
            "supportedVersions": [Revision::NEWEST.as_str()],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        "tools/list" => json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "tools/call" => text_result("t"),
        "ping" => json!({}),
        _ => return ScriptReply::Nothing,
    })
}

/// The result of a tool with this text.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}
