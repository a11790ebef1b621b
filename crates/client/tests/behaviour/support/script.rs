use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline_client::transport::{Mock, Opener, mock};

/// A peer that is a script: each connection is a mock whose answers come from one function.
#[derive(Clone)]
pub(crate) struct Script {
    connections: Arc<Mutex<Vec<Mock>>>,
}

impl Script {
    /// Returns the connections so far, oldest first.
    pub(crate) fn connections(&self) -> Vec<Mock> {
        self.connections.lock().unwrap().clone()
    }

    /// Returns the newest connection.
    pub(crate) fn newest(&self) -> Mock {
        self.connections().pop().expect("somebody has connected")
    }

    /// Returns what was sent over a connection, parsed.
    pub(crate) fn sent(&self, connection: usize) -> Vec<Value> {
        let sent = self.connections()[connection].sent();
        sent.iter().map(|message| serde_json::from_str(message).unwrap()).collect()
    }
}

/// Makes a target whose peer answers each message by a function of it and of the connection's number.
pub(crate) fn opener(
    answer: impl Fn(usize, &Value) -> Option<Value> + Send + Sync + 'static,
) -> (Script, Opener) {
    let script = Script { connections: Arc::default() };
    let (answer, opened) = (Arc::new(answer), script.clone());
    let opener = Opener::new("a script", move || {
        let (mock, channel) = mock();
        let number = {
            let mut connections = opened.connections.lock().unwrap();
            connections.push(mock.clone());
            connections.len() - 1
        };
        let answer = answer.clone();
        mock.answer(move |sent| {
            let message: Value = serde_json::from_str(sent).unwrap();
            answer(number, &message).map(|answer| answer.to_string())
        });
        std::future::ready(Ok(channel))
    });
    (script, opener)
}

/// Answers a message with a result.
pub(crate) fn result(message: &Value, result: Value) -> Option<Value> {
    Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// Answers `server/discover` as a modern server does.
pub(crate) fn described(message: &Value) -> Option<Value> {
    result(
        message,
        json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "logging": {} } }),
    )
}

/// Answers `initialize` as a legacy server does, in the revision that it is asked for.
pub(crate) fn initialized(message: &Value) -> Option<Value> {
    result(
        message,
        json!({ "protocolVersion": message["params"]["protocolVersion"], "serverInfo": { "name": "s", "version": "1" },
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "logging": {} } }),
    )
}
