//! HTTP by hand: a peer that breaks the rules cannot be written with a client that keeps them.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::service::DEADLINE;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const LEGACIES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// What came back for one request.
#[derive(Debug)]
pub(crate) struct RawReply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl RawReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Reads the body as JSON, or the last message of an event stream.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = std::str::from_utf8(&self.body).expect("answers are text");
        let json = match self.header("content-type") {
            Some("text/event-stream") => text.lines().rev().find_map(|line| line.strip_prefix("data: ")),
            _ => Some(text),
        };
        serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One connection of a peer that writes what it likes.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    held: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), held: Vec::new() }
    }

    /// Connects with a window so small that what is not read soon stays with the server.
    pub(crate) async fn open_deaf(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        Self { stream: socket.connect(address).await.unwrap(), held: Vec::new() }
    }

    /// Writes as much as the server takes; one that has closed already takes nothing.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = tokio::time::timeout(DEADLINE, self.stream.write_all(bytes)).await.expect("the server reads");
    }

    /// Reads the answer to one request.
    pub(crate) async fn reply(&mut self) -> RawReply {
        self.reply_or_end().await.expect("the server closed instead of answering")
    }

    /// Reads the answer to one request, or nothing if the server closes instead.
    pub(crate) async fn reply_or_end(&mut self) -> Option<RawReply> {
        tokio::time::timeout(DEADLINE, self.read_reply()).await.expect("an answer in time")
    }

    async fn read_reply(&mut self) -> Option<RawReply> {
        let head_end = self.read_to(b"\r\n\r\n").await?;
        let head = String::from_utf8(self.held.drain(..head_end).collect()).expect("a head is text");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut reply = RawReply { status, head, body: Vec::new() };
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.read_chunk().await {
                reply.body.extend(chunk);
            }
        } else if let Some(length) = reply.header("content-length").and_then(|text| text.parse().ok()) {
            while self.held.len() < length && self.fill().await {}
            reply.body = self.held.drain(..length.min(self.held.len())).collect();
        }
        Some(reply)
    }

    /// Reads the head of a response that is an event stream.
    pub(crate) async fn stream_head(&mut self) -> String {
        let end = tokio::time::timeout(DEADLINE, self.read_to(b"\r\n\r\n")).await.expect("a head in time");
        String::from_utf8(self.held.drain(..end.expect("a head")).collect()).expect("a head is text")
    }

    /// Reads one chunk of a chunked body; nothing after the last.
    pub(crate) async fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let end = self.read_to(b"\r\n").await?;
        let line: Vec<u8> = self.held.drain(..end).collect();
        let size = usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim(), 16).ok()?;
        while self.held.len() < size + 2 && self.fill().await {}
        let mut chunk: Vec<u8> = self.held.drain(..(size + 2).min(self.held.len())).collect();
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// Reads chunks until a text was seen; returns everything up to there.
    pub(crate) async fn read_until(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            let chunk = tokio::time::timeout(DEADLINE, self.read_chunk()).await.expect("a chunk in time");
            let chunk = chunk.unwrap_or_else(|| panic!("the stream ended before `{wanted}`: {seen}"));
            seen.push_str(&String::from_utf8(chunk).expect("events are text"));
        }
        seen
    }

    /// Reads the rest of a stream to its end.
    pub(crate) async fn read_rest(&mut self) -> String {
        let mut seen = Vec::new();
        while let Some(chunk) = tokio::time::timeout(DEADLINE, self.read_chunk()).await.expect("in time") {
            seen.extend(chunk);
        }
        String::from_utf8(seen).expect("events are text")
    }

    /// Reads until some bytes were seen, and throws everything up to there away.
    pub(crate) async fn read_past(&mut self, bytes: &[u8]) {
        let end = tokio::time::timeout(DEADLINE, self.read_to(bytes)).await.expect("in time");
        self.held.drain(..end.expect("the server says it before it closes"));
    }

    /// Reads everything that the server sends until it closes the connection.
    pub(crate) async fn all(&mut self) -> String {
        let to_end = async { while self.fill().await {} };
        tokio::time::timeout(DEADLINE, to_end).await.expect("the server closes the connection");
        String::from_utf8(std::mem::take(&mut self.held)).expect("answers are text")
    }

    /// Waits until the server has closed the connection; remaining bytes are discarded.
    pub(crate) async fn ended(&mut self) {
        let to_end = async { while self.fill().await {} };
        tokio::time::timeout(DEADLINE, to_end).await.expect("the server closes the connection");
    }

    async fn read_to(&mut self, pattern: &[u8]) -> Option<usize> {
        loop {
            if let Some(at) = self.held.windows(pattern.len()).position(|window| window == pattern) {
                return Some(at + pattern.len());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        self.held.reserve(16 * 1024);
        self.stream.read_buf(&mut self.held).await.unwrap_or(0) > 0
    }
}

/// Writes a POST with the headers that every client sends; a header given here replaces the usual one of its name.
pub(crate) fn post(headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let usual = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", &length),
    ];
    let kept =
        usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    let mut request = b"POST /mcp HTTP/1.1\r\n".to_vec();
    for (name, value) in kept.chain(headers) {
        request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body);
    request
}

/// Writes a request of a client that keeps the modern rules.
pub(crate) fn modern(method: &str, name: &str, body: &str) -> Vec<u8> {
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", name)];
    post(&headers, body.as_bytes())
}

/// Writes a request of a legacy session.
pub(crate) fn legacy(session: &str, body: &str) -> Vec<u8> {
    post(&[("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", session)], body.as_bytes())
}

/// Writes a request without a body, such as a GET.
pub(crate) fn bare(method: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut request = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// The `_meta` of a modern request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "peer", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    })
}

/// A modern call of a tool.
pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta() });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// A modern call of `echo`.
pub(crate) fn echo(id: u64, message: &str) -> String {
    call(id, "echo", &json!({ "message": message }))
}

/// A legacy call of a tool, which requests progress.
pub(crate) fn legacy_call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "p" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// A modern subscription to everything.
pub(crate) fn listen(id: u64) -> String {
    let wanted = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["test://"] });
    let params = json!({ "notifications": wanted, "_meta": meta() });
    json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params }).to_string()
}

/// The legacy handshake.
pub(crate) fn initialize(revision: &str) -> String {
    let client = json!({ "name": "peer", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}
