use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline_client::transport::{ChannelOpener, MockPeer, mock};

/// A scripted peer: each connection is a mock with responses from one function.
#[derive(Clone, Default)]
pub(crate) struct ScriptedPeer {
    connections: Arc<Mutex<Vec<MockPeer>>>,
}

/// What a script does about a message.
pub(crate) enum ScriptAction {
    /// Nothing.
    Wait,
    /// Answers with a result.
    Result(Value),
    /// Answers with an error.
    Error(Value),
    /// Sends a text.
    Say(String),
    /// Sends no more messages.
    End,
}

impl ScriptedPeer {
    /// Makes a target with a peer that reacts to each message by a function of the connection's number and the message.
    pub(crate) fn new(
        act: impl Fn(usize, &Value) -> ScriptAction + Send + Sync + 'static,
    ) -> (Self, ChannelOpener) {
        let script = Self::default();
        let (act, opened) = (Arc::new(act), script.clone());
        let opener = ChannelOpener::new("a script", move || {
            let (mock, channel) = mock();
            let number = {
                let mut connections = opened.connections.lock().unwrap();
                connections.push(mock.clone());
                connections.len() - 1
            };
            let (act, handle) = (act.clone(), mock.clone());
            mock.respond_with(move |sent| {
                play(act(number, &serde_json::from_str(sent).unwrap()), sent, &handle)
            });
            std::future::ready(Ok(channel))
        });
        (script, opener)
    }

    /// Returns the newest connection.
    pub(crate) fn newest(&self) -> MockPeer {
        self.connections.lock().unwrap().last().expect("somebody has connected").clone()
    }

    /// Returns what was sent over all connections, each in order.
    pub(crate) fn sent(&self) -> Vec<Vec<Value>> {
        let connections = self.connections.lock().unwrap().clone();
        let parse = |message: &String| serde_json::from_str(message).unwrap();
        connections.iter().map(|mock| mock.sent().iter().map(parse).collect()).collect()
    }

    /// Returns the methods that were sent over all connections, each in order.
    pub(crate) fn methods(&self) -> Vec<Vec<String>> {
        let name = |message: &Value| message["method"].as_str().unwrap_or("(a response)").to_owned();
        self.sent().iter().map(|messages| messages.iter().map(name).collect()).collect()
    }

    /// Waits for a message of a method on the newest connection.
    pub(crate) async fn wait_for(&self, method: &str) -> Value {
        let wanted = format!("\"method\":\"{method}\"");
        let sent = self.newest().wait_for(|message| message.contains(&wanted)).await;
        serde_json::from_str(&sent.expect("the connection is open")).unwrap()
    }
}

fn play(act: ScriptAction, sent: &str, mock: &MockPeer) -> Option<String> {
    let message: Value = serde_json::from_str(sent).unwrap();
    // The mock is locked while it calls the function, so that any other action is done a little later.
    let later = |then: Box<dyn FnOnce(MockPeer) + Send>| {
        let mock = mock.clone();
        tokio::spawn(async move { then(mock) });
        None
    };
    match act {
        ScriptAction::Wait => None,
        ScriptAction::Result(result) => {
            Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
        }
        ScriptAction::Error(error) => {
            Some(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string())
        }
        ScriptAction::Say(said) => Some(said),
        ScriptAction::End => later(Box::new(|mock| mock.end())),
    }
}

/// Returns an error of a code.
pub(crate) fn error(code: i64) -> ScriptAction {
    ScriptAction::Error(json!({ "code": code, "message": "no" }))
}

/// What a server of these scripts can do.
fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true }, "logging": {} })
}

/// Answers `server/discover` as a modern server does.
pub(crate) fn described() -> ScriptAction {
    ScriptAction::Result(json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
        "cacheScope": "private", "capabilities": capabilities() }))
}

/// Answers `initialize` as a legacy server does, in a revision of its own.
pub(crate) fn initialized(revision: &str) -> ScriptAction {
    ScriptAction::Result(json!({ "protocolVersion": revision, "serverInfo": { "name": "s", "version": "1" },
        "capabilities": capabilities() }))
}

/// Shakes hands in either era, and has something else done about everything else.
pub(crate) fn or_handshake(message: &Value, act: impl FnOnce(&Value) -> ScriptAction) -> ScriptAction {
    match message["method"].as_str() {
        Some("server/discover") => described(),
        Some("initialize") => initialized(message["params"]["protocolVersion"].as_str().unwrap()),
        Some("notifications/initialized") => ScriptAction::Wait,
        _ => act(message),
    }
}
