//! State between calls: which caller finds it again, and when it ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trunkline_server::http::HttpServerOptions;
use trunkline_server::session::StateLimits;
use trunkline_server::{Context, Host, HostOptions, Json, Server, Tool, ToolError};

use crate::support::{
    Client, LiveCount, LiveGuard, ModernRequest, Peer, initialize, legacy, service, settle, text, ways,
    within,
};

#[derive(Deserialize, JsonSchema)]
struct StateHandleArgument {
    handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CountResult {
    handle: String,
    count: u32,
}

#[derive(Default, Serialize, Deserialize)]
struct TallyState {
    count: u32,
}

/// Something that counts how many of it there are.
#[derive(Default)]
struct HeldValue(Option<LiveGuard>);

fn server(life: &LiveCount) -> Server {
    let life = life.clone();
    let hold = move |cx: Context, StateHandleArgument { handle }: StateHandleArgument| {
        let life = life.clone();
        async move {
            let state = cx.state::<HeldValue>(handle.as_deref())?;
            state.update(|held| held.0 = held.0.take().or_else(|| Some(life.begin())));
            Ok::<_, ToolError>(state.handle())
        }
    };
    let live =
        async |cx: Context, StateHandleArgument { handle }: StateHandleArgument| -> Result<_, ToolError> {
            let state = cx.state::<u32>(handle.as_deref())?;
            state.update(|count| *count += 1);
            Ok(Json(CountResult { handle: state.handle(), count: state.get() }))
        };
    let stored =
        async |cx: Context, StateHandleArgument { handle }: StateHandleArgument| -> Result<_, ToolError> {
            let state = cx.persistent_state::<TallyState>(handle.as_deref()).await?;
            let count = state
                .update(|tally| {
                    tally.count += 1;
                    tally.count
                })
                .await?;
            Ok(Json(CountResult { handle: state.handle(), count }))
        };
    Server::new("s")
        .with(Tool::new("live").run(live))
        .with(Tool::new("stored").run(stored))
        .with(Tool::new("hold").run(hold))
}

fn host(state_limits: StateLimits) -> Host {
    server(&LiveCount::default()).host(HostOptions { state_limits, ..HostOptions::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn session_state_needs_no_handle_and_other_callers_use_one() {
    for kind in ["live", "stored"] {
        for mut way in ways(&host(StateLimits::default())).await {
            let first = way.structured(kind, &json!({})).await;
            assert_eq!(first["count"], 1, "{} {kind}", way.name);
            let second = way.structured(kind, &json!({})).await;
            assert_eq!(second["count"], if way.is_legacy { 2 } else { 1 }, "{} {kind}", way.name);
            assert_eq!(second["handle"] == first["handle"], way.is_legacy, "{} {kind}", way.name);
            let known = way.structured(kind, &json!({ "handle": second["handle"] })).await;
            assert_eq!(known["count"], if way.is_legacy { 3 } else { 2 }, "{} {kind}", way.name);
            let handle = known["handle"].as_str().unwrap();
            assert!(handle.starts_with("st_") && handle.len() == 35, "{handle}");
        }
    }
}

async fn counted(client: &Client, tool: &str, arguments: Value) -> Value {
    client.post(&ModernRequest::tool(tool).arguments(arguments).value()).await.answer().await
}

#[tokio::test(start_paused = true)]
async fn unknown_or_foreign_state_handle_is_a_tool_error() {
    let host = host(StateLimits::default());
    let service = service(&host);
    let (ann, bob) = (Client::of(&service).named("ann"), Client::of(&service).named("bob"));
    for (tool, other) in [("live", "hold"), ("stored", "live")] {
        let own = counted(&ann, tool, json!({})).await["result"]["structuredContent"]["handle"].clone();
        let good = counted(&ann, tool, json!({ "handle": own })).await;
        assert_eq!(good["result"]["structuredContent"]["count"], 2, "{tool}");
        let unknown = format!("st_{}", "0".repeat(32));
        for (who, tool, handle) in [
            (&bob, tool, own.clone()),
            (&ann, other, own.clone()),
            (&ann, tool, json!(unknown)),
            (&ann, tool, json!("../../etc/passwd")),
            (&ann, tool, json!("")),
        ] {
            let refused = counted(who, tool, json!({ "handle": handle })).await;
            assert_eq!(refused["result"]["isError"], true, "{tool} {handle}: {refused}");
            assert!(text(&refused).contains("under this handle"), "{refused}");
        }
    }
    // A session finds what its principal made outside of it, and the reverse; another principal's never does.
    let session = ann.clone().initialized("2025-11-25").await;
    let call = |handle: &Value| {
        legacy(1, "tools/call", json!({ "name": "live", "arguments": { "handle": handle } }))
    };
    let made = session.post(&call(&Value::Null)).await.answer().await;
    let handle = &made["result"]["structuredContent"]["handle"];
    assert_eq!(
        counted(&ann, "live", json!({ "handle": handle })).await["result"]["structuredContent"]["count"],
        2
    );
    assert_eq!(counted(&bob, "live", json!({ "handle": handle })).await["result"]["isError"], true);
    let thief = bob.initialized("2025-11-25").await;
    assert_eq!(thief.post(&call(handle)).await.answer().await["result"]["isError"], true);
    assert_eq!(
        thief.post(&call(&Value::Null)).await.answer().await["result"]["structuredContent"]["count"],
        1
    );
}

#[tokio::test(start_paused = true)]
async fn session_state_ends_with_the_session() {
    let life = LiveCount::default();
    let host = server(&life).host(HostOptions::default()).unwrap();
    let hold = |tool: &str| legacy(1, "tools/call", json!({ "name": tool, "arguments": {} }));

    let client = Client::new(&host).initialized("2025-11-25").await;
    let other = Client::of(&client.service).initialized("2025-11-25").await;
    for session in [&client, &other] {
        for tool in ["hold", "stored"] {
            session.post(&hold(tool)).await.answer().await;
        }
    }
    assert_eq!((life.count(), host.states()), (2, (2, 2)));
    assert_eq!(client.delete().await.status, 204);
    assert_eq!((life.count(), host.states()), (1, (1, 1)));

    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.call(&hold("hold")).await;
    assert_eq!(life.count(), 2);
    // Another handshake on the channel is refused, and the session stays.
    peer.call(&initialize("2025-06-18", json!({}))).await;
    assert_eq!(life.count(), 2);
    drop(peer);
    settle().await;
    assert_eq!((life.count(), host.states()), (1, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn handler_state_is_bounded_with_lru_eviction() {
    let limits = StateLimits { total: 8, per_principal: 2, ..StateLimits::default() };
    let host = host(limits);
    let service = service(&host);
    let ann = Client::of(&service).named("ann");
    for tool in ["live", "stored"] {
        let mut handles = Vec::new();
        for _ in 0..3 {
            let made = counted(&ann, tool, json!({})).await;
            handles.push(made["result"]["structuredContent"]["handle"].clone());
        }
        for (handle, is_gone) in handles.iter().zip([true, false, false]) {
            let found = counted(&ann, tool, json!({ "handle": handle })).await;
            assert_eq!(found["result"]["isError"] == true, is_gone, "{tool}");
        }
    }
    let anyone = Client::of(&host.http_service(HttpServerOptions::default()));
    for _ in 0..20 {
        counted(&anyone, "live", json!({})).await;
        counted(&anyone, "stored", json!({})).await;
    }
    assert_eq!(host.states(), (8, 8));
}

#[tokio::test]
async fn idle_handler_state_expires() {
    let limits = StateLimits { idle: Duration::ZERO, ..StateLimits::default() };
    let host = host(limits);
    let client = Client::new(&host);
    for tool in ["live", "stored"] {
        let handle = counted(&client, tool, json!({})).await["result"]["structuredContent"]["handle"].clone();
        // What is stored is over before it can even be changed once.
        let again = counted(&client, tool, json!({ "handle": handle })).await;
        assert_eq!(again["result"]["isError"], true, "{tool}: {again}");
        // A session's own is not, since it lasts as long as the session.
        let session = client.clone().initialized("2025-11-25").await;
        for count in 1..=2 {
            let call = legacy(count, "tools/call", json!({ "name": tool, "arguments": {} }));
            let answer = session.post(&call).await.answer().await;
            assert_eq!(answer["result"]["structuredContent"]["count"], count, "{tool}: {answer}");
        }
    }
    client.service.sweep().await;
    assert_eq!(host.states(), (1, 1), "only what belongs to sessions is left");
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_of_a_session_share_one_state() {
    let host = host(StateLimits::default());
    let client = Client::new(&host).initialized("2025-11-25").await;
    for tool in ["live", "stored"] {
        let mut running = Vec::new();
        for id in 0..100 {
            let client = client.clone();
            let call = legacy(id, "tools/call", json!({ "name": tool, "arguments": {} }));
            running.push(tokio::spawn(async move { client.post(&call).await.answer().await }));
        }
        let mut counts = Vec::new();
        for call in running {
            let answer = within(call).await.unwrap();
            counts.push(answer["result"]["structuredContent"]["count"].as_u64().unwrap());
        }
        assert_eq!(counts.iter().max(), Some(&100), "{tool}");
    }
}
