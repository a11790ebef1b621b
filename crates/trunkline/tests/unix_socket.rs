//! The example of a transport, run as it is: a real socket, both eras.
#![cfg(unix)]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use trunkline::{HostOptions, Server, Tool};

#[path = "../../../examples/unix_socket.rs"]
#[allow(dead_code, reason = "its main is not what is tested")]
mod example;

struct Peer(BufReader<UnixStream>);

impl Peer {
    async fn say(&mut self, message: Value) {
        self.0.get_mut().write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.0.read_line(&mut line));
        assert!(read.await.expect("an answer in time").expect("text") > 0, "the channel goes on");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn ends(mut self) -> bool {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.0.read_line(&mut line));
        read.await.expect("an end in time").expect("no error") == 0
    }
}

#[tokio::test]
async fn unix_socket_example_serves_both_eras_until_shutdown() {
    let path = std::env::temp_dir().join(format!("trunkline-example-{}.sock", std::process::id()));
    let server = Server::new("unix").with(Tool::new("hello").run(async || "hello"));
    let host = server.host(HostOptions::default()).unwrap();
    let shutdown = host.shutdown().clone();
    let served = {
        let path = path.clone();
        tokio::spawn(async move { example::serve(host, &path).await })
    };
    let mut peer = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break Peer(BufReader::new(stream)),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let client = json!({ "name": "peer", "version": "1" });
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
    peer.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    assert_eq!(peer.hear().await["result"]["protocolVersion"], "2024-11-05");
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "hello" } }))
        .await;
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "hello");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "hello", "_meta": meta });
    peer.say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    assert_eq!(peer.hear().await["result"]["resultType"], "complete");
    shutdown.drain();
    assert!(peer.ends().await, "draining ends the channel");
    served.await.unwrap().unwrap();
    assert!(!path.exists(), "and takes its socket away");
}
