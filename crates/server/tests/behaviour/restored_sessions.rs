//! Legacy sessions that are restored, on another node or after a restart: earlier ids never match later requests.

use std::sync::Arc;

use serde_json::json;
use trunkline_server::http::{HttpServerOptions, HttpService};
use trunkline_server::session::{
    EventLimits, EventStore, MemoryEvents, MemorySessions, SessionLimits, SessionStore,
};
use trunkline_server::{Confirm, Context, Server, Tool, ToolError, ask};

use crate::input_rounds::accept;
use crate::support::{Client, host, legacy_tool, response, settle, tool_text};

fn server() -> Server {
    Server::new("s").with(Tool::new("confirm").run(async |cx: Context| -> Result<String, ToolError> {
        Ok(format!("{:?}", cx.ask(ask::<Confirm>("Sure?")).await?))
    }))
}

/// Makes two endpoints of one kind that share nothing but their stores.
fn nodes() -> [HttpService; 2] {
    let sessions: Arc<dyn SessionStore> = Arc::new(MemorySessions::new(SessionLimits::default()));
    let events: Arc<dyn EventStore> = Arc::new(MemoryEvents::new(EventLimits::default()));
    [(); 2].map(|()| {
        host(&server()).http_service(HttpServerOptions {
            sessions: Some(sessions.clone()),
            events: Some(events.clone()),
            ..HttpServerOptions::default()
        })
    })
}

#[tokio::test(start_paused = true)]
async fn late_response_to_a_restored_session_matches_no_new_request() {
    let [before, after] = nodes();
    let client = Client::of(&before).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "confirm")).await;
    let (old, _) = stream.message_with_id().await.unwrap();

    let mut revived = client.clone();
    revived.service = after;
    let mut stream = revived.post(&legacy_tool(1, "confirm")).await;
    let new = stream.message().await.unwrap();
    assert_ne!(old["id"], new["id"], "two questions of one session");
    assert_eq!(revived.post(&response(&old, accept(false))).await.status, 202);
    settle().await;
    assert_eq!(revived.post(&response(&new, accept(true))).await.status, 202);
    let answer = stream.answer().await;
    assert!(tool_text(&answer).contains("true"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn last_event_id_of_a_restored_session_matches_no_new_stream() {
    let [before, after] = nodes();
    let client = Client::of(&before).initialized("2025-11-25").await;
    let mut revived = client.clone();
    revived.service = after;
    let mut streams = Vec::new();
    for client in [&client, &revived] {
        let mut stream = client.post(&legacy_tool(1, "confirm")).await;
        let (question, id) = stream.message_with_id().await.unwrap();
        assert_eq!(question["params"]["message"], json!("Sure?"));
        let id = id.expect("a position");
        streams.push(id.split_once('-').unwrap().0.to_owned());
    }
    assert_ne!(streams[0], streams[1], "two streams of one session");
}
