//! A client over each of the transports: messages go in and come out.

use std::future::poll_fn;
use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use trunkline_server::session::Principal;
use trunkline_server::transport::process::ServerProcess;
use trunkline_server::transport::{Channel, LineChannel, WebSocketChannel, WebSocketRole};

use crate::http_client::{EventReader, send, to};
use crate::service::{Service, variable, within};

/// The transports, by name.
pub(crate) const TRANSPORTS: &[&str] = &["memory", "lines", "unix", "sse", "websocket", "streamable"];

const LIMIT: usize = 8 << 20;

/// The header by which clients send their variable.
const HEADER: &str = "x-env-path";

/// A client. Dropping it ends the connection, or whatever stands for one.
pub(crate) enum TransportLink {
    Channel {
        channel: Box<dyn Channel>,
        /// The process at the other end, if it is one, which ends with this.
        _process: Option<ServerProcess>,
    },
    Sse {
        address: SocketAddr,
        messages: String,
        events: Box<EventReader>,
    },
    Streamable(StreamableLink),
}

/// A client of the endpoint that collects all responses in one queue.
pub(crate) struct StreamableLink {
    address: SocketAddr,
    variable: Option<String>,
    session: Option<String>,
    sender: mpsc::Sender<Value>,
    receiver: mpsc::Receiver<Value>,
}

impl TransportLink {
    /// Opens a line on which the client brings its variable, where a transport has a way to.
    pub(crate) async fn open(transport: &str, service: &Service) -> Self {
        Self::open_as(transport, service, Some(&variable())).await
    }

    /// Opens a link with this allowed variable or none, and with one that the operator does not allow.
    pub(crate) async fn open_as(transport: &str, service: &Service, variable: Option<&str>) -> Self {
        let mut headers = vec![("x-env-home", "/nowhere")];
        headers.extend(variable.map(|variable| (HEADER, variable)));
        match transport {
            "stdio" => {
                let (channel, process) = crate::child::open();
                Self::Channel { channel: Box::new(channel), _process: Some(process) }
            }
            "memory" => Self::over(service.host.connect()),
            "lines" => {
                let (ours, theirs) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
                serve(service, LineChannel::new(ours.0, theirs.1, LIMIT));
                Self::over(LineChannel::new(theirs.0, ours.1, LIMIT))
            }
            "unix" => {
                let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
                let (reader, writer) = ours.into_split();
                serve(service, LineChannel::new(reader, writer, LIMIT));
                let (reader, writer) = theirs.into_split();
                Self::over(LineChannel::new(reader, writer, LIMIT))
            }
            "sse" => {
                let (events, messages) = open_sse(service.address, &headers).await;
                Self::Sse { address: service.address, messages, events: Box::new(events) }
            }
            "websocket" => Self::over(open_websocket(service.address, &headers).await),
            _ => {
                let (sender, receiver) = mpsc::channel(64);
                let (address, variable) = (service.address, variable.map(str::to_owned));
                Self::Streamable(StreamableLink { address, variable, session: None, sender, receiver })
            }
        }
    }

    fn over(channel: impl Channel) -> Self {
        Self::Channel { channel: Box::new(channel), _process: None }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        match self {
            Self::Channel { channel, .. } => {
                channel.send(&message.to_string());
                within(poll_fn(|cx| channel.poll_flush(cx))).await.unwrap();
            }
            Self::Sse { address, messages, .. } => {
                let response = send(*address, to(*address, "POST", messages), message.to_string()).await;
                assert_eq!(response.status(), 202);
                assert_eq!(response.collect().await.unwrap().to_bytes(), "Accepted");
            }
            Self::Streamable(client) => client.send(message).await,
        }
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let message = match self {
            Self::Channel { channel, .. } => {
                let message = within(poll_fn(|cx| channel.poll_receive(cx))).await;
                message.map(|message| serde_json::from_slice(&message.unwrap()).unwrap())
            }
            Self::Sse { events, .. } => within(events.message()).await,
            Self::Streamable(client) => within(client.receiver.recv()).await,
        };
        message.expect("the line goes on")
    }
}

/// Opens a stream of HTTP+SSE; returns it and the path to post to.
pub(crate) async fn open_sse(address: SocketAddr, headers: &[(&str, &str)]) -> (EventReader, String) {
    let request = headers
        .iter()
        .fold(to(address, "GET", "/sse"), |request, (name, value)| request.header(*name, *value));
    let response = send(address, request, String::new()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = EventReader::new(response);
    let (name, data) = within(events.next()).await.unwrap();
    assert_eq!(name.as_deref(), Some("endpoint"));
    (events, String::from_utf8(data.to_vec()).unwrap())
}

pub(crate) async fn open_websocket(
    address: SocketAddr,
    headers: &[(&'static str, &str)],
) -> WebSocketChannel<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(response.status(), 101);
    WebSocketChannel::new(socket.into_inner(), WebSocketRole::Client, LIMIT).await
}

fn serve(service: &Service, channel: impl Channel) {
    let host = service.host.clone();
    tokio::spawn(async move { host.serve_channel(channel, Principal::Process).await });
}

impl StreamableLink {
    async fn send(&mut self, message: &Value) {
        let mut request = to(self.address, "POST", "/mcp");
        let is_modern = message["params"]["_meta"].is_object();
        if is_modern || message["method"] == "initialize" {
            request = request.header("x-env-home", "/nowhere");
            if let Some(variable) = &self.variable {
                request = request.header(HEADER, variable);
            }
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some() {
            request = request.header("mcp-protocol-version", "2026-07-28");
            request = request.header("mcp-method", text(&message["method"]));
            if let Some(name) = message["params"].get("name").or_else(|| message["params"].get("uri")) {
                request = request.header("mcp-name", text(name));
            }
        } else if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let response = send(self.address, request, message.to_string()).await;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.to_str().unwrap().to_owned());
        }
        let kind = response.headers().get("content-type").map(|kind| kind.as_bytes().to_owned());
        match kind.as_deref() {
            Some(b"text/event-stream") => {
                let (mut events, sender) = (EventReader::new(response), self.sender.clone());
                tokio::spawn(async move {
                    loop {
                        tokio::select! {
                            () = sender.closed() => return,
                            message = events.message() => match message {
                                Some(message) => drop(sender.send(message).await),
                                None => return,
                            },
                        }
                    }
                });
            }
            Some(_) => {
                let body = response.collect().await.unwrap().to_bytes();
                self.sender.send(serde_json::from_slice(&body).unwrap()).await.unwrap();
            }
            None => assert_eq!(response.status(), 202),
        }
    }
}
