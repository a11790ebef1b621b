//! Input rounds with state that travels through the client: tools that are replayed, and handlers with their own
//! bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use trunkline_server::protocol::Refusal;
use trunkline_server::protocol::codec::ServerResult;
use trunkline_server::protocol::mirror::MirroredParams;
use trunkline_server::protocol::model::{
    CallToolResult, Implementation, InputRequest, ListCapability, ServerCapabilities,
};
use trunkline_server::{
    BoxFuture, CallerIdentity, ChangePublisher, ChangeSubscription, Confirm, Context, Form as _, Handler,
    HandlerContinuation, HandlerOutcome, Host, HostOptions, IncomingCall, InputRound, Server, StateKeys,
    SubscriptionFilter, Tool, ToolError, ask,
};

use crate::input_rounds::accept;
use crate::support::{
    Client, ModernRequest, Peer, ReceivedLine, code, legacy_tool, lines, outcome, questions, response, text,
    tool_text,
};

fn replayed(starts: &Arc<AtomicUsize>) -> Server {
    let starts = starts.clone();
    let schema = json!({ "type": "object" });
    let three = Tool::new("three").replay().input_schema(schema.clone()).run_raw(move |cx: Context, _| {
        starts.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut said = Vec::new();
            for key in ["a", "b", "c"] {
                said.push(cx.ask(ask::<Confirm>("Sure?").key(key)).await?.0.to_string());
            }
            Ok::<_, ToolError>(said.join(" "))
        }
    });
    let until_yes =
        Tool::new("until_yes").replay().input_schema(schema).run_raw(|cx: Context, _| async move {
            let mut tries = 1;
            while !cx.ask(ask::<Confirm>("Now?").key("now")).await?.0 {
                tries += 1;
            }
            Ok::<_, ToolError>(tries.to_string())
        });
    Server::new("replayed").with(three).with(until_yes)
}

