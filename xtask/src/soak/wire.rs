//! Requests written by hand over plain sockets, since hostile peers cannot be written with a client that behaves.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::TaskResult;

const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// One connection that is kept open between requests.
#[derive(Debug)]
pub(crate) struct RawHttpClient {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct RawHttpReply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl RawHttpReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl RawHttpClient {
    pub(crate) fn connect(address: SocketAddr) -> TaskResult<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(READ_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> TaskResult {
        Ok(self.stream.write_all(request)?)
    }

    /// Sends a request and reads its answer, which must have a known length.
    pub(crate) fn request(&mut self, request: &[u8]) -> TaskResult<RawHttpReply> {
        self.send(request)?;
        let head_end = self
            .read_until(|held| held.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4))?;
        let head = String::from_utf8(self.buffer.drain(..head_end).collect())?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        let mut reply = RawHttpReply { status, head, body: String::new() };
        if let Some(length) = reply.header("content-length") {
            let length: usize = length.parse()?;
            self.read_until(|held| (held.len() >= length).then_some(length))?;
            reply.body = String::from_utf8(self.buffer.drain(..length).collect())?;
        }
        Ok(reply)
    }

    /// Waits until the server has sent bytes, such as the beginning of a stream.
    pub(crate) fn wait_for_bytes(&mut self) -> TaskResult {
        self.read_until(|held| (!held.is_empty()).then_some(0)).map(drop)
    }

    fn read_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> TaskResult<usize> {
        loop {
            if let Some(at) = found(&self.buffer) {
                return Ok(at);
            }
            let mut buffer = [0; 16 * 1024];
            let count = self.stream.read(&mut buffer)?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            self.buffer.extend(buffer.iter().take(count));
        }
    }
}

/// Asserts that a well-behaved client is served.
pub(crate) fn assert_served(address: SocketAddr) -> TaskResult {
    let body = modern("server/discover", "");
    let reply = RawHttpClient::connect(address)?.request(&post(MODERN_DISCOVER, &body))?;
    if reply.status == 200 { Ok(()) } else { Err(format!("the server answers {}", reply.status).into()) }
}

const MODERN_DISCOVER: &str = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";

/// The headers of a modern call of a tool.
pub(crate) fn call_headers(tool: &str) -> String {
    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
}

/// Writes a POST; `headers` are whole lines.
pub(crate) fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Writes a modern request; `members` are further members of its parameters, each with a comma after it.
pub(crate) fn modern(method: &str, members: &str) -> Vec<u8> {
    modern_with_id(1, method, members)
}

pub(crate) fn modern_with_id(id: usize, method: &str, members: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
    .into_bytes()
}

/// The legacy handshake.
pub(crate) fn initialize() -> Vec<u8> {
    post(
        "",
        br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#,
    )
}

/// A legacy call of the tool that every target for sessions has.
pub(crate) fn legacy_call(session: &str) -> Vec<u8> {
    post(
        &format!("Mcp-Session-Id: {session}\r\n"),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"soak"}}}"#,
    )
}

/// A request without a body in a legacy session.
pub(crate) fn bare(method: &str, session: &str) -> Vec<u8> {
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    )
    .into_bytes()
}
