//! Anonymous clients of several hosts: one host cannot take what all share.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use trunkline_server::http::{HttpServerOptions, HttpService};
use trunkline_server::{Confirm, Context, Host, Resource, Server, ServerLimits, Tool, ToolError, ask};

use crate::input_rounds::accept;
use crate::support::{Client, ModernRequest, host_with, legacy_tool, questions, settle, tool_text, within};

const FLOODER: &str = "192.0.2.66";
const OTHER: &str = "192.0.2.1";

fn server(gate: &Arc<Semaphore>) -> Server {
    let gate = gate.clone();
    Server::new("s")
        .with(Tool::new("wait").run(move || {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                "waited"
            }
        }))
        .with(Tool::new("ask").run(async |cx: Context| {
            let sure = cx.ask(ask::<Confirm>("Sure?").key("sure")).await?;
            Ok::<_, ToolError>(sure.0.to_string())
        }))
        .with(Resource::new("x:1", "r").text("text"))
}

fn limited(limits: ServerLimits) -> (Arc<Semaphore>, Host, HttpService) {
    let gate = Arc::new(Semaphore::new(0));
    let host = host_with(&server(&gate), limits);
    let service = host.http_service(HttpServerOptions::default());
    (gate, host, service)
}

fn from(service: &HttpService, address: &str) -> Client {
    Client::of(service).at_address(address)
}

/// Posts a message that is not answered before the gate opens.
fn hold(client: &Client, message: Value) -> tokio::task::JoinHandle<u16> {
    let client = client.clone();
    tokio::spawn(async move { client.post(&message).await.status })
}

#[tokio::test(start_paused = true)]
async fn host_at_its_call_limit_is_refused_while_another_is_served() {
    let (gate, host, service) =
        limited(ServerLimits { calls: 6, calls_per_principal: 2, ..ServerLimits::default() });
    let flooder = from(&service, FLOODER);
    let session = from(&service, FLOODER).initialized("2025-11-25").await;
    let mut held =
        vec![hold(&flooder, ModernRequest::tool("wait").value()), hold(&session, legacy_tool(1, "wait"))];
    settle().await;
    assert_eq!(host.load().0, 2);
    let refused = flooder.post(&ModernRequest::tool("wait").value()).await;
    assert_eq!((refused.status, session.post(&legacy_tool(2, "wait")).await.status), (429, 429));
    // Of the clients of this host, where a proxy may stand, each may be another.
    for client in [
        from(&service, OTHER),
        from(&service, "127.0.0.1"),
        from(&service, "127.0.0.1"),
        from(&service, "::1"),
    ] {
        held.push(hold(&client, ModernRequest::tool("wait").value()));
    }
    settle().await;
    assert_eq!(host.load().0, 6);
    gate.add_permits(6);
    for call in held {
        assert_eq!(within(call).await.unwrap(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn host_with_the_most_suspended_calls_loses_them_first() {
    let (_, host, service) = limited(ServerLimits { suspended: 4, ..ServerLimits::default() });
    let (flooder, other) = (from(&service, FLOODER), from(&service, OTHER));
    let first = other.post(&ModernRequest::tool("ask").value()).await.answer().await;
    assert_eq!(questions(&first), ["sure"]);
    for _ in 0..20 {
        flooder.post(&ModernRequest::tool("ask").value()).await.answer().await;
    }
    settle().await;
    assert_eq!(host.load(), (0, 4));
    let retry = ModernRequest::tool("ask").id("retry").after(&first).answers(json!({ "sure": accept(true) }));
    assert_eq!(tool_text(&other.post(&retry.value()).await.answer().await), "true");
}

#[tokio::test(start_paused = true)]
async fn large_requests_of_one_host_leave_memory_for_those_of_another() {
    const KIB: usize = 1 << 10;
    let (gate, host, service) =
        limited(ServerLimits { request_memory_bytes: 1024 * KIB, ..ServerLimits::default() });
    let large = || {
        let mut message = ModernRequest::tool("wait").value();
        message["params"]["_meta"]["padding"] = json!("p".repeat(200 * KIB));
        message
    };
    let (flooder, other) = (from(&service, FLOODER), from(&service, OTHER));
    // Two requests of 256 KiB are half of it.
    let mut held = vec![hold(&flooder, large()), hold(&flooder, large())];
    settle().await;
    for _ in 0..4 {
        assert_eq!(flooder.post(&large()).await.status, 429);
    }
    held.push(hold(&other, large()));
    settle().await;
    assert_eq!(host.load().0, 3);
    gate.add_permits(3);
    for call in held {
        assert_eq!(within(call).await.unwrap(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_of_one_host_leave_some_to_another() {
    let (_, _, service) = limited(ServerLimits {
        subscriptions: 6,
        connections_per_address: 3,
        subscriptions_per_principal: 1,
        ..ServerLimits::default()
    });
    let listen = |id: u64| {
        let filter = json!({ "resourceSubscriptions": ["x:1"] });
        ModernRequest::new("subscriptions/listen").id(id).param("notifications", filter).value()
    };
    let (flooder, other) = (from(&service, FLOODER), from(&service, OTHER));
    let mut open = Vec::new();
    for id in 0..10 {
        let stream = flooder.post(&listen(id)).await;
        assert_eq!(stream.status, if id < 3 { 200 } else { 429 });
        open.push(stream);
    }
    assert_eq!(other.post(&listen(1)).await.status, 200);
}
