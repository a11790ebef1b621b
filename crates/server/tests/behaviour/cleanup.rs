//! What is left when clients go away without a word: nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline_server::http::{HttpServerOptions, HttpService};
use trunkline_server::protocol::Refusal;
use trunkline_server::protocol::mirror::MirroredParams;
use trunkline_server::protocol::model::{Implementation, ServerCapabilities};
use trunkline_server::session::{EventLimits, MemoryEvents, SessionLimits};
use trunkline_server::{
    BoxFuture, CallerIdentity, ChangePublisher, ChangeSubscription, Confirm, Context, Handler,
    HandlerOutcome, Host, HostOptions, IncomingCall, Server, ServerHandle, ServerLimits, SubscriptionFilter,
    Tool, ToolError, ask,
};

use crate::support::{Client, LiveCount, ModernRequest, Peer, legacy, legacy_tool, note, settle};

/// A server with subscriptions that can be counted.
pub(crate) struct CountedServer {
    pub(crate) server: ServerHandle,
    pub(crate) changes: ChangePublisher,
}

impl Handler for CountedServer {
    fn identity(&self) -> Implementation {
        self.server.identity()
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.server.capabilities()
    }

    fn instructions(&self, caller: CallerIdentity<'_>) -> Option<String> {
        self.server.instructions(caller)
    }

    fn mirrored_arguments(&self, tool: &str, caller: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        self.server.mirrored_arguments(tool, caller)
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        Handler::call(&self.server, call)
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.changes.subscribe(filter)
    }
}

/// Everything that could be left over, in one place.
struct LeftoverProbe {
    host: Host,
    service: HttpService,
    changes: ChangePublisher,
    events: Arc<MemoryEvents>,
    life: LiveCount,
}

const PARKED_FOR: Duration = Duration::from_secs(60);

impl LeftoverProbe {
    fn new() -> Self {
        let (changes, life) = (ChangePublisher::default(), LiveCount::default());
        let schema = json!({ "type": "object" });
        let watch = |life: &LiveCount| life.clone();
        let (of_ask, of_endless) = (watch(&life), watch(&life));
        let server = Server::new("s")
            .advertise_resources()
            .with(Tool::new("ask").input_schema(schema.clone()).run_raw(move |cx: Context, _| {
                let alive = of_ask.begin();
                async move {
                    let answer = cx.ask(ask::<Confirm>("Sure?")).await;
                    drop(alive);
                    Ok::<_, ToolError>(answer?.0.to_string())
                }
            }))
            .with(Tool::new("endless").input_schema(schema).run_raw(move |_, _| {
                let alive = of_endless.begin();
                async move {
                    std::future::pending::<()>().await;
                    drop(alive);
                }
            }));
        let handler = CountedServer { server: server.handle().unwrap(), changes: changes.clone() };
        let limits = ServerLimits { suspended_for: PARKED_FOR, ..ServerLimits::default() };
        let host = Host::new(handler, HostOptions { limits, ..HostOptions::default() }).unwrap();
        let events = Arc::new(MemoryEvents::new(EventLimits::default()));
        let session_limits = SessionLimits { idle: Duration::from_millis(400), ..SessionLimits::default() };
        let options = HttpServerOptions {
            session_limits,
            events: Some(events.clone()),
            ..HttpServerOptions::default()
        };
        let service = host.http_service(options);
        Self { host, service, changes, events, life }
    }

    fn client(&self) -> Client {
        Client::of(&self.service)
    }