fn with_keys(server: &Server, keys: &StateKeys) -> Host {
    server.host(HostOptions { state_keys: Some(keys.clone()), ..HostOptions::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn replayed_call_continues_on_any_replica_with_the_same_keys() {
    let starts = Arc::new(AtomicUsize::new(0));
    let keys = StateKeys::random().unwrap();
    // Two replicas have nothing in common but their keys.
    let hosts = [with_keys(&replayed(&starts), &keys), with_keys(&replayed(&starts), &keys)];
    let stranger = with_keys(&replayed(&starts), &StateKeys::random().unwrap());
    let over_http = hosts.each_ref().map(|host| ReceivedLine::Http(Client::new(host)));
    let over_channels = hosts.each_ref().map(|host| ReceivedLine::Channel(Peer::new(host)));
    for mut replicas in [over_http, over_channels] {
        starts.store(0, Ordering::SeqCst);
        let mut answer = replicas[0].call(&ModernRequest::tool("three")).await;
        for (round, (key, yes)) in [("a", true), ("b", false), ("c", true)].into_iter().enumerate() {
            assert_eq!(questions(&answer), [key]);
            let answers = json!({ key: accept(yes) });
            let retry = ModernRequest::tool("three").id(round + 2).after(&answer).answers(answers);
            let [mut elsewhere, _] = lines(&stranger);
            assert_eq!(code(&elsewhere.call(&retry).await), -32602);
            answer = replicas[(round + 1) % 2].call(&retry).await;
        }
        assert_eq!(tool_text(&answer), "true false true");
        assert_eq!(starts.load(Ordering::SeqCst), 4, "once a round");
    }
    assert_eq!(hosts.map(|host| host.load()), [(0, 0), (0, 0)]);
}

#[tokio::test(start_paused = true)]
async fn hundred_calls_alternating_between_two_replicas_succeed() {
    let keys = StateKeys::random().unwrap();
    let hosts = [(); 2].map(|()| with_keys(&replayed(&Arc::default()), &keys));
    let mut replicas = hosts.each_ref().map(|host| ReceivedLine::Http(Client::new(host)));
    let mut turn = 0;
    let mut next = || {
        turn += 1;
        turn % 2
    };
    for call in 0..100 {
        let mut answer = replicas[next()].call(&ModernRequest::tool("until_yes").id(call)).await;
        for yes in [false, true] {
            let answers = json!({ "now": accept(yes) });
            let retry = ModernRequest::tool("until_yes").id(call).after(&answer).answers(answers);
            answer = replicas[next()].call(&retry).await;
        }
        assert_eq!(tool_text(&answer), "2", "call {call}");
    }
    assert_eq!(hosts.map(|host| host.load()), [(0, 0), (0, 0)]);
}

#[tokio::test(start_paused = true)]
async fn replayed_call_drops_invalid_input_responses() {
    let host = with_keys(&replayed(&Arc::default()), &StateKeys::random().unwrap());
    for mut line in lines(&host) {
        let mut asked = line.call(&ModernRequest::tool("three")).await;
        for (key, answer, next) in
            [("a", json!(true), "b"), ("b", json!("perhaps"), "b"), ("b", json!(false), "c")]
        {
            let retry = ModernRequest::tool("three").after(&asked).answers(json!({ key: accept(answer) }));
            asked = line.call(&retry).await;
            assert_eq!(questions(&asked), [next]);
        }
        let last = ModernRequest::tool("three").after(&asked).answers(json!({ "c": accept(true) }));
        assert_eq!(tool_text(&line.call(&last).await), "true false true");
    }
}

#[tokio::test(start_paused = true)]
async fn replayed_call_keeps_earlier_responses_over_those_of_a_retry() {
    let host = with_keys(&replayed(&Arc::default()), &StateKeys::random().unwrap());
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("three").answers(json!({ "a": accept(true) }))).await;
        assert_eq!(questions(&asked), ["b"]);
        let answers = json!({ "a": accept(false), "b": accept(false), "c": accept(false) });
        let answer = line.call(&ModernRequest::tool("three").id(2).after(&asked).answers(answers)).await;
        assert_eq!(tool_text(&answer), "true false false");
    }
}

#[tokio::test(start_paused = true)]
async fn replayed_call_can_reuse_an_input_request_key() {
    let host = with_keys(&replayed(&Arc::default()), &StateKeys::random().unwrap());
    for mut line in lines(&host) {
        let mut asked = line.call(&ModernRequest::tool("until_yes")).await;
        for (id, yes) in [(2, false), (3, false)] {
            assert_eq!(questions(&asked), ["now"]);
            let answers = json!({ "now": accept(yes) });
            asked = line.call(&ModernRequest::tool("until_yes").id(id).after(&asked).answers(answers)).await;
        }
        let answers = json!({ "now": accept(true) });
        let answer = line.call(&ModernRequest::tool("until_yes").id(4).after(&asked).answers(answers)).await;
        assert_eq!(tool_text(&answer), "3");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_continuation_is_stored_in_memory() {
    let keys = StateKeys::random().unwrap();
    let host = with_keys(&replayed(&Arc::default()), &keys);
    let other = with_keys(&replayed(&Arc::default()), &keys);
    let mut large = accept(true);
    large["content"]["pad"] = json!("x".repeat(17 << 10));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("three").answers(json!({ "a": large }))).await;
        assert_eq!(questions(&asked), ["b"]);
        assert!(asked["result"]["requestState"].as_str().unwrap().len() < 1024);
        assert_eq!(host.load(), (0, 1));
        let answers = json!({ "b": accept(true), "c": accept(true) });
        let retry = ModernRequest::tool("three").id(2).after(&asked).answers(answers);
        let [mut elsewhere, _] = lines(&other);
        assert_eq!(code(&elsewhere.call(&retry).await), -32602, "it is on one replica only");
        assert_eq!(tool_text(&line.call(&retry).await), "true true true");
        assert_eq!(code(&line.call(&retry).await), -32602, "it is there once");
        assert_eq!(host.load(), (0, 0));
    }
}

/// A custom handler that answers in steps; its responses so far travel as bytes.
struct StepwiseHandler {
    /// How many bytes are added to every continuation.
    padding: usize,
    changes: ChangePublisher,
}

impl StepwiseHandler {
    fn host(padding: usize) -> Host {
        Host::new(Self { padding, changes: ChangePublisher::default() }, HostOptions::default()).unwrap()
    }

    async fn step(call: IncomingCall, padding: usize) -> Result<HandlerOutcome, Refusal> {
        let told: Vec<u8> = call.continuation.clone().unwrap_or_default().to_vec();
        let told = String::from_utf8(told).unwrap().trim_end().to_owned();
        let ask_for = |key: &str, told: &str| {
            let then = HandlerContinuation::Portable(Bytes::from(format!("{told}{}", " ".repeat(padding))));
            let question = InputRequest::form(format!("{key}?"), Confirm::schema());
            Ok(HandlerOutcome::InputRequired(InputRound {
                requests: vec![(key.to_owned(), question)],
                continuation: then,
            }))
        };
        let answer = async |key: &str| {
            call.context.ask(ask::<Confirm>("again").key(key)).await.map_err(|error| error.to_refusal())
        };
        match told.as_str() {
            "" => ask_for("first", "asked"),
            "asked" => {
                let told = format!("first={}", answer("first").await?.0);
                ask_for("second", &told)
            }
            told => {
                let text = format!("{told} second={}", answer("second").await?.0);
                Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::text(text))))
            }
        }
    }
}

impl Handler for StepwiseHandler {
    fn identity(&self) -> Implementation {
        Implementation::new("stepwise", "1")
    }

    fn capabilities(&self) -> ServerCapabilities {
        let tools = Some(ListCapability { list_changed: false });
        ServerCapabilities { tools, ..ServerCapabilities::default() }
    }

