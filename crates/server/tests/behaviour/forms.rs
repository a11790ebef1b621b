//! The form of an answer: plain JSON or a stream of events, as the client takes it.

use trunkline_server::http::HttpServerOptions;
use trunkline_server::{Context, Server, Tool};

use crate::support::{Client, ModernRequest, host, legacy_tool, tool_text};

#[tokio::test(start_paused = true)]
async fn response_content_type_follows_the_accept_header() {
    let tool = Tool::new("hello").run(async |cx: Context| {
        cx.progress(1, 2);
        tokio::task::yield_now().await;
        "hello"
    });
    let host = host(&Server::new("s").with(tool));
    for (always_stream, accept, streams, streams_progress) in [
        (false, "application/json, text/event-stream", false, true),
        (false, "*/*", false, true),
        (false, "application/json", false, false),
        (false, "text/event-stream", true, true),
        (true, "application/json, text/event-stream", true, true),
        (true, "application/json", false, false),
        (true, "text/event-stream", true, true),
    ] {
        let service = host.http_service(HttpServerOptions { always_stream, ..HttpServerOptions::default() });
        let client = Client::of(&service).with("accept", accept);
        for (request, expected) in [
            (ModernRequest::tool("hello"), streams),
            (ModernRequest::tool("hello").token("t"), streams_progress),
        ] {
            let response = client.post(&request.value()).await;
            assert_eq!(response.is_stream(), expected, "{always_stream} {accept} {request:?}");
            assert_eq!(tool_text(&response.answer().await), "hello");
        }
        let legacy = client.initialized("2025-11-25").await;
        let response = legacy.post(&legacy_tool(1, "hello")).await;
        assert_eq!(response.is_stream(), streams, "{always_stream} {accept} legacy");
        assert_eq!(tool_text(&response.answer().await), "hello");
    }
    let neither = Client::new(&host).with("accept", "text/html");
    assert_eq!(neither.post(&ModernRequest::tool("hello").value()).await.status, 406);
    assert_eq!(neither.get().await.status, 406);
}
