//! Servers that share sessions, events and a bus, as processes do that share Redis: a client's messages may arrive at any of them.

use std::sync::Arc;

use serde_json::{Value, json};
use trunkline_server::http::{BearerTokens, HttpServerOptions, HttpService};
use trunkline_server::session::{
    BoxFuture, BusLimits, EventId, EventLimits, EventReplay, EventStore, MemoryBusNetwork, MemoryEvents,
    MemorySessions, OutboxClaim, Principal, ProcessId, SessionBus as _, SessionId, SessionLimits,
    SessionRecord, SessionStore, StoreError, StoreReply, StreamEvent, Timestamp,
};
use trunkline_server::{
    ChangePublisher, Confirm, Context, Host, HostOptions, Resource, Server, ServerChange, ServerHandle,
    StateKeys, Tool, ToolError, ask,
};

use crate::cleanup::CountedServer;
use crate::input_rounds::accept;
use crate::support::{
    Client, LiveCount, ModernRequest, code, legacy, legacy_tool, note, questions, response, settle, tool_text,
};

/// Sessions in memory that several servers share.
#[derive(Clone, Debug)]
struct CommonSessions(Arc<MemorySessions>);

impl SessionStore for CommonSessions {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.create(record, now)
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        self.0.get(id, principal, now)
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.update(record, now)
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.touch(id, now)
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.0.delete(id, principal)
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.0.expire(now)
    }

    fn count(&self) -> usize {
        self.0.count()
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.0.list_all(most, now)
    }
}

/// Events in memory that outlive each of several servers.
#[derive(Clone, Debug)]
struct CommonEvents(Arc<MemoryEvents>);

impl EventStore for CommonEvents {
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()> {
        self.0.append(session, event, now)
    }

    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>> {
        self.0.replay(session, after, now)
    }

