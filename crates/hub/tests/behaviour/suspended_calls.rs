//! Calls that wait for the answer to a question in another request, and the state that travels meanwhile.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::{ClientCapabilities, InputResponse};
use trunkline_client::{Client, ClientCall, ClientContinuation, Error, StepOutcome};
use trunkline_hub::{Hub, HubLimits};
use trunkline_server::{Confirm, Context, Host, HostOptions, Server, Tool, ToolError, ask};

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, eager, lazy,
    named_principal, quick, script, serve_hub, text_result, until, within,
};

/// A handler that declares elicitation; the test responds by hand.
fn asked_by_hand() -> RecordingHandler {
    RecordingHandler::with_roots(&[]).declaring(ClientCapabilities::default().with_form())
}

async fn connect(host: &Host, who: &str) -> Client {
    client(host, Client::builder().pin(NEW).input(asked_by_hand()), named_principal(who)).await
}

fn host(hub: &Hub, parked_for: Duration) -> Host {
    let mut options = HostOptions::default();
    options.limits.suspended_for = parked_for;
    Host::new(hub.clone(), options).unwrap()
}

/// A legacy server that requests input in every call, and ends the call when the test allows it.
async fn asking() -> (ScriptedServer, TestServers, Hub) {
    let town = TestServers::default();
    let (heard, opener) = script(|peer, message| match message["method"].as_str() {
        Some("tools/call") => {
            let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } } });
            let params = json!({ "message": "Sure?", "requestedSchema": schema });
            peer.send(
                json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params }),
            );
            ScriptReply::Nothing
        }
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    (heard, town, hub)
}

fn tool(arguments: Value) -> ClientCall {
    ClientCall::tool("a__t", arguments)
}

/// Makes a step that ends with a question, and returns its key and the state.
async fn step(client: &Client, call: ClientCall) -> (String, Bytes) {
    let outcome = within(client.step(call)).await.unwrap();
    let StepOutcome::InputRequired(round) = outcome else { panic!("{outcome:?}") };
    let (questions, then) = round.into_parts();
    let ClientContinuation::Portable(state) = then else { panic!("{then:?}") };
    (questions.into_iter().next().unwrap().0, state)
}

fn retry(call: ClientCall, key: &str, state: &Bytes) -> ClientCall {
    let yes = InputResponse::accept(Some(json!({ "ok": true }).into()));
    call.resume(ClientContinuation::Portable(state.clone()), vec![(key.to_owned(), Ok(yes))])
}

fn refused(outcome: Result<StepOutcome, Error>) -> (i64, String, Value) {
    match outcome {
        Err(Error::ErrorResponse(refused)) => {
            let data = refused.data.as_ref().and_then(|data| data.decode().ok()).unwrap_or_default();
            (refused.code, refused.message, data)
        }
        other => panic!("{other:?}"),
    }
}

