//! The example of all transports, as its users start it: a process of its own that answers on all of them at once.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "this is a test, without a harness that would say so"
)]

#[path = "../../../examples/every_transport.rs"]
mod example;

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The variable that makes this program the example.
const CHILD: &str = "TRUNKLINE_EVERY_TRANSPORT";

/// Long enough for any machine, and only ever waited for by a test that fails.
const DEADLINE: Duration = Duration::from_secs(20);

fn main() -> trunkline::Result<()> {
    if std::env::var_os(CHILD).is_some() {
        return example::main();
    }
    // Reading from a pipe has no deadline of its own.
    let (done, over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        one_server_answers_over_every_transport_at_once();
        done.send(())
    });
    Ok(over.recv_timeout(DEADLINE * 3)?)
}

fn one_server_answers_over_every_transport_at_once() {
    let mut run = Example::start();
    run.over_pipes();
    run.over_streamable_http();
    run.over_http_and_sse();
    run.over_websocket();
    run.over_unix_socket();
    run.ends_with_its_input();
}

struct Example {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
    socket: PathBuf,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The message that calls the tool, and the expected response, in an era.
fn hello(id: u64, name: &str, modern: bool) -> Value {
    let mut params = json!({ "name": "hello", "arguments": { "name": name } });
    if modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn initialize() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

#[track_caller]
fn assert_hello(answer: &Value, id: u64, name: &str) {
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], format!("hello {name}"), "{answer}");
}

/// Calls the tool in both eras over a channel of lines.
fn over_lines(mut write: impl Write, read: &mut impl BufRead, name: &str) {
    for message in [initialize(), hello(1, name, false), hello(2, name, true)] {
        write.write_all(format!("{message}\n").as_bytes()).expect("the example reads");
    }
    let mut hear = || -> Value {
        let mut line = String::new();
        assert!(read.read_line(&mut line).expect("an answer") > 0, "the example goes on");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(hear()["result"]["protocolVersion"], "2024-11-05");
    assert_hello(&hear(), 1, name);
    assert_hello(&hear(), 2, name);
}

impl Example {
    #[expect(
        clippy::disallowed_methods,
        reason = "the example is what is tested, and nothing else is started"
    )]
    fn start() -> Self {
        let socket = std::env::temp_dir().join(format!("trunkline-every-{}.sock", std::process::id()));
        let itself = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(itself)
            .args(["127.0.0.1:0".as_ref(), socket.as_os_str()])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut next = |begin: &str| {
            let line = said.next().expect("the example says where it listens").expect("text");
            line.strip_prefix(begin).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let memory: Value = serde_json::from_str(&next("in memory: ")).expect("JSON");
        assert_hello(&memory, 1, "myself");
        let address = next("over HTTP: ").parse().expect("an address");
        Self { child, output, address, socket }
    }

    fn over_pipes(&mut self) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        over_lines(input, &mut self.output, "pipes");
    }

    fn over_unix_socket(&self) {
        let deadline = Instant::now() + DEADLINE;
        let stream = loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::yield_now();
        };
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        over_lines(&stream, &mut BufReader::new(&stream), "socket");
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the example listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        stream
    }

    /// Sends a request and returns the connection, from which the response is to be read.
    fn request(&self, start: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let length = body.len();
        let request = format!(
            "{start} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("the example reads");
        BufReader::new(stream)
    }

    fn over_streamable_http(&self) {
        let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
            Mcp-Method: tools/call\r\nMcp-Name: hello\r\nConnection: close\r\n";
        let mut reply = String::new();
        let call = hello(1, "http", true).to_string();
        self.request("POST /mcp", headers, &call).read_to_string(&mut reply).expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        let body = reply.split_once("\r\n\r\n").expect("a head").1;
        assert_hello(&serde_json::from_str(body).expect("JSON"), 1, "http");
    }

    fn over_http_and_sse(&self) {
        let mut events = self.request("GET /sse", "Accept: text/event-stream\r\n", "");
        let mut data = || loop {
            let mut line = String::new();
            assert!(events.read_line(&mut line).expect("an event") > 0, "the stream goes on");
            if let Some(data) = line.strip_prefix("data: ") {
                return data.trim_end().to_owned();
            }
        };
        let messages = data();
        for message in [initialize(), hello(1, "sse", false)] {
            let mut reply = String::new();
            let start = format!("POST {messages}");
            let mut posted = self.request(&start, "Connection: close\r\n", &message.to_string());
            posted.read_to_string(&mut reply).expect("a reply");
            assert!(reply.starts_with("HTTP/1.1 202"), "{reply}");
        }
        let hello: Value = serde_json::from_str(&data()).expect("JSON");
        assert_eq!(hello["result"]["protocolVersion"], "2024-11-05");
        assert_hello(&serde_json::from_str(&data()).expect("JSON"), 1, "sse");
    }

    fn over_websocket(&self) {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let headers = format!(
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        );
        let mut stream = self.request("GET /ws", &headers, "");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("a head") > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        let accepted = trunkline::transport::accept_key(key.as_bytes());
        assert!(head.contains(&accepted), "{head}");
        for message in [initialize(), hello(1, "websocket", false), hello(2, "websocket", true)] {
            stream.get_mut().write_all(&frame(&message.to_string())).expect("the example reads");
        }
        assert_eq!(unframe(&mut stream)["result"]["protocolVersion"], "2024-11-05");
        assert_hello(&unframe(&mut stream), 1, "websocket");
        assert_hello(&unframe(&mut stream), 2, "websocket");
    }

    fn ends_with_its_input(mut self) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("the output ends");
        assert_eq!(rest, "", "nothing but answers is written");
        let status = self.child.wait().expect("the example ends");
        assert!(status.success(), "{status}");
        assert!(!self.socket.exists(), "the socket is gone");
    }
}

/// A text message as a client sends it, masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a short message");
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

fn unframe(stream: &mut impl BufRead) -> Value {
    let mut bytes = |count: usize| {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).expect("a frame");
        bytes
    };
    let [0x81, length] = bytes(2)[..] else { panic!("not a whole text message") };
    let length = match length {
        126 => bytes(2).iter().fold(0, |length, byte| length * 256 + usize::from(*byte)),
        short => usize::from(short),
    };
    serde_json::from_slice(&bytes(length)).expect("JSON")
}
