//! What a legacy client may send at which point of its handshake, and the content of the response.

use serde_json::{Value, json};
use trunkline_server::{Host, HostOptions, Server, Tool};

use crate::support::{Client, Peer, code, initialize, legacy, legacy_tool, note, tool_text};

fn host(options: HostOptions) -> Host {
    Server::new("s").with(Tool::new("hello").run(async || "hello")).host(options).unwrap()
}

/// Refused with the sentence, or answered.
fn is_refused(answer: &Value) -> bool {
    let said = answer["error"]["message"].as_str().unwrap_or_default();
    if said.contains("notifications/initialized") {
        assert_eq!(code(answer), -32600);
        return true;
    }
    assert!(answer.get("result").is_some(), "{answer}");
    false
}

#[tokio::test(start_paused = true)]
async fn request_before_initialized_is_refused_only_with_require_initialized() {
    for strict in [false, true] {
        let host = host(HostOptions { require_initialized: strict, ..HostOptions::default() });
        let mut peer = Peer::new(&host);
        let first = peer.call(&legacy_tool(1, "hello")).await;
        assert!(first["error"]["message"].as_str().unwrap().contains("initialize"), "{first}");
        peer.call(&initialize("2025-06-18", json!({}))).await;
        assert!(!is_refused(&peer.call(&legacy(2, "ping", json!({}))).await));
        assert_eq!(is_refused(&peer.call(&legacy_tool(3, "hello")).await), strict);
        assert_eq!(is_refused(&peer.call(&legacy(4, "tools/list", json!({}))).await), strict);
        peer.send(&note("notifications/initialized", json!({}))).await;
        assert_eq!(tool_text(&peer.call(&legacy_tool(5, "hello")).await), "hello");
        // A second handshake is refused, and the session goes on.
        let second = peer.call(&initialize("2025-06-18", json!({}))).await;
        assert_eq!(code(&second), -32600, "{second}");
        assert!(second["error"]["message"].as_str().unwrap().contains("already initialized"), "{second}");
        assert_eq!(tool_text(&peer.call(&legacy_tool(6, "hello")).await), "hello");

        let client = Client::new(&host);
        let opened = client.post(&initialize("2025-06-18", json!({}))).await;
        let client = client.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
        let client = client.with("mcp-protocol-version", "2025-06-18");
        assert_eq!(is_refused(&client.post(&legacy_tool(1, "hello")).await.answer().await), strict);
        client.post(&note("notifications/initialized", json!({}))).await;
        assert_eq!(tool_text(&client.post(&legacy_tool(2, "hello")).await.answer().await), "hello");
    }
}

#[tokio::test(start_paused = true)]
async fn session_id_is_in_initialize_meta_only_with_session_in_meta() {
    for session_in_meta in [false, true] {
        let host = host(HostOptions { session_in_meta, ..HostOptions::default() });
        let opened = Client::new(&host).post(&initialize("2025-11-25", json!({}))).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let meta = opened.answer().await["result"].get("_meta").cloned();
        assert_eq!(meta, session_in_meta.then(|| json!({ "trunkline/sessionId": id })));
        let mut told = Vec::new();
        for _ in 0..2 {
            let mut peer = Peer::new(&host);
            let answer = peer.call(&initialize("2024-11-05", json!({}))).await;
            told.push(answer["result"]["_meta"]["trunkline/sessionId"].as_str().map(str::to_owned));
        }
        assert!(told.iter().all(|told| told.is_some() == session_in_meta), "{told:?}");
        assert!(!session_in_meta || told[0] != told[1], "each handshake opens a session of its own");
    }
}
