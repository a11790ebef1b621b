//! The memory for messages that are being received: a server that never completes them takes none of that of others.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use trunkline_client::MessageBudget;
use trunkline_config::{
    RemoteEndpoint, RemoteTransport, ServerConfig, ServerLocation, ServerName, StartMode,
};
use trunkline_hub::{ConfigConnector, Hub, HubLimits, HubOptions};

use crate::support::{NEW, plain_client, quick, until, within};

/// What a server sends of each message.
const PART: usize = 256 << 10;

/// The memory for four such messages.
const MEMORY: usize = 4 * PART;

/// A server that lists one tool and responds to calls with a text of some length, of which it sends the rest or not.
struct TextServer {
    text: String,
    completes: bool,
}

impl TextServer {
    /// Serves at an address of its own.
    async fn start(name: &str, text: usize, completes: bool) -> ServerConfig {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = Arc::new(Self { text: "x".repeat(text), completes });
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(socket).await });
            }
        });
        let mut endpoint = RemoteEndpoint::new(&*url);
        endpoint.transport = RemoteTransport::Http;
        let mut config =
            ServerConfig::new(ServerName::parse(name).unwrap(), ServerLocation::Endpoint(endpoint));
        config.start = StartMode::Eager;
        config
    }

    async fn serve(&self, mut socket: TcpStream) {
        while let Some(request) = read_request(&mut socket).await {
            let result = match request["method"].as_str() {
                Some("server/discover") => {
                    json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "supportedVersions": [NEW.as_str()], "capabilities": { "tools": {} } })
                }
                Some("tools/list") => json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
                _ => json!({ "resultType": "complete", "content": [{ "type": "text", "text": self.text }] }),
            };
            let is_call = request["method"] == "tools/call";
            let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string();
            let announced = if is_call && !self.completes { 2 * body.len() } else { body.len() };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {announced}\r\n\r\n"
            );
            if socket.write_all((head + &body).as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Reads one request; `None` at the end of the connection.
async fn read_request(socket: &mut TcpStream) -> Option<Value> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if read.len() >= end + 4 + length {
                return serde_json::from_slice(&read[end + 4..end + 4 + length]).ok();
            }
        }
        if socket.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

#[tokio::test]
async fn server_with_incomplete_messages_leaves_memory_for_those_of_others() {
    let (hog, well) =
        (TextServer::start("hog", PART, false).await, TextServer::start("well", PART, true).await);
    let memory = MessageBudget::new(MEMORY);
    let limits = HubLimits { message_memory: memory.clone(), ..quick() };
    let hub = Hub::new(HubOptions {
        connector: Arc::new(ConfigConnector::default()),
        limits,
        ..HubOptions::default()
    });
    within(hub.set_servers(vec![hog, well])).await;
    until(|| ["hog", "well"].iter().all(|name| hub.status_of(name).unwrap().tools == 1)).await;
    let client = plain_client(&hub, NEW).await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let (client, before) = (client.clone(), memory.used());
        let call = tokio::spawn(async move { client.call("hog__t", json!({})).await });
        until(|| call.is_finished() || memory.used() >= before + PART).await;
        waiting.push(call);
    }
    assert!(memory.used() >= PART, "one message is being received");
    let read = within(client.call("well__t", json!({}))).await.unwrap();
    assert_eq!(read.text().len(), PART);
    for call in waiting {
        call.abort();
    }
    until(|| memory.used() == 0).await;
}