    /// Waits until the sessions have expired by the clock of the machine, and checks that all is gone.
    async fn assert_empty(&self) {
        tokio::time::advance(PARKED_FOR + Duration::from_secs(1)).await;
        settle().await;
        let begun = Instant::now();
        while self.service.sessions() > 0 {
            self.service.sweep().await;
            settle().await;
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?} sessions", self.service.sessions());
        }
        settle().await;
        assert_eq!(self.host.load(), (0, 0), "calls");
        assert_eq!(self.life.count(), 0, "futures of handlers");
        assert_eq!(self.changes.count(), 0, "subscriptions");
        assert_eq!(self.events.count(), 0, "events");
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_sessions_are_freed() {
    let place = LeftoverProbe::new();
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = place.client().initialized(revision).await;
        client.post(&legacy(1, "resources/subscribe", json!({ "uri": "test://a" }))).await;
        let mut standing = client.get().await;
        if revision == "2025-11-25" {
            standing.event().await;
        }
    }
    assert_eq!((place.service.sessions(), place.changes.count()), (3, 3));
    place.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_streams_and_requests_are_freed() {
    let place = LeftoverProbe::new();
    let modern = place.client();
    drop(modern.post(&ModernRequest::tool("endless").value()).await);
    let listen = ModernRequest::new("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }));
    drop(modern.post(&listen.value()).await);
    let cut_off =
        tokio::spawn(async move { modern.post(&ModernRequest::tool("endless").value()).await.status });
    settle().await;
    cut_off.abort();
    let mut peer = Peer::initialized(&place.host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "endless")).await;
    peer.send(&legacy_tool(2, "ask")).await;
    peer.send(&listen.id("l").value()).await;
    assert_eq!(peer.received().await.len(), 2);
    assert_eq!((place.host.load(), place.changes.count()), ((2, 0), 2));
    drop(peer);
    place.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn expired_suspended_calls_are_freed() {
    let place = LeftoverProbe::new();
    let mut peer = Peer::new(&place.host);
    for id in 0..5 {
        place.client().post(&ModernRequest::tool("ask").value()).await;
        peer.call(&ModernRequest::tool("ask").id(id).value()).await;
    }
    assert_eq!((place.host.load(), place.life.count()), ((0, 10), 10));
    settle().await;
    place.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_are_freed() {
    let place = LeftoverProbe::new();
    let client = place.client().initialized("2025-11-25").await;
    let mut peer = Peer::initialized(&place.host, "2025-11-25").await;
    for tool in ["endless", "ask"] {
        let stream = client.post(&legacy_tool(1, tool)).await;
        peer.send(&legacy_tool(1, tool)).await;
        peer.send(&ModernRequest::tool("endless").id(2).value()).await;
        settle().await;
        assert_eq!(place.host.load(), (3, 0));
        client.post(&note("notifications/cancelled", json!({ "requestId": 1 }))).await;
        drop(stream);
        for id in [1, 2] {
            peer.send(&note("notifications/cancelled", json!({ "requestId": id }))).await;
        }
        peer.received().await;
        settle().await;
        assert_eq!((place.host.load(), place.life.count()), ((0, 0), 0));
    }
    drop((client, peer));
    place.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn detached_call_with_an_unanswered_input_request_is_freed() {
    let place = LeftoverProbe::new();
    for revision in ["2025-11-25", "2025-06-18"] {
        let client = place.client().initialized(revision).await;
        let mut stream = client.post(&legacy_tool(1, "ask")).await;
        assert_eq!(stream.message().await.unwrap()["method"], "elicitation/create");
    }
    settle().await;
    assert_eq!(place.host.load(), (2, 0), "a disconnect alone is no reason to give up");
    tokio::time::advance(PARKED_FOR + Duration::from_secs(1)).await;
    settle().await;
    assert_eq!((place.host.load(), place.life.count()), ((0, 0), 0));
    place.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_sessions_are_freed_at_once() {
    let place = LeftoverProbe::new();
    let client = place.client().initialized("2025-11-25").await;
    let attached = client.post(&legacy_tool(1, "endless")).await;
    let mut left = client.post(&legacy_tool(2, "ask")).await;
    left.message().await;
    drop(left);
    let standing = client.get().await;
    client.delete().await;
    drop((attached, standing));
    settle().await;
    assert_eq!((place.host.load(), place.life.count()), ((0, 0), 0));
    assert_eq!((place.changes.count(), place.events.count(), place.service.sessions()), (0, 0, 0));
}