    fn claim(
        &self,
        session: SessionId,
        process: ProcessId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<OutboxClaim, StoreError>> {
        self.0.claim(session, process, now)
    }

    fn append_claimed(
        &self,
        session: SessionId,
        event: StreamEvent,
        fence: u64,
        now: Timestamp,
    ) -> StoreReply<()> {
        self.0.append_claimed(session, event, fence, now)
    }

    fn forget(&self, session: SessionId) {
        self.0.forget(session);
    }
}

/// Three servers with one store.
struct Replicas {
    network: MemoryBusNetwork,
    members: Vec<Replica>,
    /// The calls that run on any of them.
    running: LiveCount,
}

struct Replica {
    process: ProcessId,
    handle: ServerHandle,
    host: Host,
    service: HttpService,
}

async fn confirm(cx: Context) -> Result<String, ToolError> {
    Ok(cx.ask(ask::<Confirm>("Sure?").key("sure")).await?.0.to_string())
}

fn server(running: &LiveCount) -> Server {
    let schema = || json!({ "type": "object" });
    let running = running.clone();
    let forever = Tool::new("forever").input_schema(schema()).run_raw(move |_: Context, _| {
        let running = running.begin();
        async move {
            let _running = running;
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    // A call that is not replayed stays with its process.
    let live = Tool::new("live").input_schema(schema()).run_raw(|cx: Context, _| async move {
        cx.progress(1, 2);
        let confirmed = confirm(cx.clone()).await;
        cx.progress(2, 2);
        confirmed
    });
    let portable =
        Tool::new("portable").replay().input_schema(schema()).run_raw(|cx: Context, _| confirm(cx));
    Server::new("s")
        .with(Tool::new("confirm").run(confirm))
        .with(forever)
        .with(live)
        .with(portable)
        .with(Resource::new("test://a", "a").text("a"))
}

impl Replicas {
    fn start() -> Self {
        let sessions = CommonSessions(Arc::new(MemorySessions::new(SessionLimits::default())));
        let events = CommonEvents(Arc::new(MemoryEvents::new(EventLimits::default())));
        let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
        let (tokens, keys) = (Arc::new(tokens), StateKeys::random().unwrap());
        let (network, running) = (MemoryBusNetwork::new(BusLimits::default()), LiveCount::default());
        let members = (0..3).map(|_| {
            let (bus, server) = (network.join().unwrap(), server(&running));
            let process = bus.process();
            let host = server.host(HostOptions {
                state_keys: Some(keys.clone()),
                bus: Some(Arc::new(bus)),
                ..HostOptions::default()
            });
            let host = host.unwrap();
            let service = host.http_service(HttpServerOptions {
                sessions: Some(Arc::new(sessions.clone())),
                events: Some(Arc::new(events.clone())),
                authenticator: tokens.clone(),
                ..HttpServerOptions::default()
            });
            Replica { process, handle: server.handle().unwrap(), host, service }
        });
        let members = members.collect();
        Self { network, members, running }
    }

    /// Returns the same client at another replica.
    fn at(&self, number: usize, client: &Client) -> Client {
        let mut moved = client.clone();
        moved.service = self.members[number].service.clone();
        moved
    }

    async fn client(&self, name: &str) -> Client {
        Client::of(&self.members[0].service).named(name).initialized("2025-11-25").await
    }

    fn modern(&self, number: usize, name: &str) -> Client {
        Client::of(&self.members[number].service).named(name)
    }

    /// Ends a replica as if its process had been killed.
    fn kill(&self, number: usize) {
        self.network.remove(self.members[number].process);
    }
}

fn ping(id: i64) -> Value {
    legacy(id, "ping", json!({}))
}

#[tokio::test(start_paused = true)]
async fn response_to_a_question_reaches_the_replica_that_asked() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    for (number, answer) in [(1, true), (2, false), (0, true)] {
        let mut stream = replicas.at(number, &ann).post(&legacy_tool(1, "confirm")).await;
        let question = stream.message().await.unwrap();
        let other = replicas.at((number + 1) % 3, &ann);
        assert_eq!(other.post(&response(&question, accept(answer))).await.status, 202);
        assert_eq!(tool_text(&stream.answer().await), answer.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn response_over_the_bus_needs_the_principal_of_the_session() {
    let replicas = Replicas::start();
    let (ann, bob) = (replicas.client("ann").await, replicas.client("bob").await);
    let mut stream = ann.post(&legacy_tool(1, "confirm")).await;
    let question = stream.message().await.unwrap();
    // In a session of his own bob answers with the id of ann's question, and in hers he is refused.
    let own = replicas.at(1, &bob).post(&response(&question, accept(false))).await;
    assert_eq!(own.status, 202);
    let hers = replicas.at(1, &ann).named("bob").post(&response(&question, accept(false))).await;
    assert_eq!(hers.status, 404);
    settle().await;
    assert_eq!(replicas.at(2, &ann).post(&response(&question, accept(true))).await.status, 202);
    assert_eq!(tool_text(&stream.answer().await), "true");
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_the_replica_of_the_call() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let mut stream = ann.post(&legacy_tool("slow", "forever")).await;
    let call = tokio::spawn(async move { stream.rest().await });
    settle().await;
    assert_eq!(replicas.running.count(), 1);
    let bob = replicas.client("bob").await;
    let cancelled = note("notifications/cancelled", json!({ "requestId": "slow" }));
    assert_eq!(replicas.at(1, &bob).post(&cancelled).await.status, 202);
    settle().await;
    assert_eq!(replicas.running.count(), 1, "another session's call of the same id");
    assert_eq!(replicas.at(1, &ann).post(&cancelled).await.status, 202);
    assert_eq!(call.await.unwrap(), [] as [Value; 0]);
    assert_eq!(replicas.running.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_of_a_call_resumes_at_another_replica() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let mut stream = ann.post(&legacy_tool(1, "confirm")).await;
    let opening = stream.event().await.unwrap().id.unwrap();
    let question = stream.message().await.unwrap();
    drop(stream);
    let mut resumed = replicas.at(2, &ann).resume(&opening).await;
    assert_eq!(resumed.status, 200);
    assert_eq!(resumed.message().await.unwrap(), question, "what was missed comes first");
    assert_eq!(replicas.at(1, &ann).post(&response(&question, accept(true))).await.status, 202);
    assert_eq!(tool_text(&resumed.answer().await), "true");
    let bob = replicas.at(2, &ann).named("bob").resume(&opening).await;
    assert_eq!(bob.status, 404);
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_of_a_killed_replica_ends_with_an_error() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let mut stream = ann.post(&legacy_tool(1, "confirm")).await;
    let opening = stream.event().await.unwrap().id.unwrap();
    stream.message().await.unwrap();
    replicas.kill(0);
    let mut resumed = replicas.at(1, &ann).resume(&opening).await;
    let messages = resumed.rest().await;
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], last["error"]["code"].is_i64()), (&json!(1), true), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn changes_reach_each_listener_once_from_any_replica() {
    let replicas = Replicas::start();
    let (ann, bob) = (replicas.client("ann").await, replicas.client("bob").await);
    let watch = legacy(5, "resources/subscribe", json!({ "uri": "test://a" }));
    assert_eq!(replicas.at(2, &ann).post(&watch).await.answer().await["result"], json!({}));
    let mut streams = [replicas.at(1, &ann).get().await, replicas.at(2, &bob).get().await];
    for stream in &mut streams {
        assert_eq!(stream.event().await.unwrap().data.unwrap_or_default(), "", "the priming event");
    }
    for (from, replica) in replicas.members.iter().enumerate() {
        replica.handle.notify_updated("test://a");
        let update = streams[0].message().await.unwrap();
        assert_eq!(update["params"]["uri"], "test://a", "{from}: {update}");
        let tool = Tool::new(format!("new{from}")).run(async || "new");
        replica.handle.add(tool).unwrap();
        for stream in &mut streams {
            let change = stream.message().await.unwrap();
            assert_eq!(change["method"], "notifications/tools/list_changed", "{from}: {change}");
        }
        settle().await;
    }
    // Everything has come once: the next message is that of the last change.
    replicas.members[0].handle.notify_updated("test://a");
    assert_eq!(streams[0].message().await.unwrap()["method"], "notifications/resources/updated");
}

#[tokio::test(start_paused = true)]
async fn changed_list_is_notified_to_a_client_that_listed_through_another_replica() {
    let network = MemoryBusNetwork::new(BusLimits::default());
    let sessions = CommonSessions(Arc::new(MemorySessions::new(SessionLimits::default())));
    let replicas = [(); 2].map(|()| {
        let changes = ChangePublisher::default();
        let server = server(&LiveCount::default()).handle().unwrap();
        let handler = CountedServer { server, changes: changes.clone() };
        let bus = Some(Arc::new(network.join().unwrap()) as Arc<_>);
        let host = Host::new(handler, HostOptions { bus, ..HostOptions::default() }).unwrap();
        let service = host.http_service(HttpServerOptions {
            sessions: Some(Arc::new(sessions.clone())),
            ..HttpServerOptions::default()
        });
        (host, service, changes)
    });
    let [(_, opened_at, changes), (_, listed_at, _)] = &replicas;
    let client = Client::of(opened_at).initialized("2025-06-18").await;
    let mut moved = client.clone();
    moved.service = listed_at.clone();
    assert_eq!(moved.post(&legacy(1, "tools/list", json!({}))).await.status, 200);
    let mut stream = client.get().await;
    // The replica of the stream notifies only of lists that it knows the client to have in an older version.
    changes.publish_outdated(&ServerChange::Tools, |_, shown| Some(shown));
    settle().await;
    changes.publish(&ServerChange::Prompts);
    let first = stream.message().await.unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn end_of_a_session_is_seen_by_all_replicas() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let mut stream = replicas.at(1, &ann).get().await;
    stream.event().await.unwrap();
    let mut call = replicas.at(2, &ann).post(&legacy_tool("slow", "forever")).await;
    let call = tokio::spawn(async move { call.rest().await });
    settle().await;
    assert_eq!(replicas.running.count(), 1);
    assert_eq!(ann.delete().await.status, 204);
    assert_eq!(stream.rest().await, [] as [Value; 0], "the stream at another replica ends");
    call.await.unwrap();
    assert_eq!(replicas.running.count(), 0, "and so does the call at a third");
    for number in 0..3 {
        assert_eq!(replicas.at(number, &ann).post(&ping(1)).await.status, 404);
        assert_eq!(replicas.at(number, &ann).get().await.status, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn log_level_and_subscriptions_hold_at_every_replica() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let watch = legacy(1, "resources/subscribe", json!({ "uri": "test://a" }));
    let level = legacy(2, "logging/setLevel", json!({ "level": "error" }));
    // Two replicas change the record of one session at the same time.
    let (first, second) = (replicas.at(1, &ann), replicas.at(2, &ann));
    let (watched, set) = tokio::join!(first.post(&watch), second.post(&level));
    assert_eq!(
        [watched.answer().await["result"].clone(), set.answer().await["result"].clone()],
        [json!({}), json!({})]
    );
    let mut stream = ann.get().await;
    stream.event().await.unwrap();
    replicas.members[2].handle.notify_updated("test://a");
    assert_eq!(stream.message().await.unwrap()["params"]["uri"], "test://a");
}

#[tokio::test(start_paused = true)]
async fn retry_at_another_replica_reaches_its_suspended_call() {
    let replicas = Replicas::start();
    let asked =
        replicas.modern(0, "ann").post(&ModernRequest::tool("live").token("t").value()).await.rest().await;
    let asked = asked.last().unwrap().clone();
    assert_eq!(questions(&asked), ["sure"]);
    let retry =
        ModernRequest::tool("live").id("retry").after(&asked).answers(json!({ "sure": accept(true) }));
    let stranger = replicas.modern(1, "bob").post(&retry.value()).await.answer().await;
    assert_eq!(code(&stranger), -32602, "{stranger}");
    let messages = replicas.modern(1, "ann").post(&retry.token("second").value()).await.rest().await;
    assert_eq!(tool_text(messages.last().unwrap()), "true", "{messages:?}");
    assert_eq!(messages[0]["params"]["progressToken"], "second", "{messages:?}");
    assert_eq!(replicas.members[0].host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn retry_without_its_replica_gets_an_error_that_says_so() {
    let replicas = Replicas::start();
    let ask = |tool: &'static str| {
        let client = replicas.modern(0, "ann");
        async move { client.post(&ModernRequest::tool(tool).value()).await.answer().await }
    };
    let (live, portable) = (ask("live").await, ask("portable").await);
    replicas.kill(0);
    let retry = |tool: &'static str, asked: &Value| {
        let retry =
            ModernRequest::tool(tool).id("retry").after(asked).answers(json!({ "sure": accept(true) }));
        let client = replicas.modern(1, "ann");
        async move { client.post(&retry.value()).await.answer().await }
    };
    let gone = retry("live", &live).await;
    assert_eq!(code(&gone), -32602, "{gone}");
    assert!(gone["error"]["message"].as_str().unwrap().contains("start the call again"), "{gone}");
    let answer = retry("portable", &portable).await;
    assert_eq!(tool_text(&answer), "true", "it needs no replica: {answer}");
}

#[tokio::test(start_paused = true)]
async fn draining_replica_hands_its_streams_over() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let watch = legacy(5, "resources/subscribe", json!({ "uri": "test://a" }));
    assert_eq!(ann.post(&watch).await.answer().await["result"], json!({}));
    let mut stream = ann.get().await;
    let opening = stream.event().await.unwrap().id.unwrap();
    replicas.members[0].host.shutdown().drain();
    stream.rest().await;
    let mut resumed = replicas.at(1, &ann).resume(&opening).await;
    assert_eq!(resumed.status, 200);
    replicas.members[2].handle.notify_updated("test://a");
    assert_eq!(resumed.message().await.unwrap()["params"]["uri"], "test://a");
}

#[tokio::test(start_paused = true)]
async fn session_of_another_principal_is_not_found_at_any_replica() {
    let replicas = Replicas::start();
    let ann = replicas.client("ann").await;
    let opening = ann.get().await.event().await.unwrap().id.unwrap();
    for number in 0..3 {
        let bob = replicas.at(number, &ann).named("bob");
        for (route, status) in [
            ("POST", bob.post(&ping(1)).await.status),
            ("notification", bob.post(&note("notifications/initialized", json!({}))).await.status),
            ("GET", bob.get().await.status),
            ("GET with Last-Event-ID", bob.resume(&opening).await.status),
            ("DELETE", bob.delete().await.status),
        ] {
            assert_eq!(status, 404, "{route} at {number}");
        }
        assert_eq!(replicas.at(number, &ann).post(&ping(1)).await.status, 200);
    }
}
