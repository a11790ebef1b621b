//! Input requests in the legacy era: requests of the server's own, on the stream or channel of the call that makes
//! them.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_server::protocol::model::{CreateMessageRequest, CreateMessageResult};
use trunkline_server::{
    AskError, Confirm, Context, Server, ServerLimits, Tool, ToolError, TypedInputRequest, ask, elicit,
    open_url, sample,
};

use crate::input_rounds::accept;
use crate::support::{
    Client, JSON_ONLY, ModernRequest, Peer, code, host, host_with, legacy_tool, note, response, service,
    settle, text, tool_text,
};

const LEGACY_WITH_FORMS: [&str; 2] = ["2025-06-18", "2025-11-25"];

fn titled() -> Value {
    json!({ "type": "object", "properties": { "colour": {
        "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }], "default": "r",
    } } })
}

fn server() -> Server {
    Server::new("asker")
        .with(Tool::new("confirm").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(ask::<Confirm>("Sure?")).await?.0.to_string())
        }))
        .with(Tool::new("pair").run(async |cx: Context| -> Result<String, ToolError> {
            let (a, b) = cx.ask_all((ask::<Confirm>("A?"), ask::<Confirm>("B?"))).await?;
            Ok(format!("{} {}", a.0, b.0))
        }))
        .with(Tool::new("failure").run(async |cx: Context| match cx.ask(ask::<Confirm>("Sure?")).await {
            Ok(_) => "answered".to_owned(),
            Err(AskError::Refused(why)) => format!("refused: {why}"),
            Err(AskError::Malformed(_)) => "malformed".to_owned(),
            Err(other) => format!("other: {other}"),
        }))
        .with(Tool::new("colour").run(async |cx: Context| -> Result<String, ToolError> {
            let answer = cx.ask(elicit("Which colour?", titled())).await?;
            Ok(answer.content.map(|raw| raw.as_str().to_owned()).unwrap_or_default())
        }))
        .with(Tool::new("page").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(format!("{:?}", cx.ask(open_url("Log in", "https://example.com/login")).await?.action))
        }))
        .with(Tool::new("sample").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(sample(CreateMessageRequest::new([], 5))).await?.model)
        }))
}

#[tokio::test(start_paused = true)]
async fn input_request_uses_the_stream_of_its_call_and_its_response_is_posted() {
    let host = host(&server());
    for revision in LEGACY_WITH_FORMS {
        let client = Client::new(&host).initialized(revision).await;
        let mut stream = client.post(&legacy_tool(1, "pair")).await;
        assert!(stream.is_stream());
        let [first, second] = [stream.message().await.unwrap(), stream.message().await.unwrap()];
        assert_eq!((&first["method"], &second["method"]), (&json!("elicitation/create"), &first["method"]));
        assert_ne!(first["id"], second["id"]);
        for (question, yes) in [(&second, false), (&first, true)] {
            let posted = client.post(&response(question, accept(yes))).await;
            assert_eq!(posted.status, 202);
            assert_eq!(posted.header("content-type"), None);
        }
        let messages = stream.rest().await;
        assert_eq!(messages.len(), 1, "the answer is the last message: {messages:?}");
        assert_eq!(tool_text(&messages[0]), "true false");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_uses_the_channel_of_its_call() {
    let host = host(&server());
    for revision in LEGACY_WITH_FORMS {
        let mut peer = Peer::initialized(&host, revision).await;
        peer.send(&legacy_tool("c", "pair")).await;
        let [first, second] = [peer.receive().await, peer.receive().await];
        peer.send(&response(&second, accept(false))).await;
        assert!(peer.received().await.is_empty(), "one answer is missing");
        peer.send(&response(&first, accept(true))).await;
        assert_eq!(tool_text(&peer.receive().await), "true false");
    }
}

#[tokio::test(start_paused = true)]
async fn declined_or_cancelled_legacy_elicitation_is_a_tool_error() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut peer = Peer::initialized(&host, "2025-06-18").await;
    for (action, said) in [("decline", "the user declined"), ("cancel", "the user dismissed the question")] {
        let mut stream = client.post(&legacy_tool(1, "confirm")).await;
        let question = stream.message().await.unwrap();
        client.post(&response(&question, json!({ "action": action }))).await;
        let answer = stream.answer().await;
        assert_eq!((text(&answer), &answer["result"]["isError"]), (said, &json!(true)));

        peer.send(&legacy_tool(1, "confirm")).await;
        let question = peer.receive().await;
        peer.send(&response(&question, json!({ "action": action }))).await;
        assert_eq!(text(&peer.receive().await), said);
    }
}

#[tokio::test(start_paused = true)]
async fn error_or_malformed_response_fails_only_its_input_request() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let error = |message: &str| json!({ "error": { "code": -1, "message": message } });
    // A response that does not fit may be a mistake, and the input request is repeated twice.
    for (answer, times, said) in [
        (error("User rejected the request"), 1, "refused: User rejected the request"),
        (json!({ "error": { "code": -32603 } }), 1, "refused: no reason given"),
        (json!({ "error": 7 }), 1, "refused: no reason given"),
        (json!({ "result": {} }), 3, "malformed"),
        (json!({ "result": 7 }), 3, "malformed"),
        (json!({ "result": { "action": "accept" } }), 3, "malformed"),
        (json!({ "result": accept("yes") }), 3, "malformed"),
    ] {
        let mut stream = client.post(&legacy_tool(1, "failure")).await;
        for _ in 0..times {
            let question = stream.message().await.unwrap();
            let mut posted = json!({ "jsonrpc": "2.0", "id": question["id"] });
            posted.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
            let status = client.post(&posted).await.status;
            assert!(status == 202, "{answer}: {status}");
        }
        assert_eq!(tool_text(&stream.answer().await), said, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_request_without_timeout_outlives_its_stream() {
    let limits = ServerLimits { suspended_for: Duration::MAX, ..ServerLimits::default() };
    let host = host_with(&server(), limits);
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "confirm")).await;
    let question = stream.message().await.unwrap();
    drop(stream);
    settle().await;
    assert_eq!(host.load(), (1, 0));
    client.post(&response(&question, accept(true))).await;
    settle().await;
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn invalid_input_response_repeats_the_input_request() {
    let host = host(&server());
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "confirm")).await;
    let first = peer.receive().await;
    peer.send(&response(&first, accept("perhaps"))).await;
    let second = peer.receive().await;
    assert_eq!((&second["method"], &second["params"]), (&first["method"], &first["params"]));
    assert_ne!(second["id"], first["id"]);
    peer.send(&response(&second, accept(true))).await;
    assert_eq!(tool_text(&peer.receive().await), "true");
}

