//! Input rounds of the modern era: the input requests, their keys, and which responses count.

use serde_json::{Value, json};
use trunkline_server::protocol::model::CreateMessageRequest;
use trunkline_server::{Confirm, Context, Server, Tool, ToolError, ask, roots, sample};

use crate::support::{ModernRequest, code, host, lines, outcome, questions, state, text, tool_text};

/// Makes the response of a user that accepts with yes or no.
pub(crate) fn accept(confirm: impl Into<Value>) -> Value {
    json!({ "action": "accept", "content": { "confirm": confirm.into() } })
}

fn question(key: &str) -> trunkline_server::TypedInputRequest<Confirm> {
    ask("Sure?").key(key)
}

fn both(first: Confirm, second: Confirm) -> String {
    format!("{} {}", first.0, second.0)
}

fn server() -> Server {
    Server::new("asker")
        .with(Tool::new("named").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(format!("{}", cx.ask(question("sure")).await?.0))
        }))
        .with(Tool::new("unnamed").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(both(cx.ask(ask("First?")).await?, cx.ask(ask("Second?")).await?))
        }))
        .with(Tool::new("together").run(async |cx: Context| -> Result<String, ToolError> {
            let (a, b) = cx.ask_all((question("a"), question("b"))).await?;
            Ok(both(a, b))
        }))
        .with(Tool::new("joined").run(async |cx: Context| -> Result<String, ToolError> {
            let (a, b) = tokio::join!(cx.ask(question("a")), cx.ask(question("b")));
            Ok(both(a?, b?))
        }))
        .with(Tool::new("everyone").run(async |cx: Context| -> Result<String, ToolError> {
            let greeting = sample(CreateMessageRequest::new([], 10)).key("model");
            let (sure, _, roots) = cx.ask_all((question("user"), greeting, roots().key("host"))).await?;
            Ok(format!("{} {}", sure.0, roots.len()))
        }))
}

#[tokio::test(start_paused = true)]
async fn joined_input_requests_form_one_round() {
    let host = host(&server());
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "m" });
    for (tool, keys, answers, result) in [
        ("named", vec!["sure"], json!({ "sure": accept(true) }), "true"),
        ("together", vec!["a", "b"], json!({ "a": accept(true), "b": accept(false) }), "true false"),
        ("joined", vec!["a", "b"], json!({ "b": accept(false), "a": accept(true) }), "true false"),
        (
            "everyone",
            vec!["host", "model", "user"],
            json!({ "user": accept(true), "model": model, "host": { "roots": [{ "uri": "file:///a" }] } }),
            "true 1",
        ),
    ] {
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool(tool)).await;
            assert_eq!(questions(&asked), keys, "{tool}");
            let answer =
                line.call(&ModernRequest::tool(tool).id(2).after(&asked).answers(answers.clone())).await;
            assert_eq!(tool_text(&answer), result, "{tool}");
            assert_eq!(answer["result"]["resultType"], "complete");
        }
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn unnamed_input_requests_are_numbered_across_rounds() {
    let host = host(&server());
    for mut line in lines(&host) {
        let first = line.call(&ModernRequest::tool("unnamed")).await;
        assert_eq!(questions(&first), ["q1"]);
        let second =
            ModernRequest::tool("unnamed").id(2).after(&first).answers(json!({ "q1": accept(true) }));
        let second = line.call(&second).await;
        assert_eq!(questions(&second), ["q2"]);
        assert_ne!(state(&first), state(&second), "a state is that of one round");
        let done =
            ModernRequest::tool("unnamed").id(3).after(&second).answers(json!({ "q2": accept(false) }));
        assert_eq!(tool_text(&line.call(&done).await), "true false");
    }
}

