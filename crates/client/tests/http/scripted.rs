//! Scripted servers: a function of each request makes the bytes of the response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A server that is a script, and what it has seen.
#[derive(Clone)]
pub(crate) struct ScriptedHttpServer {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    /// Notified when a client disconnects before the end of a response.
    left: Arc<Notify>,
}

/// A request that a script has seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    /// How many came before it.
    pub(crate) number: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

/// The response of a script to a request.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedResponse {
    bytes: Vec<u8>,
    then: AfterResponse,
}

#[derive(Clone, Copy, Debug)]
enum AfterResponse {
    /// The connection stays, for the next request.
    Keep,
    /// The connection is closed.
    Close,
    /// The server sends no more, and the connection stays open.
    Hang,
    /// The server repeats the last part without an end.
    Repeat,
}

impl ScriptedHttpServer {
    pub(crate) async fn start(
        script: impl Fn(&SeenRequest) -> ScriptedResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let scripted = Self { url, seen: Arc::default(), left: Arc::default() };
        let (script, seen, left) = (Arc::new(script), scripted.seen.clone(), scripted.left.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, script.clone(), seen.clone(), left.clone()));
            }
        });
        scripted
    }

    /// Returns the requests so far, in the order in which they came.
    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns what the requests were, in few words.
    pub(crate) fn request_names(&self) -> Vec<String> {
        self.seen().iter().map(SeenRequest::request_name).collect()
    }

    /// Waits until a client disconnects before the end of a response.
    pub(crate) async fn client_disconnected(&self) {
        crate::within(self.left.notified()).await;
    }

    /// Waits until there was a request of these words.
    pub(crate) async fn wait_for_request(&self, words: &str) -> SeenRequest {
        crate::within(async {
            loop {
                if let Some(seen) = self.seen().into_iter().find(|seen| seen.request_name() == words) {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

impl SeenRequest {
    /// Returns the method of the JSON-RPC request, or the HTTP method if there is none.
    pub(crate) fn request_name(&self) -> String {
        match (self.body["method"].as_str(), self.body.get("id")) {
            (Some(method), _) => method.to_owned(),
            (None, Some(_)) => "answer".to_owned(),
            (None, None) => self.method.clone(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Answers with a result.
    pub(crate) fn result(&self, result: Value) -> ScriptedResponse {
        ScriptedResponse::json(200, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    /// Answers with an error.
    pub(crate) fn error(&self, status: u16, code: i64, data: Value) -> ScriptedResponse {
        let error = json!({ "code": code, "message": "no", "data": data });
        ScriptedResponse::json(status, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error }))
    }

    /// Returns the result of a tool as the event of a stream.
    pub(crate) fn text_event(&self, text: &str) -> String {
        text_event(&self.body["id"], text)
    }

    /// Responds to what every session needs, in the requested revision; there is no standalone stream.
    pub(crate) fn session(&self) -> Option<ScriptedResponse> {
        Some(match self.request_name().as_str() {
            "server/discover" => self.error(404, -32601, Value::Null),
            "initialize" => self
                .result(json!({ "protocolVersion": self.body["params"]["protocolVersion"],
                    "serverInfo": { "name": "s", "version": "1" },
                    "capabilities": { "tools": { "listChanged": true } } }))
                .with("mcp-session-id", "the-session"),
            "notifications/initialized" | "notifications/cancelled" => ScriptedResponse::status(202, ""),
            "GET" => ScriptedResponse::status(405, ""),
            "DELETE" => ScriptedResponse::status(204, ""),
            _ => return None,
        })
    }

    /// Does what every modern server needs.
    pub(crate) fn discover(&self) -> Option<ScriptedResponse> {
        (self.request_name() == "server/discover").then(|| {
            self.result(json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                "cacheScope": "private", "capabilities": { "tools": {} } }))
        })
    }
}

/// Returns the result of a tool as the event of a stream.
pub(crate) fn text_event(id: &Value, text: &str) -> String {
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

impl ScriptedResponse {
    /// Writes these bytes, whatever they are, and closes.
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), then: AfterResponse::Close }
    }

    /// Answers with a status and a text for people.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        let length =
            if status == 204 { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let head = format!("HTTP/1.1 {status} Status\r\n{length}");
        Self { bytes: format!("{head}\r\n{body}").into(), then: AfterResponse::Keep }
    }

    /// Answers with JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::status(status, &body.to_string()).with("content-type", "application/json")
    }

    /// Answers with a stream that ends.
    pub(crate) fn events(events: &str) -> Self {
        let mut said = Self::endless_events(events);
        said.bytes.extend(b"0\r\n\r\n");
        Self { then: AfterResponse::Keep, ..said }
    }

    /// Answers with a stream that never ends.
    pub(crate) fn endless_events(events: &str) -> Self {
        let mut bytes =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_vec();
        if !events.is_empty() {
            bytes.extend(format!("{:x}\r\n{events}\r\n", events.len()).into_bytes());
        }
        Self { bytes, then: AfterResponse::Hang }
    }

    /// Sends no bytes.
    pub(crate) fn nothing() -> Self {
        Self { bytes: Vec::new(), then: AfterResponse::Hang }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let line = format!("{name}: {value}\r\n");
        let at = self.bytes.windows(2).position(|window| window == b"\r\n").unwrap() + 2;
        self.bytes.splice(at..at, line.into_bytes());
        self
    }

    /// Sends only that many bytes of the response, and closes.
    pub(crate) fn cut(mut self, at: usize) -> Self {
        self.bytes.truncate(at);
        Self { then: AfterResponse::Close, ..self }
    }

    /// Sends the whole response, and closes.
    pub(crate) fn and_close(self) -> Self {
        Self { then: AfterResponse::Close, ..self }
    }

    /// Repeats the last part of the response without an end.
    pub(crate) fn forever(self) -> Self {
        Self { then: AfterResponse::Repeat, ..self }
    }
}

async fn converse(
    mut stream: TcpStream,
    script: Arc<impl Fn(&SeenRequest) -> ScriptedResponse>,
    all: Arc<Mutex<Vec<SeenRequest>>>,
    left: Arc<Notify>,
) -> Option<()> {
    loop {
        let mut seen = read_request(&mut stream).await?;
        {
            let mut all = all.lock().unwrap();
            seen.number = all.len();
            all.push(seen.clone());
        }
        let ScriptedResponse { bytes, then } = script(&seen);
        stream.write_all(&bytes).await.ok()?;
        match then {
            AfterResponse::Keep => {}
            AfterResponse::Close => return None,
            AfterResponse::Hang => {
                while stream.read_u8().await.is_ok() {}
                left.notify_one();
            }
            AfterResponse::Repeat => {
                let body = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
                while stream.write_all(&bytes[body..]).await.is_ok() {}
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<SeenRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(SeenRequest { number: 0, method, path, headers, body })
}
