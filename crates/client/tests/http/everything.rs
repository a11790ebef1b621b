//! The same things over every transport in every revision that it has.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::Notify;
use trunkline_client::protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, InputRequest, InputResponse, ResourceBody, Role, Root,
};
use trunkline_client::protocol::{Era, JsonObject, LoggingLevel, Refusal, Revision};
use trunkline_client::transport::dial::ProxySettings;
use trunkline_client::{
    ChangeEvent, ChangeFilter, Client, ClientBuilder, CompletionRequest, Error, InputOrigin, RequestDelivery,
};
use trunkline_server::Tool;
use trunkline_server::http::HttpServerOptions;

use crate::answers::{Answers, accept};
use crate::test_server::{Certificate, TestProxy, TestServer, direct, through};
use crate::within;

/// Responds to every input request of the server.
fn answer(question: &InputRequest) -> Result<InputResponse, Refusal> {
    Ok(match question {
        InputRequest::Form(form) => {
            let schema: serde_json::Value = form.schema.decode().unwrap();
            let name = schema["properties"].as_object().unwrap().keys().next().unwrap().clone();
            accept(&json!({ name: true }))
        }
        InputRequest::Sampling(_) => InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content: vec![Content::text("Hello.")],
            model: "m".to_owned(),
            stop_reason: None,
            meta: None,
            rest: JsonObject::new(),
        }),
        InputRequest::Roots => {
            InputResponse::Roots(vec![Root { uri: "file:///home".to_owned(), ..Root::default() }])
        }
        other => panic!("nobody asks {other:?}"),
    })
}

/// Does everything that a client can do, and leaves nothing behind.
async fn check_everything(
    place: &TestServer,
    url: &str,
    revision: Revision,
    transport: &str,
    builder: ClientBuilder,
) {
    let what = format!("{revision} over {url}");
    let logged = Arc::new(Mutex::new(Vec::new()));
    let told = logged.clone();
    let answers = Answers::new(answer)
        .declaring(ClientCapabilities::default().with_form().with_sampling().with_roots());
    let builder = builder
        .input(answers.clone())
        .pin(revision)
        .on_log(move |message| told.lock().unwrap().push(message.level));
    let client = within(builder.connect(url)).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let server = client.server();
    assert_eq!((server.revision, server.transport), (revision, transport), "{what}");
    assert_eq!(server.identity.as_ref().unwrap().name, "everything");
    lists_and_calls(&client, &what).await;
    asks(&client, &what).await;
    tells_of_changes(place, &client, &what).await;
    cancels(place, &client, &what).await;
    within(client.set_level(LoggingLevel::Info)).await.unwrap();
    within(client.call("log", json!({}))).await.unwrap();
    within(async {
        while logged.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(*logged.lock().unwrap(), [LoggingLevel::Warning], "{what}");
    // Servers may ask for roots whenever they like.
    let asked = answers.asked().into_iter().filter(|(_, question)| !matches!(question, InputRequest::Roots));
    assert!(asked.into_iter().all(|(origin, _)| matches!(origin, InputOrigin::Call { .. })), "{what}");
    ends_for_all(client, &what).await;
    place.wait_idle().await;
}

/// Closes a client while a stream is read and a call runs: both end, and nothing is sent any more.
async fn ends_for_all(client: Client, what: &str) {
    let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
    let running = Arc::new(Notify::new());
    let began = running.clone();
    let call = client.call("wait", json!({})).progress(move |_| began.notify_one()).into_future();
    let call = tokio::spawn(call);
    within(running.notified()).await;
    within(client.clone().close()).await;
    within(async { while changes.next().await.is_some() {} }).await;
    let ended = within(call).await.unwrap();
    assert!(
        matches!(&ended, Err(Error::Closed { delivery: RequestDelivery::MaybeSent, .. })),
        "{what}: {ended:?}"
    );
    let late = within(client.call("add", json!({ "a": 2, "b": 3 }))).await;
    assert!(
        matches!(&late, Err(Error::Closed { delivery: RequestDelivery::NotSent, .. })),
        "{what}: {late:?}"
    );
}

async fn lists_and_calls(client: &Client, what: &str) {
    let tools = within(client.tools()).await.unwrap();
    assert_eq!(tools.first().map(|tool| tool.name.as_str()), Some("add"), "{what}");
    let sum = within(client.call("add", json!({ "a": 2, "b": 3 }))).await.unwrap();
    assert_eq!(sum.text(), "5", "{what}");
    let sums = (0..50).map(|b| client.call("add", json!({ "a": 1, "b": b })).into_future());
    for (b, sum) in within(join_all(sums)).await.into_iter().enumerate() {
        assert_eq!(sum.unwrap().text(), (b + 1).to_string(), "{what}");
    }
    let large = "é".repeat(300_000);
    let echoed = within(client.call("echo", json!({ "message": large }))).await.unwrap();
    assert!(echoed.text() == large, "{what}");
    let Err(Error::ErrorResponse(refused)) = within(client.call("nothing", json!({}))).await else {
        panic!()
    };
    assert_eq!(refused.code, -32602, "{what}");
    let read = within(client.read("test://a")).await.unwrap();
    assert_eq!(read.contents[0].body, ResourceBody::Text("alpha".to_owned()), "{what}");
    let prompt = within(client.get_prompt("greet", json!({ "who": "Zoë" }))).await.unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("Greet Zoë."), "{what}");
    let values = within(client.complete(CompletionRequest::prompt("greet", "who", "a"))).await.unwrap();
    assert_eq!(values.values, ["ada", "alan"], "{what}");
    assert_eq!(within(client.ping()).await.is_ok(), client.server().revision.era() == Era::Legacy, "{what}");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    let call = client.call("progress", json!({})).progress(move |p| told.lock().unwrap().push(p.progress));
    assert_eq!(within(call).await.unwrap().text(), "done", "{what}");
    assert_eq!(heard.lock().unwrap().last(), Some(&3.0), "{what}");
}

async fn asks(client: &Client, what: &str) {
    let sampled = within(client.call("sample", json!({}))).await.unwrap();
    assert_eq!(sampled.text(), "Hello.", "{what}");
    let roots = within(client.call("roots", json!({}))).await.unwrap();
    assert_eq!(roots.text(), r#"["file:///home"]"#, "{what}");
    if client.server().revision >= Revision::V2025_06_18 {
        let calls = (0..8).map(|_| client.call("in_sequence", json!({})).into_future());
        for result in within(join_all(calls)).await {
            assert_eq!(result.unwrap().text(), "true true", "{what}");
        }
    }
}

async fn tells_of_changes(place: &TestServer, client: &Client, what: &str) {
    let mut changes = within(client.subscribe(ChangeFilter::all_lists().with_uri("test://a"))).await.unwrap();
    place.parts.notify_updated("test://a");
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resource("test://a".to_owned())), "{what}");
    place.parts.add(Tool::new("late").run(async || "late")).unwrap();
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{what}");
    assert!(within(client.tools()).await.unwrap().iter().any(|tool| tool.name == "late"), "{what}");
    place.parts.remove_tool("late");
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{what}");
}

