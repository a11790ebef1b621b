//! Calls by steps: questions that the caller answers, and continuations that travel or stay.

use serde_json::{Value, json};
use trunkline_client::authorization::CallerToken;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest};
use trunkline_client::protocol::{RawJson, Refusal, Revision};
use trunkline_client::transport::Secret;
use trunkline_client::{Client, ClientCall, ClientContinuation, ClientInputRound, Error, StepOutcome};
use trunkline_server::HostOptions;

use crate::support::{
    Answers, Life, ScriptAction, ScriptedPeer, accept, connect, or_handshake, server, settle, within,
};

fn forms() -> Answers {
    let forms = ClientCapabilities::default().with_form();
    Answers::new(|_| panic!("steps are answered by whoever makes them")).declaring(forms)
}

async fn asked(client: &Client, call: ClientCall) -> ClientInputRound {
    match within(client.step(call)).await.unwrap() {
        StepOutcome::InputRequired(round) => *round,
        other => panic!("{other:?}"),
    }
}

/// Answers every form of a round with one boolean.
fn yes(round: &ClientInputRound) -> trunkline_client::InputResponses {
    let answer = |(key, question): &(String, InputRequest)| {
        let InputRequest::Form(form) = question else { panic!() };
        let schema: Value = form.schema.decode().unwrap();
        let field = schema["properties"].as_object().unwrap().keys().next().unwrap().clone();
        (key.clone(), Ok(accept(&json!({ field: true }))))
    };
    round.requests.iter().map(answer).collect()
}

fn text(result: &RawJson) -> String {
    result.decode::<Value>().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn step_returns_input_requests_and_resumes_in_both_eras() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = server(&Life::default()).host(HostOptions::default()).unwrap();
        let client = connect(&host, revision, Client::builder().input(forms())).await;
        let round = asked(&client, ClientCall::tool("in_sequence", json!({}))).await;
        assert_eq!(round.requests.len(), 1);
        let portable = matches!(round.continuation, ClientContinuation::Portable(_));
        assert_eq!(portable, revision == Revision::NEWEST);
        let answers = yes(&round);
        let StepOutcome::InputRequired(round) = within(round.respond(answers)).await.unwrap() else {
            panic!()
        };
        let answers = yes(&round);
        let StepOutcome::Done(result) = within(round.respond(answers)).await.unwrap() else { panic!() };
        assert_eq!(text(&result), "true true");
        // Input requests that are made at one time are one round.
        let round = asked(&client, ClientCall::tool("at_once", json!({}))).await;
        assert_eq!(round.requests.len(), 2, "{revision}");
        let answers = yes(&round);
        let StepOutcome::Done(result) = within(round.respond(answers)).await.unwrap() else { panic!() };
        assert_eq!(text(&result), "true true");
    }
}

#[tokio::test(start_paused = true)]
async fn portable_continuation_resumes_from_any_client() {
    let host = server(&Life::default()).host(HostOptions::default()).unwrap();
    let first = connect(&host, Revision::NEWEST, Client::builder().input(forms())).await;
    let round = asked(&first, ClientCall::tool("confirm", json!({}))).await;
    let answers = yes(&round);
    let (_, ClientContinuation::Portable(state)) = round.into_parts() else { panic!() };
    drop(first);
    let second = connect(&host, Revision::NEWEST, Client::builder().input(forms())).await;
    let call = ClientCall::tool("confirm", json!({})).resume(ClientContinuation::Portable(state), answers);
    let StepOutcome::Done(result) = within(second.step(call)).await.unwrap() else { panic!() };
    assert_eq!(text(&result), "true");
}

