//! Legacy sessions that are restored, on another node or after a restart: with what their clients set, only for their
//! principals, and earlier ids never match later requests.

use std::sync::Arc;

use serde_json::json;
use trunkline_protocol::LoggingLevel;
use trunkline_server::http::{BearerTokens, HttpServerOptions, HttpService};
use trunkline_server::session::{
    EventLimits, EventStore, MemoryEvents, MemorySessions, SessionLimits, SessionStore,
};
use trunkline_server::{Confirm, Context, Resource, Server, ServerHandle, Tool, ToolError, ask};

use crate::input_rounds::accept;
use crate::support::{Client, host, legacy, legacy_tool, response, settle, tool_text};

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

/// Two nodes with one store each for `ann` and `bob`, and the handles of their servers.
fn nodes_with_resources() -> [(ServerHandle, HttpService); 2] {
    let sessions: Arc<dyn SessionStore> = Arc::new(MemorySessions::new(SessionLimits::default()));
    let events: Arc<dyn EventStore> = Arc::new(MemoryEvents::new(EventLimits::default()));
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    let tokens = Arc::new(tokens);
    [(); 2].map(|()| {
        let log = Tool::new("log").run(async |cx: Context| {
            cx.log(LoggingLevel::Warning, "quiet");
            cx.log(LoggingLevel::Critical, "loud");
            "logged"
        });
        let server = Server::new("s")
            .with(log)
            .with(Resource::new("test://a", "a").text("a"))
            .with(Resource::new("test://b", "b").text("b"));
        let service = host(&server).http_service(HttpServerOptions {
            sessions: Some(sessions.clone()),
            events: Some(events.clone()),
            authenticator: tokens.clone(),
            ..HttpServerOptions::default()
        });
        (server.handle().unwrap(), service)
    })
}

#[tokio::test(start_paused = true)]
async fn restored_session_keeps_subscriptions_and_log_level() {
    let [(_, before), (handle, after)] = nodes_with_resources();
    let client = Client::of(&before).named("ann").initialized("2025-11-25").await;
    for (id, method, params) in [
        (1, "resources/subscribe", json!({ "uri": "test://a" })),
        (2, "resources/subscribe", json!({ "uri": "test://b" })),
        (3, "resources/unsubscribe", json!({ "uri": "test://a" })),
        (4, "logging/setLevel", json!({ "level": "error" })),
    ] {
        assert_eq!(client.post(&legacy(id, method, params)).await.answer().await["result"], json!({}));
    }
    let mut revived = client.clone();
    revived.service = after;
    let logged = revived.post(&legacy_tool(5, "log")).await.rest().await;
    let texts: Vec<_> = logged.iter().filter_map(|message| message["params"]["data"].as_str()).collect();
    assert_eq!(texts, ["loud"], "{logged:?}");
    let mut stream = revived.get().await;
    handle.notify_updated("test://a");
    handle.notify_updated("test://b");
    let update = stream.message().await.unwrap();
    assert_eq!(update["params"]["uri"], "test://b", "{update}");
}

#[tokio::test(start_paused = true)]
async fn session_of_another_principal_is_not_found_on_any_route() {
    let [(_, before), (_, after)] = nodes_with_resources();
    let ann = Client::of(&before).named("ann").initialized("2025-11-25").await;
    let opening = ann.get().await.event().await.unwrap().id.unwrap();
    // On the first node the session is in memory, on the second in the store alone.
    for service in [&before, &after] {
        let mut bob = ann.clone().named("bob");
        bob.service = service.clone();
        for (route, status) in [
            ("POST", bob.post(&legacy_tool(1, "log")).await.status),
            ("GET", bob.get().await.status),
            ("GET with Last-Event-ID", bob.resume(&opening).await.status),
            ("DELETE", bob.delete().await.status),
        ] {
            assert_eq!(status, 404, "{route}");
        }
    }
    let mut restored = ann.clone();
    restored.service = after;
    for owner in [ann, restored] {
        assert_eq!(owner.resume(&opening).await.status, 200);
        assert_eq!(owner.post(&legacy_tool(1, "log")).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn full_store_of_an_earlier_process_makes_room_for_new_sessions() {
    let limits = SessionLimits { total: 3, ..SessionLimits::default() };
    let sessions: Arc<dyn SessionStore> = Arc::new(MemorySessions::new(limits.clone()));
    let [before, after] = [(); 2].map(|()| {
        host(&server()).http_service(HttpServerOptions {
            sessions: Some(sessions.clone()),
            session_limits: limits.clone(),
            ..HttpServerOptions::default()
        })
    });
    let mut earlier = Vec::new();
    for _ in 0..3 {
        earlier.push(Client::of(&before).initialized("2025-11-25").await);
    }
    let mut used = earlier.remove(2);
    used.service = after.clone();
    assert_eq!(used.post(&legacy(1, "ping", json!({}))).await.status, 200);
    for _ in 0..2 {
        Client::of(&after).initialized("2025-11-25").await;
    }
    assert_eq!(sessions.count(), 3);
    assert_eq!(used.post(&legacy(2, "ping", json!({}))).await.status, 200, "a session in use stays");
}