async fn cancels(place: &TestServer, client: &Client, what: &str) {
    let before = place.life.cancelled.load(Ordering::SeqCst);
    let running = Arc::new(Notify::new());
    let began = running.clone();
    let call = client.call("wait", json!({})).progress(move |_| began.notify_one());
    tokio::select! {
        _ = call.into_future() => panic!("it never ends"),
        () = within(running.notified()) => {}
    }
    within(async {
        while place.life.cancelled.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let echoed = within(client.call("echo", json!({ "message": "still here" }))).await.unwrap();
    assert_eq!(echoed.text(), "still here", "{what}");
}

#[tokio::test]
async fn streamable_http_supports_all_features_in_every_revision() {
    for always_stream in [false, true] {
        let place =
            TestServer::start_with(HttpServerOptions { always_stream, ..HttpServerOptions::default() }).await;
        for revision in Revision::ALL {
            check_everything(&place, &place.url("http", "/mcp"), revision, "streamable-http", direct()).await;
        }
    }
}

#[tokio::test]
async fn websocket_supports_all_features_in_every_revision() {
    let place = TestServer::start().await;
    for revision in Revision::ALL {
        check_everything(&place, &place.url("ws", "/ws"), revision, "websocket", direct()).await;
    }
}

#[tokio::test]
async fn http_sse_supports_all_features_in_every_legacy_revision() {
    let place = TestServer::start().await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        check_everything(&place, &place.url("http", "/sse"), revision, "sse", direct()).await;
    }
}

#[tokio::test]
async fn all_features_work_over_tls_and_through_proxies() {
    let certificate = Certificate::new();
    let tls = HttpServerOptions { tls: Some(certificate.tls()), ..HttpServerOptions::default() };
    let (plain, secure) = (TestServer::start().await, TestServer::start_with(tls).await);
    let port = secure.address.port();
    let (proxy, https, wss) =
        (TestProxy::start().await, format!("https://localhost:{port}"), format!("wss://localhost:{port}"));
    let (newest, legacy) = (Revision::NEWEST, Revision::NEWEST_LEGACY);
    for revision in [legacy, newest] {
        let mcp = format!("{https}/mcp");
        check_everything(
            &secure,
            &mcp,
            revision,
            "streamable-http",
            certificate.trusting(ProxySettings::none()),
        )
        .await;
        let wss = format!("{wss}/ws");
        check_everything(&secure, &wss, revision, "websocket", certificate.trusting(ProxySettings::none()))
            .await;
    }
    assert_eq!(proxy.tunnels.load(Ordering::SeqCst), 0);
    for revision in [legacy, newest] {
        let (mcp, ws) = (format!("{https}/mcp"), plain.url("ws", "/ws"));
        let trusting = certificate.trusting(proxy.proxies());
        check_everything(&secure, &mcp, revision, "streamable-http", trusting).await;
        check_everything(&plain, &ws, revision, "websocket", through(proxy.proxies())).await;
    }
    assert!(proxy.tunnels.load(Ordering::SeqCst) > 0);
    assert_eq!(
        proxy.requests.load(Ordering::SeqCst),
        0,
        "nothing that is encrypted is for the proxy to read"
    );
    for (revision, path, transport) in
        [(newest, "/mcp", "streamable-http"), (legacy, "/mcp", "streamable-http"), (legacy, "/sse", "sse")]
    {
        let url = plain.url("http", path);
        check_everything(&plain, &url, revision, transport, through(proxy.proxies())).await;
    }
    assert!(proxy.requests.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn unpinned_connect_selects_the_newest_revision_of_each_transport() {
    let place = TestServer::start().await;
    for (scheme, path, revision, transport) in [
        ("http", "/mcp", Revision::NEWEST, "streamable-http"),
        ("ws", "/ws", Revision::NEWEST, "websocket"),
        ("http", "/sse", Revision::NEWEST_LEGACY, "sse"),
    ] {
        let url = place.url(scheme, path);
        let client = within(direct().connect(url.as_str())).await.unwrap();
        let server = client.server();
        assert_eq!((server.revision, server.transport), (revision, transport));
        within(client.close()).await;
        place.wait_idle().await;
    }
}
