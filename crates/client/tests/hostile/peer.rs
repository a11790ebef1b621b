//! A server that a test scripts step by step, at the other end of a channel in memory.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Mutex;
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientBuilder, Error};
use trunkline_transport::{ChannelOpener, LineChannel};

/// A revision of each era; every test that can be is made in both.
pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// How long a server may be silent in these tests. Their clock is paused, and advances when all tasks wait.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// The server's end of a channel.
pub(crate) struct ScriptedChannel {
    pub(crate) reader: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) writer: WriteHalf<DuplexStream>,
}

impl ScriptedChannel {
    /// Makes both ends of a channel.
    pub(crate) fn pair(
        message_bytes: usize,
    ) -> (LineChannel<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>, Self) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        let channel = LineChannel::new(reader, writer, message_bytes);
        let (reader, writer) = tokio::io::split(theirs);
        (channel, Self { reader: BufReader::new(reader), writer })
    }

    /// Receives the next message; nothing once the client is gone.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.reader.read_line(&mut line).await.unwrap_or(0);
        (count > 0).then(|| serde_json::from_str(&line).expect("the client writes JSON"))
    }

    /// Receives the next request of a method and returns its id; everything else is passed over.
    pub(crate) async fn request(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("the client left before `{method}`"));
            if message["method"] == method {
                return message["id"].clone();
            }
        }
    }

    /// Receives the next call of a tool, and returns the id and the tool's name.
    pub(crate) async fn call(&mut self) -> (Value, String) {
        loop {
            let message = self.next().await.expect("the client left before it called");
            if message["method"] == "tools/call" {
                return (message["id"].clone(), message["params"]["name"].as_str().unwrap().to_owned());
            }
        }
    }

    /// Sends a message. A client that is gone is not this script's business.
    pub(crate) async fn send(&mut self, message: Value) {
        self.bytes(format!("{message}\n").as_bytes()).await;
    }

    /// Sends raw bytes; reports whether the client still read them.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.writer.write_all(bytes).await.is_ok()
    }

    /// Answers a request with a result.
    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    /// Answers a call of a tool with a text.
    pub(crate) async fn answer_text(&mut self, id: &Value, text: &str) {
        self.answer(id, text_result(text)).await;
    }

    /// Does what has to be done before the first call.
    pub(crate) async fn handshake(&mut self, revision: Revision) {
        let capabilities =
            json!({ "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "logging": {} });
        if revision == Revision::V2026_07_28 {
            let id = self.request("server/discover").await;
            let result = json!({ "resultType": "complete", "supportedVersions": [revision.as_str()], "capabilities": capabilities });
            self.answer(&id, result).await;
            return;
        }
        let id = self.request("initialize").await;
        let info = json!({ "name": "hostile", "version": "1" });
        let result =
            json!({ "protocolVersion": revision.as_str(), "capabilities": capabilities, "serverInfo": info });
        self.answer(&id, result).await;
        self.request("notifications/initialized").await;
    }

    /// Answers every call of a tool with the tool's name, until the client leaves.
    pub(crate) async fn serve_calls(&mut self) {
        while let Some(message) = self.next().await {
            if message["method"] == "tools/call" {
                let name = message["params"]["name"].as_str().unwrap().to_owned();
                self.answer_text(&message["id"], &name).await;
            }
        }
    }
}

/// The result of a call that is nothing but a text.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// Connects to a server that runs a script once it has shaken hands.
pub(crate) async fn connect<F>(revision: Revision, script: impl FnOnce(ScriptedChannel) -> F) -> Client
where
    F: Future<Output = ()> + Send + 'static,
{
    connect_with(Client::builder(), revision, script).await.expect("a server that shakes hands")
}

/// Connects with options to a server that runs a script once it has shaken hands.
pub(crate) async fn connect_with<F>(
    builder: ClientBuilder,
    revision: Revision,
    script: impl FnOnce(ScriptedChannel) -> F,
) -> Result<Client, Error>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (channel, mut peer) = ScriptedChannel::pair(1 << 20);
    let channel = Arc::new(Mutex::new(Some(channel)));
    let opener = ChannelOpener::new("a hostile server", move || {
        let channel = Arc::clone(&channel);
        async move { channel.lock().await.take().ok_or_else(|| std::io::Error::other("it is opened once")) }
    });
    let connecting = builder.pin(revision).connect(opener);
    let (client, ()) = tokio::join!(connecting, peer.handshake(revision));
    let client = client?;
    tokio::spawn(script(peer));
    Ok(client)
}

/// Calls a tool and gives its text, or what went wrong.
pub(crate) async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    client.call(tool, json!({})).await.map(|result| result.text())
}

/// Waits for something that must not take for ever, as time is measured here.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let deadline = Duration::from_secs(24 * 3600);
    tokio::time::timeout(deadline, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}