fn text(outcome: Result<StepOutcome, Error>) -> String {
    let Ok(StepOutcome::Done(result)) = outcome else { panic!("{outcome:?}") };
    let result: Value = result.decode().unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn input_response_in_a_retry_resumes_the_suspended_call() {
    let (heard, _town, hub) = asking().await;
    let host = host(&hub, Duration::from_secs(600));
    let ada = connect(&host, "ada").await;
    let (key, state) = step(&ada, tool(json!({}))).await;
    let again = tokio::spawn({
        let (ada, call) = (ada.clone(), retry(tool(json!({})), &key, &state));
        async move { ada.step(call).await }
    });
    let answer = heard.answered(&json!("q")).await;
    assert_eq!(answer["result"], json!({ "action": "accept", "content": { "ok": true } }));
    let calls = heard.of("tools/call");
    assert_eq!(calls.len(), 1, "the server was called once");
    heard.answer(&calls[0], text_result("done"));
    assert_eq!(text(within(again).await.unwrap()), "done");
}

#[tokio::test]
async fn suspended_call_state_is_bound_to_caller_request_and_round() {
    let (heard, _town, hub) = asking().await;
    let host = host(&hub, Duration::from_secs(600));
    let (ada, bob) = (connect(&host, "ada").await, connect(&host, "bob").await);
    let (key, state) = step(&ada, tool(json!({ "n": 1 }))).await;
    let mut tampered = state.to_vec();
    // It travels as a text; any other letter at its place is another byte below.
    let at = tampered.len() / 2;
    tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
    for (who, call) in [
        (&bob, retry(tool(json!({ "n": 1 })), &key, &state)),
        (&ada, retry(tool(json!({ "n": 2 })), &key, &state)),
        (&ada, retry(tool(json!({ "n": 1 })), &key, &tampered.into())),
        (&ada, retry(ClientCall::read("x:y"), &key, &state)),
    ] {
        let (code, message, _) = refused(within(who.step(call)).await);
        assert_eq!(code, -32602, "{message}");
    }
    assert_eq!(heard.answer_to(&json!("q")), None, "nothing of this reached the server");
    assert_eq!(heard.of("tools/call").len(), 1);
    // None of that has hurt the call.
    let again = tokio::spawn({
        let (ada, call) = (ada.clone(), retry(tool(json!({ "n": 1 })), &key, &state));
        async move { ada.step(call).await }
    });
    heard.answered(&json!("q")).await;
    let calls = heard.of("tools/call");
    heard.answer(&calls[0], text_result("done"));
    assert_eq!(text(within(again).await.unwrap()), "done");
    let (code, ..) = refused(within(ada.step(retry(tool(json!({ "n": 1 })), &key, &state))).await);
    assert_eq!(code, -32602, "a round is taken once");
}

#[tokio::test]
async fn call_that_ends_before_the_input_response_returns_its_result() {
    let (heard, _town, hub) = asking().await;
    let host = host(&hub, Duration::from_secs(600));
    let ada = connect(&host, "ada").await;
    let (key, state) = step(&ada, tool(json!({}))).await;
    let calls = heard.of("tools/call");
    heard.answer(&calls[0], text_result("took too long"));
    until(|| hub.status_of("a").unwrap().calls == 0).await;
    assert_eq!(text(within(ada.step(retry(tool(json!({})), &key, &state))).await), "took too long");
}

#[tokio::test]
async fn server_death_fails_a_waiting_call_without_a_retry() {
    let (heard, _town, hub) = asking().await;
    let host = host(&hub, Duration::from_secs(600));
    let ada = connect(&host, "ada").await;
    let (key, state) = step(&ada, tool(json!({}))).await;
    heard.newest().close();
    until(|| hub.status_of("a").unwrap().connections == 0).await;
    let (code, message, data) = refused(within(ada.step(retry(tool(json!({})), &key, &state))).await);
    assert_eq!((code, &data["reason"]), (-32603, &json!("upstream_lost")), "{message}");
    assert_eq!(heard.of("tools/call").len(), 1, "it may have done something already");
}

#[tokio::test]
async fn suspended_call_without_a_retry_is_cancelled_at_the_server() {
    let (heard, _town, hub) = asking().await;
    let host = host(&hub, Duration::from_millis(50));
    let ada = connect(&host, "ada").await;
    let (key, state) = step(&ada, tool(json!({}))).await;
    let answer = heard.answered(&json!("q")).await;
    assert_eq!(answer["result"]["action"], "cancel", "{answer}");
    let cancelled = heard.received("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0]["params"]["requestId"], heard.of("tools/call")[0]["id"]);
    until(|| hub.status_of("a").unwrap().calls == 0).await;
    let (code, message, _) = refused(within(ada.step(retry(tool(json!({})), &key, &state))).await);
    assert_eq!(code, -32602, "{message}");
}

/// A modern server with a portable input request, that returns how often its tool was run.
fn travelling() -> Server {
    Server::new("travelling").with(Tool::new("t").replay().run(
        async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(ask::<Confirm>("Sure?").key("sure")).await?.0.to_string())
        },
    ))
}

