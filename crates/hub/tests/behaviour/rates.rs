//! Rate limits of callers and of servers.

use bytes::Bytes;
use serde_json::{Value, json};
use trunkline_auth::fetch::{FetchLimits, Fetcher};
use trunkline_client::protocol::model::{ClientCapabilities, InputResponse};
use trunkline_client::{Client, ClientCall, ClientContinuation, Error, StepOutcome};
use trunkline_config::CallRate;
use trunkline_hub::{Hub, HubOptions};
use trunkline_server::{Confirm, Context, Metrics, Resource, Server, Tool, ToolError, ask};
use trunkline_transport::dial::Dialer;

use crate::support::{
    NEW, OLD, RecordingHandler, TestServers, client, eager, echo_server, named_principal, quick, say,
    serve_hub, serve_hub_over_http, tools, within,
};

/// Makes a hub with two servers that each have the tool `x`; the first has a rate, and so has each caller.
async fn hub_with_rates(caller: Option<&str>, server: Option<&str>) -> Hub {
    let town = TestServers::default();
    let resource = Resource::new("a:day", "day").text("sunny");
    town.add_server("a", &echo_server(&["x"]).with(resource), NEW);
    town.add_server("b", &echo_server(&["x"]), NEW);
    let caller_rate = caller.and_then(CallRate::parse);
    let hub = Hub::new(HubOptions { caller_rate, ..town.options(quick()) });
    let mut limited = eager("a");
    limited.rate = server.and_then(CallRate::parse);
    within(hub.set_servers(vec![limited, eager("b")])).await;
    hub
}

/// Asserts that a call is refused for a rate, and returns the data of the error.
async fn refused(client: &Client, tool: &str) -> Value {
    match within(client.call(tool, json!({}))).await {
        Err(Error::ErrorResponse(error)) => {
            assert!(error.message.contains("try again in"), "{error}");
            let data: Value = error.data.unwrap().decode().unwrap();
            assert_eq!(
                (&data["reason"], &data["retryable"]),
                (&json!("rate_limited"), &json!(true)),
                "{data}"
            );
            let wait = data["retryAfterMs"].as_u64().unwrap();
            assert!((1..=3_600_000).contains(&wait), "{data}");
            data
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_caller_has_a_rate_of_its_own_for_all_servers_together() {
    for revision in [OLD, NEW] {
        let hub = hub_with_rates(Some("3/1h"), None).await;
        let front = serve_hub(&hub);
        let ann = client(&front, Client::builder().pin(revision), named_principal("ann")).await;
        let again = client(&front, Client::builder().pin(revision), named_principal("ann")).await;
        let bob = client(&front, Client::builder().pin(revision), named_principal("bob")).await;
        assert_eq!(say(&ann, "a__x").await, "x", "{revision}");
        assert_eq!(say(&again, "b__x").await, "x", "{revision}");
        assert!(within(ann.read("a:day")).await.is_ok(), "{revision}");
        for client in [&ann, &again] {
            assert_eq!(refused(client, "a__x").await["upstream"], Value::Null, "{revision}");
            assert!(within(client.read("a:day")).await.is_err(), "{revision}");
            assert!(tools(client).await.contains(&"a__x".to_owned()), "{revision}: lists are not limited");
        }
        assert_eq!(say(&bob, "a__x").await, "x", "{revision}");
        hub.set_caller_rate(None);
        assert_eq!(say(&ann, "a__x").await, "x", "{revision}");
    }
}

#[tokio::test]
async fn server_has_a_rate_for_all_callers_together() {
    let hub = hub_with_rates(None, Some("2/1h")).await;
    let front = serve_hub(&hub);
    let ann = client(&front, Client::builder().pin(NEW), named_principal("ann")).await;
    let bob = client(&front, Client::builder().pin(OLD), named_principal("bob")).await;
    assert_eq!(say(&ann, "a__x").await, "x");
    assert_eq!(say(&bob, "a__x").await, "x");
    for client in [&ann, &bob] {
        assert_eq!(refused(client, "a__x").await["upstream"], "a");
        assert_eq!(say(client, "b__x").await, "x", "another server has another limit");
    }
}

#[tokio::test]
async fn requests_that_continue_a_call_have_a_limit_of_their_own() {
    let asking = || {
        Tool::new("x").replay().run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(ask::<Confirm>("Sure?").key("sure")).await?.0.to_string())
        })
    };
    for (caller, server) in [(Some("2/1h"), None), (None, Some("2/1h"))] {
        let town = TestServers::default();
        town.add_server("a", &Server::new("asking").with(asking()), NEW);
        let caller_rate = caller.and_then(CallRate::parse);
        let hub = Hub::new(HubOptions { caller_rate, ..town.options(quick()) });
        let mut limited = eager("a");
        limited.rate = server.and_then(CallRate::parse);
        within(hub.set_servers(vec![limited])).await;
        let front = serve_hub(&hub);
        let handler = RecordingHandler::with_roots(&[]).declaring(ClientCapabilities::default().with_form());
        let ann = client(&front, Client::builder().pin(NEW).input(handler), named_principal("ann")).await;
        let begin = || ClientCall::tool("a__x", json!({}));
        let mut states = Vec::new();
        for _ in 0..2 {
            let outcome = within(ann.step(begin())).await.unwrap();
            let StepOutcome::InputRequired(round) = outcome else { panic!("{outcome:?}") };
            let ClientContinuation::Portable(state) = round.into_parts().1 else { panic!("a live call") };
            states.push(state);
        }
        refused(&ann, "a__x").await;
        // The answers of the user count, and so does the same answer again.
        let first = states.remove(0);
        for is_allowed in [true, true, false, false] {
            let yes = InputResponse::accept(Some(json!({ "confirm": true }).into()));
            let again = begin()
                .resume(ClientContinuation::Portable(first.clone()), vec![("sure".to_owned(), Ok(yes))]);
            match within(ann.step(again)).await {
                Ok(StepOutcome::Done(_)) if is_allowed => {}
                Err(Error::ErrorResponse(error)) if !is_allowed => {
                    assert!(error.message.contains("try again in"), "{error}");
                }
                other => panic!("{is_allowed}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn rate_limit_is_429_with_retry_after_over_http_and_counted() {
    let hub = hub_with_rates(Some("1/10s"), None).await;
    let url = serve_hub_over_http(&hub).await;
    let fetcher = Fetcher::new(Dialer::default(), FetchLimits::default());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "a__x", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    for expected in [200, 429] {
        let request = http::Request::post(&url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "a__x");
        let request = request.body(Bytes::from(body.clone())).unwrap();
        let response = within(fetcher.fetch(request)).await.unwrap();
        assert_eq!(response.status(), expected, "{:?}", response.body());
        let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
        let seconds: Option<u64> = retry_after.map(|seconds| seconds.parse().unwrap());
        assert_eq!(seconds.is_some(), expected == 429, "{retry_after:?}");
        assert!(seconds.is_none_or(|seconds| (1..=10).contains(&seconds)), "{retry_after:?}");
    }
    let metrics = Metrics::new().text();
    let counted =
        metrics.lines().find(|line| line.starts_with(r#"mcp_server_refusals_total{refusal="RATE_LIMITED"}"#));
    assert!(counted.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
}