    fn instructions(&self, _: CallerIdentity<'_>) -> Option<String> {
        None
    }

    fn mirrored_arguments(&self, _: &str, _: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        None
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        Box::pin(Self::step(call, self.padding))
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.changes.subscribe(filter)
    }
}

#[tokio::test(start_paused = true)]
async fn handler_returning_input_required_works_in_the_modern_era() {
    for (padding, parked) in [(0, 0), (20 << 10, 1)] {
        let host = StepwiseHandler::host(padding);
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool("any")).await;
            assert_eq!(questions(&asked), ["first"]);
            assert_eq!(host.load(), (0, parked));
            let answers = json!({ "first": accept(true) });
            let asked = line.call(&ModernRequest::tool("any").id(2).after(&asked).answers(answers)).await;
            assert_eq!(questions(&asked), ["second"]);
            let answers = json!({ "second": accept(false) });
            let answer = line.call(&ModernRequest::tool("any").id(3).after(&asked).answers(answers)).await;
            assert_eq!(tool_text(&answer), "first=true second=false");
            assert_eq!(host.load(), (0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handler_returning_input_required_works_in_the_legacy_era() {
    let host = StepwiseHandler::host(20 << 10);
    let client = Client::new(&host).initialized("2025-11-25").await;
    let mut stream = client.post(&legacy_tool(7, "any")).await;
    for yes in [true, false] {
        let question = stream.message().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(client.post(&response(&question, accept(yes))).await.status, 202);
    }
    assert_eq!(tool_text(&stream.answer().await), "first=true second=false");

    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&legacy_tool(7, "any")).await;
    for yes in [true, false] {
        let question = peer.receive().await;
        peer.send(&response(&question, accept(yes))).await;
    }
    assert_eq!(tool_text(&peer.receive().await), "first=true second=false");
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn returned_input_requests_are_not_sent_to_unsupporting_clients() {
    let host = StepwiseHandler::host(0);
    for mut line in lines(&host) {
        let answer = line.call(&ModernRequest::tool("any").capabilities(json!({}))).await;
        assert_eq!(outcome(&answer), "-32021", "{answer}");
    }
    let client = Client::new(&host).initialized_with("2025-11-25", json!({})).await;
    let answer = client.post(&legacy_tool(1, "any")).await.answer().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer).contains("elicitation/create"), "{answer}");
    // A tool that awaits its input requests sends the same message.
    let straight = Tool::new("any").run(async |cx: Context| -> Result<String, ToolError> {
        Ok(cx.ask(ask::<Confirm>("Sure?")).await?.0.to_string())
    });
    let host = with_keys(&Server::new("s").with(straight), &StateKeys::random().unwrap());
    let client = Client::new(&host).initialized_with("2025-11-25", json!({})).await;
    assert_eq!(client.post(&legacy_tool(1, "any")).await.answer().await, answer);
}

/// A handler that requests some retries before it has a result.
struct LaterHandler {
    times: AtomicUsize,
    changes: ChangePublisher,
}

impl Handler for LaterHandler {
    fn identity(&self) -> Implementation {
        Implementation::new("later", "1")
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::default()
    }

    fn instructions(&self, _: CallerIdentity<'_>) -> Option<String> {
        None
    }

    fn mirrored_arguments(&self, _: &str, _: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        None
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        drop(call);
        let left = self.times.fetch_sub(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(match left {
            0 | 1 => HandlerOutcome::Done(ServerResult::Tool(CallToolResult::text("at last"))),
            _ => {
                let then = HandlerContinuation::Portable(Bytes::from_static(b"later"));
                HandlerOutcome::InputRequired(InputRound { requests: Vec::new(), continuation: then })
            }
        })))
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.changes.subscribe(filter)
    }
}

fn later(times: usize) -> Host {
    let handler = LaterHandler { times: AtomicUsize::new(times), changes: ChangePublisher::default() };
    Host::new(handler, HostOptions::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn input_round_without_requests_asks_for_a_retry() {
    for (at, host) in [later(3), later(3)].iter().enumerate() {
        let mut line = lines(host).into_iter().nth(at).unwrap();
        let mut answer = line.call(&ModernRequest::tool("any")).await;
        for id in [2, 3] {
            assert_eq!(questions(&answer), Vec::<String>::new());
            assert_eq!(answer["result"].get("inputRequests").map(Value::is_object), None);
            answer = line.call(&ModernRequest::tool("any").id(id).after(&answer)).await;
        }
        assert_eq!(tool_text(&answer), "at last");
    }
}

#[tokio::test(start_paused = true)]
async fn legacy_call_waits_between_empty_input_rounds() {
    let host = later(4);
    let mut peer = Peer::initialized(&host, "2025-06-18").await;
    let before = tokio::time::Instant::now();
    assert_eq!(tool_text(&peer.call(&legacy_tool(1, "any")).await), "at last");
    assert!(before.elapsed().as_secs() >= 3, "{:?}", before.elapsed());
}
