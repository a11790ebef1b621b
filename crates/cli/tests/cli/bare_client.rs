//! An HTTP client that shows every byte, and fixes nothing that a server gets wrong.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::process::DEADLINE;

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends a request on a connection of its own; headers may replace those that are usual.
#[track_caller]
pub(crate) fn send(address: SocketAddr, start: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
    let mut connection = RawConnection::open(address);
    connection.write(&request(address, start, headers, body));
    connection.reply()
}

#[track_caller]
pub(crate) fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> HttpReply {
    send(address, &format!("GET {path}"), headers, "")
}

/// Posts a message to the endpoint, with the headers that its revision wants.
#[track_caller]
pub(crate) fn post(address: SocketAddr, message: &Value, headers: &[(&str, &str)]) -> HttpReply {
    let mut all = mirror_headers(message);
    all.extend_from_slice(headers);
    send(address, "POST /mcp", &all, &message.to_string())
}

/// Returns the headers in which a modern request repeats itself.
pub(crate) fn mirror_headers(message: &Value) -> Vec<(&str, &str)> {
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let Some(version) = version.as_str() else { return Vec::new() };
    let mut headers = vec![("MCP-Protocol-Version", version)];
    headers.extend(message["method"].as_str().map(|method| ("Mcp-Method", method)));
    headers.extend(message["params"]["name"].as_str().map(|name| ("Mcp-Name", name)));
    headers
}

pub(crate) fn request(address: SocketAddr, start: &str, headers: &[(&str, &str)], body: &str) -> String {
    let host = address.to_string();
    let length = body.len().to_string();
    let usual = [
        ("Host", host.as_str()),
        ("Connection", "close"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("Content-Length", length.as_str()),
    ];
    let replaced = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let kept = usual.iter().filter(|(name, _)| !replaced(name));
    let head: String = kept.chain(headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{start} HTTP/1.1\r\n{head}\r\n{body}")
}

/// A connection that stays open as long as a test wants.
pub(crate) struct RawConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl RawConnection {
    #[track_caller]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream, read: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads until a text has come, and returns everything so far.
    #[track_caller]
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        while !String::from_utf8_lossy(&self.read).contains(text) {
            assert!(self.read_more() > 0, "the connection ended before `{text}`: {}", self.seen());
        }
        self.seen()
    }

    /// Reads until the server closes the connection and returns everything that it sent.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> String {
        while self.read_more() > 0 {}
        self.seen()
    }

    #[track_caller]
    fn read_more(&mut self) -> usize {
        let mut buffer = [0; 4096];
        let count = self.stream.read(&mut buffer).expect("bytes, or the end of the connection");
        self.read.extend_from_slice(&buffer[..count]);
        count
    }

    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    #[track_caller]
    fn reply(&mut self) -> HttpReply {
        let text = self.read_to_end();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        HttpReply { status, head: head.to_owned(), body: body.to_owned() }
    }
}

/// A message of a WebSocket as a client sends it, masked with zeros so that it can be read in a dump.
pub(crate) fn frame(kind: u8, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match u8::try_from(message.len()) {
        Ok(length) if length < 126 => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(message);
    frame
}