#[tokio::test(start_paused = true)]
async fn responses_to_no_open_request_are_ignored() {
    let host = host(&server());
    let service = service(&host);
    let ann = Client::of(&service).named("ann").initialized("2025-11-25").await;
    let other = Client::of(&service).named("ann").initialized("2025-11-25").await;
    let bob = Client::of(&service).named("bob").initialized("2025-11-25").await;
    let mut stream = ann.post(&legacy_tool(1, "confirm")).await;
    let question = stream.message().await.unwrap();

    for stranger in [&other, &bob] {
        assert_eq!(stranger.post(&response(&question, accept(false))).await.status, 202);
    }
    for id in [json!("trunkline-999"), json!(1), json!("")] {
        let unknown = json!({ "jsonrpc": "2.0", "id": id, "result": accept(false) });
        assert_eq!(ann.post(&unknown).await.status, 202, "{id}");
    }
    settle().await;
    assert_eq!(host.load(), (1, 0), "the question is still open");
    assert_eq!(ann.post(&response(&question, accept(true))).await.status, 202);
    assert_eq!(tool_text(&stream.answer().await), "true");
    assert_eq!(ann.post(&response(&question, accept(true))).await.status, 202, "a second answer is late");
}

#[tokio::test(start_paused = true)]
async fn response_outside_of_a_session_is_refused() {
    let host = host(&server());
    let refused = Client::new(&host).post(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    assert_eq!(refused.status, 400);
    assert_eq!(code(&refused.answer().await), -32600);
}

#[tokio::test(start_paused = true)]
async fn input_request_fails_for_a_client_without_sse() {
    let host = host(&server());
    let client = Client::new(&host).with("accept", JSON_ONLY).initialized("2025-11-25").await;
    let response = client.post(&legacy_tool(1, "confirm")).await;
    assert!(!response.is_stream());
    assert_eq!(response.status, 200);
    let answer = response.answer().await;
    assert_eq!(answer["result"]["isError"], true, "for the model to read: {answer}");
    assert!(text(&answer).contains("elicitation/create"), "{answer}");
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn unsupported_input_requests_are_not_sent() {
    let host = host(&server());
    for (revision, capabilities, tool) in [
        ("2025-11-25", json!({}), "confirm"),
        ("2025-11-25", json!({ "elicitation": {} }), "sample"),
        ("2025-11-25", json!({ "elicitation": {} }), "page"),
        ("2025-11-25", json!({ "elicitation": { "url": {} } }), "confirm"),
        ("2025-06-18", json!({ "elicitation": { "url": {} } }), "page"),
        ("2025-03-26", json!({ "elicitation": {} }), "confirm"),
        ("2024-11-05", json!({ "elicitation": {} }), "confirm"),
    ] {
        let client = Client::new(&host).initialized_with(revision, capabilities.clone()).await;
        let answer = client.post(&legacy_tool(1, tool)).await.answer().await;
        assert_eq!(answer["result"]["isError"], true, "{revision} {capabilities} {tool}: {answer}");
        assert!(text(&answer).contains("requiredCapabilities"), "{revision} {tool}: {answer}");
    }
}

/// Tools that make several input requests at once and return why that failed.
fn several() -> Server {
    fn said<T>(asked: Result<T, AskError>) -> String {
        asked.map_or_else(|error| format!("not asked: {error}"), |_| "asked".to_owned())
    }
    fn sampled() -> TypedInputRequest<CreateMessageResult> {
        sample(CreateMessageRequest::new([], 5))
    }
    Server::new("asker")
        .with(
            Tool::new("user-first")
                .run(async move |cx: Context| said(cx.ask_all((ask::<Confirm>("Sure?"), sampled())).await)),
        )
        .with(
            Tool::new("model-first")
                .run(async move |cx: Context| said(cx.ask_all((sampled(), ask::<Confirm>("Sure?"))).await)),
        )
        .with(Tool::new("page-last").run(async move |cx: Context| {
            said(cx.ask_all((ask::<Confirm>("Sure?"), open_url("Log in", "https://example.com/"))).await)
        }))
        .with(Tool::new("one-key").run(async move |cx: Context| {
            let question = || ask::<Confirm>("Sure?").key("same");
            said(cx.ask_all((question(), question())).await)
        }))
}

#[tokio::test(start_paused = true)]
async fn no_input_request_is_sent_if_one_of_several_is_unsupported() {
    let host = host(&several());
    let forms = json!({ "elicitation": { "form": {} } });
    // The capability is of a later revision than the client's.
    let pages = json!({ "elicitation": { "form": {}, "url": {} } });
    for (revision, capabilities, tool) in [
        ("2025-11-25", &forms, "user-first"),
        ("2025-11-25", &forms, "model-first"),
        ("2025-06-18", &pages, "page-last"),
        ("2025-11-25", &forms, "one-key"),
        ("2026-07-28", &forms, "user-first"),
        ("2026-07-28", &forms, "model-first"),
        ("2026-07-28", &forms, "one-key"),
    ] {
        let messages = if revision == "2026-07-28" {
            let call = ModernRequest::tool(tool).capabilities(capabilities.clone());
            Client::new(&host).post(&call.value()).await.rest().await
        } else {
            let client = Client::new(&host).initialized_with(revision, capabilities.clone()).await;
            client.post(&legacy_tool(1, tool)).await.rest().await
        };
        let [answer] = messages.as_slice() else { panic!("{revision} {tool}: {messages:?}") };
        assert!(text(answer).starts_with("not asked: "), "{revision} {tool}: {answer}");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_is_rendered_in_the_clients_revision() {
    let host = host(&server());
    let plain = json!({ "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] });
    let rich = titled()["properties"]["colour"].clone();
    for (revision, field, mode, accepted) in [
        // A default that was never shown is filled in by the server.
        ("2025-06-18", plain, Value::Null, r#"{"colour":"r"}"#),
        ("2025-11-25", rich, json!("form"), "{}"),
    ] {
        let client = Client::new(&host).initialized(revision).await;
        let mut stream = client.post(&legacy_tool(1, "colour")).await;
        let question = stream.message().await.unwrap();
        assert_eq!(question["params"]["requestedSchema"]["properties"]["colour"], field, "{revision}");
        assert_eq!(question["params"]["mode"], mode, "{revision}");
        client.post(&response(&question, json!({ "action": "accept", "content": {} }))).await;
        assert_eq!(tool_text(&stream.answer().await), accepted, "{revision}");
    }
    let urls = json!({ "elicitation": { "url": {} } });
    let client = Client::new(&host).initialized_with("2025-11-25", urls).await;
    let mut ids = Vec::new();
    for id in [1, 2] {
        let mut stream = client.post(&legacy_tool(id, "page")).await;
        let question = stream.message().await.unwrap();
        assert_eq!(question["params"]["url"], "https://example.com/login");
        ids.push(question["params"]["elicitationId"].as_str().unwrap().to_owned());
        client.post(&response(&question, json!({ "action": "accept" }))).await;
        assert_eq!(tool_text(&stream.answer().await), "Accept");
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn call_cancelled_during_an_input_request_gets_no_response() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "confirm")).await;
    let question = stream.message().await.unwrap();
    let cancel = note("notifications/cancelled", json!({ "requestId": 1 }));
    assert_eq!(client.post(&cancel).await.status, 202);
    assert!(stream.rest().await.is_empty());
    assert_eq!(host.load(), (0, 0));
    assert_eq!(client.post(&response(&question, accept(true))).await.status, 202);

    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "confirm")).await;
    peer.receive().await;
    peer.send(&cancel).await;
    assert!(peer.received().await.is_empty());
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_waiting_for_input_do_not_block_a_full_channel() {
    let limits = ServerLimits { calls_per_channel: 8, ..ServerLimits::default() };
    let host = host_with(&server(), limits);
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    for id in 0..8 {
        peer.send(&legacy_tool(id, "confirm")).await;
    }
    let asked = peer.received().await;
    assert_eq!(asked.len(), 8);
    for question in &asked {
        peer.send(&response(question, accept(true))).await;
    }
    let answers = peer.received().await;
    assert_eq!(answers.len(), 8, "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn channel_at_its_call_limit_still_reads_cancellations() {
    let endless = Tool::new("endless").run(async || std::future::pending::<()>().await);
    let limits = ServerLimits { calls_per_channel: 2, ..ServerLimits::default() };
    let host = host_with(&Server::new("s").with(endless), limits);
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    for id in 0..2 {
        peer.send(&legacy_tool(id, "endless")).await;
    }
    settle().await;
    assert_eq!(host.load(), (2, 0));
    peer.send(&note("notifications/cancelled", json!({ "requestId": 0 }))).await;
    settle().await;
    assert_eq!(host.load(), (1, 0));
    // A request beyond the limit waits for its turn.
    peer.send(&legacy_tool(2, "endless")).await;
    peer.send(&legacy_tool(3, "endless")).await;
    settle().await;
    assert_eq!(host.load(), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn queued_calls_do_not_block_later_cancellations() {
    let endless = Tool::new("endless").run(async || std::future::pending::<()>().await);
    let quick = Tool::new("quick").run(async || "done");
    let limits = ServerLimits { calls_per_channel: 1, ..ServerLimits::default() };
    let host = host_with(&Server::new("s").with(endless).with(quick), limits);
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(0, "endless")).await;
    peer.send(&legacy_tool(1, "quick")).await;
    peer.send(&legacy_tool(2, "quick")).await;
    settle().await;
    assert_eq!(host.load(), (1, 0), "two wait for their turn");
    // One of those that wait is withdrawn, and then the one that runs: both are read although the channel is full.
    peer.send(&note("notifications/cancelled", json!({ "requestId": 1 }))).await;
    peer.send(&note("notifications/cancelled", json!({ "requestId": 0 }))).await;
    let answers = peer.received().await;
    assert_eq!(
        answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(),
        [json!(2)],
        "{answers:?}"
    );
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_sent_before_draining_can_still_be_answered() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "confirm")).await;
    let over_http = stream.message().await.unwrap();
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(1, "confirm")).await;
    let over_channel = peer.receive().await;

    host.shutdown().drain();
    settle().await;
    assert_eq!(client.post(&response(&over_http, accept(true))).await.status, 202);
    assert_eq!(tool_text(&stream.answer().await), "true");
    let mut stream = client.post(&legacy_tool(2, "confirm")).await;
    let question = stream.message().await.unwrap();
    assert_eq!(client.post(&response(&question, accept(true))).await.status, 202);
    assert_eq!(tool_text(&stream.answer().await), "true", "a request on an open connection is served");

    peer.send(&legacy_tool(2, "confirm")).await;
    assert_eq!(code(&peer.receive().await), -32603, "nothing new begins on a channel");
    peer.send(&response(&over_channel, accept(true))).await;
    assert_eq!(tool_text(&peer.receive().await), "true");
    assert_eq!(peer.try_receive().await, None, "the channel ends with its last call");

    host.shutdown().stop();
    assert_eq!(client.post(&legacy_tool(3, "confirm")).await.status, 503);
    assert_eq!(client.post(&ModernRequest::tool("confirm").value()).await.status, 503);
}

#[tokio::test(start_paused = true)]
async fn open_input_request_gets_keep_alive_comments() {
    let host = host(&server());
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(1, "confirm")).await;
    let question = stream.message().await.unwrap();
    let waiting = tokio::spawn(async move { stream.answer().await });
    tokio::time::sleep(Duration::from_secs(120)).await;
    client.post(&response(&question, accept(true))).await;
    assert_eq!(tool_text(&waiting.await.unwrap()), "true");
}
