//! `requestState`: its principal, its binding, how often and how long it is valid. An invalid one is refused without
//! another input request.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_server::{Confirm, Context, Prompt, Server, ServerLimits, Tool, ToolError, ask};

use crate::input_rounds::accept;
use crate::support::{
    Client, ModernRequest, Peer, ReceivedLine, code, host, host_with, lines, questions, service, settle,
    state, tool_text,
};

async fn confirm(cx: Context) -> Result<String, ToolError> {
    let Confirm(yes) = cx.ask(ask("Sure?").key("sure")).await?;
    Ok(yes.to_string())
}

fn server() -> Server {
    let schema = json!({ "type": "object" });
    let raw = |tool: Tool| tool.input_schema(schema.clone()).run_raw(|cx, _| confirm(cx));
    Server::new("asker")
        .with(raw(Tool::new("live")))
        .with(raw(Tool::new("other")))
        .with(raw(Tool::new("replayed").replay()))
        .with(Prompt::new("live").get(confirm))
}

fn call(tool: &str) -> ModernRequest {
    ModernRequest::tool(tool).arguments(json!({ "n": 1, "list": [1, { "a": 2, "b": 3 }] }))
}

fn answered(request: ModernRequest, asked: &Value) -> ModernRequest {
    request.id("retry").after(asked).answers(json!({ "sure": accept(true) }))
}

#[tokio::test(start_paused = true)]
async fn tampered_request_state_is_refused() {
    let host = host(&server());
    for tool in ["live", "replayed"] {
        for mut line in lines(&host) {
            let asked = line.call(&call(tool)).await;
            let good = state(&asked);
            let mut flipped = good.clone().into_bytes();
            flipped[40] = if flipped[40] == b'A' { b'B' } else { b'A' };
            let flipped = String::from_utf8(flipped).unwrap();
            let cut: String = good.chars().skip(4).collect();
            for bad in [flipped.as_str(), &cut, "", "x", &good.repeat(2), &format!("{good}="), "\u{1F512}"] {
                let answer = line.call(&answered(call(tool), &asked).state(bad)).await;
                assert_eq!(code(&answer), -32602, "{tool} {bad}");
            }
            for bad in [json!(7), json!({}), json!([good]), json!(true)] {
                let answer = line.call(&answered(call(tool), &asked).param("requestState", bad)).await;
                assert_eq!(code(&answer), -32602, "{tool}");
            }
            assert_eq!(tool_text(&line.call(&answered(call(tool), &asked)).await), "true");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn request_state_is_bound_to_its_tool_and_arguments() {
    let host = host(&server());
    let with = |arguments| ModernRequest::tool("live").arguments(arguments);
    for mut line in lines(&host) {
        let asked = line.call(&call("live")).await;
        for other in [
            call("other"),
            call("replayed"),
            with(json!({ "n": 2, "list": [1, { "a": 2, "b": 3 }] })),
            with(json!({ "n": 1, "list": [{ "a": 2, "b": 3 }, 1] })),
            with(json!({ "n": 1 })),
            ModernRequest::tool("live"),
            ModernRequest::new("prompts/get")
                .param("name", json!("live"))
                .arguments(json!({ "n": 1, "list": [1, { "a": 2, "b": 3 }] })),
        ] {
            let answer = line.call(&answered(other.clone(), &asked)).await;
            assert_eq!(code(&answer), -32602, "{other:?}");
        }
        // The order of keys is no part of the arguments, and neither is what belongs to the protocol.
        let same = with(json!({ "list": [1, { "b": 3, "a": 2 }], "n": 1 })).token("t").level("debug");
        assert_eq!(tool_text(&line.call(&answered(same, &asked)).await), "true");
    }
}

#[tokio::test(start_paused = true)]
async fn request_state_is_bound_to_its_principal() {
    let host = host(&server());
    let service = service(&host);
    let [ann, bob] = ["ann", "bob"].map(|name| Client::of(&service).named(name));
    for tool in ["live", "replayed"] {
        let asked = ann.post(&call(tool).value()).await.answer().await;
        let stolen = bob.post(&answered(call(tool), &asked).value()).await.answer().await;
        assert_eq!(code(&stolen), -32602, "{tool}");
        let own = ann.post(&answered(call(tool), &asked).value()).await.answer().await;
        assert_eq!(tool_text(&own), "true", "a stranger's attempt does not spend the state");
    }
    let mut peer = Peer::new(&host);
    let asked = peer.call(&call("live").value()).await;
    let anonymous = Client::new(&host);
    let taken = anonymous.post(&answered(call("live"), &asked).value()).await.answer().await;
    assert_eq!(code(&taken), -32602, "what a process began does not go on over HTTP");
}

#[tokio::test(start_paused = true)]
async fn request_state_of_a_suspended_call_is_valid_for_one_retry() {
    let host = host(&server());
    for mut line in lines(&host) {
        let first = line.call(&call("live")).await;
        let second = line.call(&call("live").id(2).after(&first)).await;
        assert_eq!(questions(&second), ["sure"]);
        assert_eq!(code(&line.call(&answered(call("live"), &first)).await), -32602);
        assert_eq!(tool_text(&line.call(&answered(call("live"), &second)).await), "true");
        for spent in [&first, &second] {
            assert_eq!(code(&line.call(&answered(call("live"), spent)).await), -32602);
        }
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn suspended_call_expires() {
    let limits = ServerLimits { suspended_for: Duration::from_secs(60), ..ServerLimits::default() };
    let host = host_with(&server(), limits);
    for mut line in lines(&host) {
        let asked = line.call(&call("live")).await;
        assert_eq!(host.load(), (0, 1));
        settle().await;
        tokio::time::advance(Duration::from_secs(61)).await;
        settle().await;
        assert_eq!(host.load(), (0, 0));
        assert_eq!(code(&line.call(&answered(call("live"), &asked)).await), -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn portable_request_state_expires() {
    let limits = ServerLimits { suspended_for: Duration::ZERO, ..ServerLimits::default() };
    let host = host_with(&server(), limits);
    for mut line in lines(&host) {
        let asked = line.call(&call("replayed")).await;
        assert_eq!(questions(&asked), ["sure"]);
        assert_eq!(code(&line.call(&answered(call("replayed"), &asked)).await), -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn stale_request_state_over_http_is_status_200() {
    let host = host(&server());
    let mut line = ReceivedLine::Http(Client::new(&host));
    let asked = line.call(&call("live")).await;
    let ReceivedLine::Http(client) = line else { unreachable!() };
    let refused = client.post(&answered(call("other"), &asked).value()).await;
    assert_eq!(refused.status, 200);
    assert_eq!(refused.answer().await["id"], "retry");
}
