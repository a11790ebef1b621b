//! One caller: a connection of its own, written by hand, so that what is checked is what travels.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::PATIENCE;

/// Every caller uses the same ids and the same token, so that only its connection distinguishes it.
const TOKEN: u64 = 7;

/// The revision of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerRevision {
    /// 2025-11-25, in a session.
    Old,
    /// 2026-07-28.
    New,
}

/// A caller.
pub(crate) struct LoadCaller {
    number: usize,
    speech: CallerRevision,
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    session: Option<String>,
    calls: u64,
}

/// What came of a call.
pub(crate) enum CallEnd {
    /// It was answered, with what it should be.
    Answered,
    /// It was refused, in these words.
    Refused(String),
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallOptions {
    pub(crate) steps: u32,
    pub(crate) wait: u64,
}

impl LoadCaller {
    pub(crate) fn connect(address: SocketAddr, number: usize) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let speech = if number.is_multiple_of(2) { CallerRevision::New } else { CallerRevision::Old };
        let stream = BufReader::new(stream);
        let mut caller = Self { number, speech, address, stream, session: None, calls: 0 };
        if speech == CallerRevision::Old {
            caller.initialize();
        }
        caller
    }

    fn initialize(&mut self) {
        let client = json!({ "name": "faults", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.post(&message.to_string(), "");
        let (status, head, body) = self.receive().unwrap();
        assert_eq!(status, 200, "{body}");
        self.session = Some(header(&head, "mcp-session-id").unwrap().to_owned());
        self.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "");
        assert_eq!(self.receive().unwrap().0, 202);
    }

    /// Makes one call of a server's tool, and holds what comes back against what was sent.
    ///
    /// # Errors
    /// What is wrong with what came back: anything but one answer, to this call, with its own text.
    pub(crate) fn call(&mut self, server: &str, how: CallOptions) -> Result<CallEnd, String> {
        self.calls += 1;
        let (id, name) = (self.calls, format!("{server}__echo"));
        let text = format!("caller {} call {id}", self.number);
        let mut meta = json!({ "progressToken": TOKEN });
        if self.speech == CallerRevision::New {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let arguments = json!({ "text": text, "steps": how.steps, "wait": how.wait });
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.post(&message.to_string(), &name);
        let (status, _, body) =
            self.receive().map_err(|error| format!("call {id} of `{server}`: {error}"))?;
        let wrong = |what: &str| Err(format!("call {id} of `{server}`: {what}: {status} {body}"));
        let Some(messages) = messages(&body) else { return wrong("not legible") };
        let mut answers = Vec::new();
        for message in &messages {
            match message["method"].as_str() {
                None => answers.push(message),
                Some("notifications/progress")
                    if message["params"]["progressToken"] == TOKEN
                        && message["params"]["message"] == *text => {}
                Some(_) => return wrong("a notification that is not its own"),
            }
        }
        let [answer] = answers.as_slice() else { return wrong("not one answer") };
        if answer["id"] != id {
            return wrong("the answer to something else");
        }
        if let Some(problem) = answer["error"]["message"].as_str() {
            return Ok(CallEnd::Refused(problem.to_owned()));
        }
        let said = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        match answer["result"]["isError"] == true {
            true => Ok(CallEnd::Refused(said.to_owned())),
            false if status == 200 && said == format!("{server}:{text}") => Ok(CallEnd::Answered),
            false => wrong("another answer"),
        }
    }

    fn post(&mut self, body: &str, name: &str) {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        head.push_str(&match (self.speech, &self.session) {
            (CallerRevision::New, _) => {
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n")
            }
            (CallerRevision::Old, None) => String::new(),
            (CallerRevision::Old, Some(session)) => {
                format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
            }
        });
        self.stream.get_mut().write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    }

    /// Reads one response: its status, its head and its whole body.
    fn receive(&mut self) -> std::io::Result<(u16, String, String)> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(std::io::Error::other("the hub closed the connection"));
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let mut body = Vec::new();
        match header(&head, "content-length") {
            Some(length) => {
                body.resize(length.parse().unwrap(), 0);
                self.stream.read_exact(&mut body)?;
            }
            None if header(&head, "transfer-encoding").is_some() => self.read_chunks(&mut body)?,
            None => {}
        }
        Ok((status, head, String::from_utf8(body).unwrap()))
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> std::io::Result<()> {
        loop {
            let mut size = String::new();
            self.stream.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim_end(), 16).map_err(std::io::Error::other)?;
            let begin = body.len();
            // With the end of the line behind it.
            body.resize(begin + size + 2, 0);
            self.stream.read_exact(&mut body[begin..])?;
            body.truncate(begin + size);
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Leaves: ends the session if there is one.
    pub(crate) fn leave(mut self) {
        if let Some(session) = self.session.take() {
            let head = format!(
                "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n",
                self.address
            );
            self.stream.get_mut().write_all(head.as_bytes()).unwrap();
            let (status, ..) = self.receive().unwrap();
            assert!((200..300).contains(&status), "{status}");
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Reads the messages of a body, which is one of JSON or a stream of events.
fn messages(body: &str) -> Option<Vec<Value>> {
    if body.starts_with('{') {
        return Some(vec![serde_json::from_str(body).ok()?]);
    }
    let data = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).ok()).collect()
}