#[tokio::test(start_paused = true)]
async fn dropped_live_continuation_cancels_the_call() {
    let host = server(&Life::default()).host(HostOptions::default()).unwrap();
    let client = connect(&host, Revision::V2025_11_25, Client::builder().input(forms())).await;
    let round = asked(&client, ClientCall::tool("confirm", json!({}))).await;
    assert_eq!(host.load().0, 1);
    drop(round);
    settle().await;
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_wait_does_not_count_towards_the_request_timeout() {
    let host = server(&Life::default()).host(HostOptions::default()).unwrap();
    let client = connect(&host, Revision::V2025_11_25, Client::builder().input(forms())).await;
    let round = asked(&client, ClientCall::tool("confirm", json!({}))).await;
    tokio::time::advance(std::time::Duration::from_secs(3000)).await;
    let answers = yes(&round);
    let StepOutcome::Done(result) = within(round.respond(answers)).await.unwrap() else { panic!() };
    assert_eq!(text(&result), "true");
}

/// A modern server that requests input a number of times, with a state that has several spellings in JSON.
fn asker(times: usize) -> (ScriptedPeer, trunkline_client::transport::ChannelOpener) {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    ScriptedPeer::new(move |_, message| {
        or_handshake(message, |message| {
            let round = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let question = json!({ "method": "elicitation/create", "params":
                { "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } } });
            let said = if round < times {
                format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{{"inputRequests":{{"k":{question}}},"requestState":"\u0041\/{round} ","resultType":"input_required"}}}}"#,
                    message["id"]
                )
            } else {
                format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"resultType":"complete"}}}}"#,
                    message["id"]
                )
            };
            ScriptAction::Say(said)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn resumed_call_has_new_id_same_arguments_and_verbatim_request_state() {
    let (script, opener) = asker(2);
    let answers = Answers::new(|_| Ok(accept(&json!({ "x": 1 }))));
    let client = within(Client::builder().input(answers).connect(opener)).await.unwrap();
    within(client.call("t", json!({ "a": [1.0, "b"] })).into_future()).await.unwrap();
    let sent = script.newest().sent();
    let calls: Vec<&String> = sent.iter().filter(|message| message.contains("tools/call")).collect();
    assert_eq!(calls.len(), 3);
    assert!(!calls[0].contains("requestState") && !calls[0].contains("inputResponses"));
    assert!(calls[1].contains(r#""requestState":"\u0041\/0 ""#), "{}", calls[1]);
    assert!(calls[2].contains(r#""requestState":"\u0041\/1 ""#), "{}", calls[2]);
    let parsed: Vec<Value> = calls.iter().map(|call| serde_json::from_str(call).unwrap()).collect();
    assert!(parsed[0]["id"] != parsed[1]["id"] && parsed[1]["id"] != parsed[2]["id"]);
    assert_eq!(parsed[2]["params"]["arguments"], parsed[0]["params"]["arguments"]);
    assert_eq!(
        parsed[2]["params"]["inputResponses"],
        json!({ "k": { "action": "accept", "content": { "x": 1 } } })
    );
}

#[tokio::test(start_paused = true)]
async fn input_rounds_beyond_the_limit_fail_the_call() {
    let (script, opener) = asker(usize::MAX);
    let answers = Answers::new(|_| Ok(accept(&json!({}))));
    let client = within(Client::builder().input(answers).connect(opener)).await.unwrap();
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert!(matches!(error, Error::InputDeclined(_)), "{error}");
    assert_eq!(script.methods()[0].len(), 1 + 11);
}

#[tokio::test(start_paused = true)]
async fn deferred_call_is_polled_with_backoff() {
    let (script, opener) = ScriptedPeer::new(|_, message| {
        or_handshake(message, |message| match message["params"]["requestState"].as_str() {
            None => ScriptAction::Result(json!({ "resultType": "input_required", "requestState": "0" })),
            Some("3") => ScriptAction::Result(json!({ "resultType": "complete", "content": [] })),
            Some(state) => {
                let next = (state.parse::<u32>().unwrap() + 1).to_string();
                ScriptAction::Result(json!({ "resultType": "input_required", "requestState": next }))
            }
        })
    });
    let client = within(Client::connect(opener)).await.unwrap();
    let began = tokio::time::Instant::now();
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!(began.elapsed().as_millis(), 250 + 500 + 1000 + 2000);
    let inputs: Vec<_> =
        script.sent()[0].iter().map(|sent| sent["params"].get("inputResponses").is_some()).collect();
    assert!(!inputs.contains(&true));
}

#[tokio::test(start_paused = true)]
async fn malformed_modern_results_are_errors() {
    let roots = json!({ "k": { "method": "roots/list" } });
    for (result, expected) in [
        (json!({ "resultType": "task", "taskId": "t" }), "unknown type of result `task`"),
        (json!({ "resultType": 7, "content": [] }), "unknown type of result"),
        (json!({ "resultType": "input_required" }), "neither question nor state"),
        (json!({ "resultType": "input_required", "inputRequests": roots }), "did not offer"),
        (
            json!({ "resultType": "input_required", "inputRequests": { "k": { "method": "x/y" } } }),
            "method not found",
        ),
        (json!({ "resultType": "input_required", "inputRequests": 7 }), "not an object"),
        (json!({ "resultType": "complete", "content": 7 }), "`content`"),
        (json!([]), "not an object"),
    ] {
        let shown = result.to_string();
        let (_, opener) = ScriptedPeer::new(move |_, message| {
            or_handshake(message, |_| ScriptAction::Result(result.clone()))
        });
        let client = within(Client::builder().connect(opener)).await.unwrap();
        let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
        assert!(matches!(&error, Error::Malformed(said) if said.contains(expected)), "{shown}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_required_result_of_a_list_is_an_error() {
    let result = json!({ "resultType": "input_required", "requestState": "s" });
    let (_, opener) =
        ScriptedPeer::new(move |_, message| or_handshake(message, |_| ScriptAction::Result(result.clone())));
    let client = within(Client::connect(opener)).await.unwrap();
    assert!(matches!(within(client.tools()).await, Err(Error::Malformed(_))));
}

#[tokio::test(start_paused = true)]
async fn refused_sampling_or_roots_fails_a_modern_call_and_is_sent_to_a_legacy_server() {
    let answers = Answers::new(|_| Err(Refusal::application(-1, "not today")))
        .declaring(ClientCapabilities::default().with_sampling());
    for revision in Revision::ALL {
        let host = server(&Life::default()).host(HostOptions::default()).unwrap();
        let client = connect(&host, revision, Client::builder().input(answers.clone())).await;
        match within(client.call("sample", json!({})).into_future()).await {
            Err(Error::InputDeclined(refusal)) => {
                assert_eq!((refusal.message(), revision), ("not today", Revision::NEWEST));
            }
            Ok(result) => {
                assert!(result.is_error && result.text().contains("not today"), "{}", result.text());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn required_url_elicitations_become_input_requests() {
    let (script, opener) = ScriptedPeer::new(|_, message| match message["method"].as_str() {
        Some("server/discover") => crate::support::error(-32601),
        Some("tools/call") if message["id"].as_u64() < Some(4) => {
            ScriptAction::Error(json!({ "code": -32042, "message": "log in",
            "data": { "elicitations": [{ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "Log in" }] } }))
        }
        _ => or_handshake(message, |_| ScriptAction::Result(json!({ "content": [] }))),
    });
    let answers = Answers::new(|question| {
        assert!(matches!(question, InputRequest::Url(url) if url.url == "https://x.example/"));
        Ok(trunkline_client::protocol::model::InputResponse::accept(None))
    });
    let client = within(Client::builder().input(answers.clone()).connect(opener)).await.unwrap();
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!(script.methods()[0].iter().filter(|method| *method == "tools/call").count(), 2);
    assert_eq!(answers.asked().len(), 1);
}

#[tokio::test]
async fn call_with_the_token_of_a_caller_is_not_sent_over_a_channel() {
    let host = server(&Life::default()).host(HostOptions::default()).unwrap();
    let client = connect(&host, Revision::NEWEST, Client::builder()).await;
    let token = CallerToken::new(Secret::new("sentinel"), None);
    let refused = within(client.step(ClientCall::tool("confirm", json!({})).caller_token(token))).await;
    let problem = refused.map(drop).unwrap_err().to_string();
    assert!(problem.contains("over Streamable HTTP only") && !problem.contains("sentinel"), "{problem}");
    assert_eq!(host.load(), (0, 0));
}