#[tokio::test]
async fn upstream_request_state_is_sealed_by_the_hub() {
    let town = TestServers::default();
    town.add_server("a", &travelling(), Revision::NEWEST);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let host = host(&hub, Duration::from_secs(600));
    let (ada, bob) = (connect(&host, "ada").await, connect(&host, "bob").await);
    let (key, state) = step(&ada, tool(json!({}))).await;
    assert_eq!(key, "sure", "the key of a question that travels is its author's");
    let yes = |state: &Bytes| {
        let yes = InputResponse::accept(Some(json!({ "confirm": true }).into()));
        tool(json!({}))
            .resume(ClientContinuation::Portable(state.clone()), vec![("sure".to_owned(), Ok(yes))])
    };
    let (code, ..) = refused(within(bob.step(yes(&state))).await);
    assert_eq!(code, -32602, "what one was given is worth nothing to another");
    // The first and the last character are the quotes of a text.
    for at in (1..state.len() - 1).step_by(state.len() / 16) {
        let mut tampered = state.to_vec();
        tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
        let outcome = within(ada.step(yes(&tampered.into()))).await;
        assert!(
            matches!(&outcome, Err(Error::ErrorResponse(refused)) if refused.code == -32602),
            "{at}: {outcome:?}"
        );
    }
    assert_eq!(text(within(ada.step(yes(&state))).await), "true");
}

#[tokio::test]
async fn request_state_returns_to_its_server_and_is_opaque_to_clients() {
    let town = TestServers::default();
    let (heard, opener) = script(|_, message| match message["method"].as_str() {
        Some("tools/call") if message["params"].get("requestState").is_none() => {
            let params = json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
            ScriptReply::Result(
                json!({ "resultType": "input_required", "requestState": "secret of the first",
                "inputRequests": { "k": { "method": "elicitation/create", "params": params } } }),
            )
        }
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let host = host(&hub, Duration::from_secs(600));
    let ada = connect(&host, "ada").await;
    let (key, state) = step(&ada, tool(json!({}))).await;
    assert!(!String::from_utf8_lossy(&state).contains("secret"), "nobody can read what it is");
    assert_eq!(text(within(ada.step(retry(tool(json!({})), &key, &state))).await), "t");
    let resumed = heard.of("tools/call").pop().unwrap();
    assert_eq!(
        resumed["params"]["requestState"], "secret of the first",
        "the server sees its own words again"
    );
    assert_eq!(resumed["params"]["inputResponses"]["k"]["action"], "accept");
}

#[tokio::test]
async fn endless_input_rounds_fail_with_a_readable_error() {
    let town = TestServers::default();
    let (heard, opener) = script(|_, message| match message["method"].as_str() {
        Some("resources/list") => {
            ScriptReply::Result(json!({ "resources": [{ "uri": "x:y", "name": "y" }] }))
        }
        Some("tools/call" | "resources/read") => {
            let asked = json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
            ScriptReply::Result(json!({ "resultType": "input_required", "requestState": "again",
                "inputRequests": { "k": { "method": "elicitation/create", "params": asked } } }))
        }
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, NEW);
    let hub = town.hub_within(HubLimits { input_rounds: 3, ..quick() });
    within(hub.set_servers(vec![eager("a")])).await;
    for (at, down) in [OLD, NEW].into_iter().enumerate() {
        let answers = RecordingHandler::new(|_| Ok(InputResponse::accept(Some(json!({}).into()))));
        let builder = Client::builder().pin(down).input(answers);
        let client = client(&serve_hub(&hub), builder, named_principal("ada")).await;
        let said = within(client.call("a__t", json!({}))).await.unwrap();
        assert!(said.is_error && said.text().contains("asked more than 3 times"), "{down}: {said:?}");
        let Err(Error::ErrorResponse(refused)) = within(client.run(ClientCall::read("x:y"))).await else {
            panic!("it never stops asking");
        };
        assert_eq!(refused.code, -32603, "{down}: {refused:?}");
        assert_eq!(heard.of("tools/call").len(), 4 * (at + 1), "{down}");
    }
}