#[tokio::test(start_paused = true)]
async fn input_responses_without_request_state_are_used() {
    let host = host(&server());
    for (tool, answers, expected) in [
        ("named", json!({ "sure": accept(true) }), Ok("true")),
        ("unnamed", json!({ "q1": accept(true), "q2": accept(false) }), Ok("true false")),
        ("unnamed", json!({ "q1": accept(true) }), Err(vec!["q2"])),
        ("unnamed", json!({ "q2": accept(true) }), Err(vec!["q1"])),
        ("together", json!({ "a": accept(true), "b": accept(true) }), Ok("true true")),
        ("together", json!({ "b": accept(true) }), Err(vec!["a"])),
        ("named", json!({ "other": accept(true) }), Err(vec!["sure"])),
        ("named", json!({ "sure": accept("perhaps") }), Err(vec!["sure"])),
        ("together", json!({ "a": accept("perhaps"), "b": accept(true) }), Err(vec!["a"])),
        ("named", json!({}), Err(vec!["sure"])),
    ] {
        for mut line in lines(&host) {
            let answer = line.call(&ModernRequest::tool(tool).answers(answers.clone())).await;
            match &expected {
                Ok(result) => assert_eq!(tool_text(&answer), *result, "{tool} {answers}"),
                Err(keys) => assert_eq!(questions(&answer), *keys, "{tool} {answers}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn missing_or_malformed_input_responses_are_requested_again() {
    let host = host(&server());
    for (answers, again) in [
        (json!({}), vec!["a", "b"]),
        (json!({ "a": accept(true) }), vec!["b"]),
        (json!({ "b": accept(true), "zzz": accept(true) }), vec!["a"]),
        (json!({ "a": accept(true), "b": 7 }), vec!["b"]),
        (json!({ "a": accept(true), "b": null }), vec!["b"]),
        (json!({ "a": accept(true), "b": { "action": "perhaps" } }), vec!["b"]),
        (json!({ "a": accept(true), "b": { "action": "accept" } }), vec!["b"]),
        (json!({ "a": accept(true), "b": { "roots": [] } }), vec!["b"]),
        (json!({ "a": accept(true), "b": accept("perhaps") }), vec!["b"]),
        (json!({ "a": accept(7), "b": accept("perhaps") }), vec!["a", "b"]),
    ] {
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool("together")).await;
            let retry = ModernRequest::tool("together").id(2).after(&asked).answers(answers.clone());
            let answer = line.call(&retry).await;
            assert_eq!(questions(&answer), again, "{answers}");
            let rest = again.iter().map(|key| ((*key).to_owned(), accept(true))).collect();
            let last = ModernRequest::tool("together").id(3).after(&answer).answers(Value::Object(rest));
            assert!(tool_text(&line.call(&last).await).contains("true"), "{answers}");
        }
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_fails_after_repeated_invalid_responses() {
    let host = host(&server());
    let wrong = json!({ "sure": accept("perhaps") });
    for mut line in lines(&host) {
        let mut answer = line.call(&ModernRequest::tool("named")).await;
        for id in 2..=4 {
            assert_eq!(questions(&answer), ["sure"]);
            answer =
                line.call(&ModernRequest::tool("named").id(id).after(&answer).answers(wrong.clone())).await;
        }
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).contains("`confirm` must be true or false"), "{answer}");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn retry_without_responses_repeats_the_input_requests() {
    let host = host(&server());
    for mut line in lines(&host) {
        let mut asked = line.call(&ModernRequest::tool("named")).await;
        for id in 2..6 {
            let again = line.call(&ModernRequest::tool("named").id(id).after(&asked)).await;
            assert_eq!(questions(&again), ["sure"]);
            assert_ne!(state(&again), state(&asked));
            asked = again;
        }
    }
    assert_eq!(host.load(), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn early_input_response_is_used_when_its_request_is_made() {
    let host = host(&server());
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("unnamed")).await;
        let both = json!({ "q1": accept(true), "q2": accept(false) });
        let answer = line.call(&ModernRequest::tool("unnamed").id(2).after(&asked).answers(both)).await;
        assert_eq!(outcome(&answer), "complete", "{answer}");
        assert_eq!(tool_text(&answer), "true false");
    }
}

#[tokio::test(start_paused = true)]
async fn unused_input_responses_are_dropped_with_their_request() {
    let host = host(&server());
    for mut line in lines(&host) {
        let early = line.call(&ModernRequest::tool("unnamed").answers(json!({ "q2": accept(true) }))).await;
        assert_eq!(questions(&early), ["q1"]);
        let retry = ModernRequest::tool("unnamed").id(2).after(&early).answers(json!({ "q1": accept(true) }));
        assert_eq!(questions(&line.call(&retry).await), ["q2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn non_object_input_responses_are_refused() {
    let host = host(&server());
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("named")).await;
        for wrong in [json!(null), json!(7), json!("sure"), json!([accept(true)]), json!(true)] {
            let fresh = line.call(&ModernRequest::tool("named").answers(wrong.clone())).await;
            assert_eq!(code(&fresh), -32602, "{wrong}");
            let retry = line.call(&ModernRequest::tool("named").after(&asked).answers(wrong.clone())).await;
            assert_eq!(code(&retry), -32602, "{wrong}");
        }
        // What was refused before it was looked at has not used up the round.
        let answers = json!({ "sure": accept(true) });
        let answer = line.call(&ModernRequest::tool("named").id(9).after(&asked).answers(answers)).await;
        assert_eq!(tool_text(&answer), "true");
    }
}

#[tokio::test(start_paused = true)]
async fn declined_or_dismissed_modern_elicitation_is_a_tool_error() {
    let host = host(&server());
    for (action, said) in [("decline", "the user declined"), ("cancel", "the user dismissed the question")] {
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool("named")).await;
            let answers = json!({ "sure": { "action": action } });
            let answer = line.call(&ModernRequest::tool("named").id(2).after(&asked).answers(answers)).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(answer["result"]["content"][0]["text"], said);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn caller_capabilities_are_those_of_the_latest_request() {
    let host = host(&server());
    let none = json!({});
    let forms = json!({ "elicitation": {} });
    for mut line in lines(&host) {
        let refused = line.call(&ModernRequest::tool("named").capabilities(none.clone())).await;
        assert_eq!(code(&refused), -32021);
        assert_eq!(refused["error"]["data"]["requiredCapabilities"]["elicitation"], json!({ "form": {} }));

        let asked = line.call(&ModernRequest::tool("unnamed")).await;
        let fewer = ModernRequest::tool("unnamed").id(2).after(&asked).answers(json!({ "q1": accept(true) }));
        let answer = line.call(&fewer.clone().capabilities(none.clone())).await;
        assert_eq!(code(&answer), -32021, "the second question cannot be put: {answer}");

        let asked = line.call(&ModernRequest::tool("unnamed").id(3)).await;
        let same = ModernRequest::tool("unnamed").id(4).after(&asked).answers(json!({ "q1": accept(true) }));
        let answer = line.call(&same.capabilities(forms.clone())).await;
        assert_eq!(questions(&answer), ["q2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn open_input_request_fails_for_a_retry_without_the_capability() {
    let host = host(&server());
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("named")).await;
        let retry = ModernRequest::tool("named").id(2).after(&asked).capabilities(json!({}));
        let answer = line.call(&retry).await;
        assert_eq!(code(&answer), -32021, "{answer}");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn missing_capability_over_http_is_status_400() {
    let host = host(&server());
    let client = crate::support::Client::new(&host);
    let refused = client.post(&ModernRequest::tool("named").capabilities(json!({})).value()).await;
    assert_eq!(refused.status, 400);
}
