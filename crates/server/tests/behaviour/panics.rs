//! Handlers that panic: their caller gets an internal error, and all other callers are served.

use serde_json::json;
use trunkline_server::{Context, Prompt, Resource, Server, Tool};

use crate::support::{
    Client, ModernRequest, Peer, code, host, legacy, legacy_tool, lines, note, settle, tool_text,
};

fn server() -> Server {
    let schema = json!({ "type": "object" });
    Server::new("s")
        .with(Tool::new("hello").run(async || "hello"))
        .with(Tool::new("first_poll").run(async || -> String { panic!("at the first poll") }))
        .with(Tool::new("after_await").run(async |cx: Context| -> String {
            cx.progress(1, 2);
            tokio::task::yield_now().await;
            panic!("after an await")
        }))
        .with(
            Tool::new("while_made")
                .input_schema(schema)
                .run_raw(|_, _| -> std::future::Ready<String> { panic!("while it is being made") }),
        )
        .with(Prompt::new("prompt").get(async || -> String { panic!("in a prompt") }))
        .with(Resource::new("test://r", "r").read(async || -> String { panic!("in a resource") }))
}

/// Panics when it is dropped, unless something else panics already, which would end the process.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in a destructor");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_destructor_ends_only_its_own_call() {
    let endless = Tool::new("endless").run(async || {
        let _held = Explosive;
        std::future::pending::<()>().await;
    });
    let ends = Tool::new("ends").run(async || {
        let _held = Explosive;
        "an answer"
    });
    let server = server().with(endless).with(ends);
    let host = host(&server);
    let cancel = note("notifications/cancelled", json!({ "requestId": 1 }));

    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "endless")).await;
    settle().await;
    peer.send(&cancel).await;
    assert_eq!(tool_text(&peer.call(&legacy_tool(2, "hello")).await), "hello", "cancelled by its caller");
    peer.send(&ModernRequest::tool("endless").value()).await;
    settle().await;
    peer.send(&cancel).await;
    assert_eq!(tool_text(&peer.call(&legacy_tool(3, "hello")).await), "hello", "cancelled in the other era");
    assert_eq!(code(&peer.call(&legacy_tool(4, "ends")).await), -32603);

    peer.send(&legacy_tool(5, "endless")).await;
    settle().await;
    drop(peer);
    settle().await;
    assert_eq!(host.load(), (0, 0), "its channel is gone");

    let client = Client::new(&host);
    let stream = client.post(&ModernRequest::tool("endless").token("t").value()).await;
    drop(stream);
    settle().await;
    assert_eq!(host.load(), (0, 0), "its response is gone");
}

const TOOLS: [&str; 3] = ["first_poll", "after_await", "while_made"];

#[tokio::test(start_paused = true)]
async fn modern_handler_panic_is_an_internal_error_and_the_next_call_succeeds() {
    let host = host(&server());
    for mut line in lines(&host) {
        for tool in TOOLS {
            let answer = line.call(&ModernRequest::tool(tool).id(tool)).await;
            assert_eq!(code(&answer), -32603, "{tool}");
            assert_eq!(answer["id"], tool);
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                !message.contains("await") && !message.contains("poll"),
                "what it said stays here: {message}"
            );
            assert_eq!(tool_text(&line.call(&ModernRequest::tool("hello")).await), "hello");
        }
        let prompt = ModernRequest::new("prompts/get").param("name", json!("prompt"));
        assert_eq!(code(&line.call(&prompt).await), -32603);
        let resource = ModernRequest::new("resources/read").param("uri", json!("test://r"));
        assert_eq!(code(&line.call(&resource).await), -32603);
        assert_eq!(tool_text(&line.call(&ModernRequest::tool("hello")).await), "hello");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn legacy_handler_panic_is_an_internal_error_and_the_next_call_succeeds() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut peer = Peer::initialized(&host, "2025-03-26").await;
    for tool in TOOLS {
        assert_eq!(code(&client.post(&legacy_tool(1, tool)).await.answer().await), -32603, "{tool}");
        assert_eq!(code(&peer.call(&legacy_tool(1, tool)).await), -32603, "{tool}");
        peer.send(&json!([legacy_tool(1, tool), legacy(2, "ping", json!({}))])).await;
        assert_eq!(peer.receive().await.as_array().unwrap().len(), 2, "{tool}");
        // The id that panicked is free again.
        assert_eq!(tool_text(&client.post(&legacy_tool(1, "hello")).await.answer().await), "hello");
        assert_eq!(tool_text(&peer.call(&legacy_tool(1, "hello")).await), "hello");
    }
    assert_eq!(host.load(), (0, 0));
}
