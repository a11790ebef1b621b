//! Environment variables of callers: which caller may send which, over which connection, and that they do not leak.

use serde_json::{Value, json};
use trunkline_server::http::{HttpServerOptions, PeerInfo};
use trunkline_server::protocol::{LoggingLevel, Refusal};
use trunkline_server::{Context, EnvPolicy, Host, HostOptions, Server, Tool, ToolError};

use crate::support::{Client, ModernRequest, legacy, legacy_tool, text, tool_text, within};

const LOCAL: PeerInfo = PeerInfo { loopback: true, tls: false };
const ENCRYPTED: PeerInfo = PeerInfo { loopback: false, tls: true };
const OPEN: PeerInfo = PeerInfo { loopback: false, tls: false };

fn host(server: &Server, names: &[&str]) -> Host {
    let from_headers = names.iter().map(|name| (*name).to_owned()).collect();
    let env = EnvPolicy { from_headers, ..EnvPolicy::default() };
    server.host(HostOptions { env, ..HostOptions::default() }).unwrap()
}

/// A server with a tool that returns the tenant; tenants are too short to be redacted.
fn tenant() -> Server {
    Server::new("s").with(Tool::new("tenant").run(async |cx: Context| {
        tokio::task::yield_now().await;
        cx.env("TENANT").map_or_else(|| "nobody".to_owned(), |tenant| tenant.expose().to_owned())
    }))
}

#[tokio::test(start_paused = true)]
async fn env_headers_apply_per_modern_request_and_per_legacy_session() {
    let host = host(&tenant(), &["TENANT"]);
    let bare = Client::new(&host).over(LOCAL);
    let with = bare.clone().with("x-env-tenant", "ann");
    let modern = ModernRequest::tool("tenant").value();
    assert_eq!(tool_text(&with.post(&modern).await.answer().await), "ann");
    assert_eq!(tool_text(&bare.post(&modern).await.answer().await), "nobody");

    let ann = with.initialized("2025-11-25").await.without("x-env-tenant");
    let other = bare.initialized("2025-11-25").await;
    for id in 0..5 {
        let call = legacy_tool(id, "tenant");
        assert_eq!(tool_text(&ann.post(&call).await.answer().await), "ann", "remembered from the handshake");
        assert_eq!(tool_text(&other.post(&call).await.answer().await), "nobody", "of another session");
    }
    let call = other.with("x-env-tenant", "bob").post(&legacy_tool(9, "tenant")).await;
    assert_eq!(tool_text(&call.answer().await), "bob", "a request of a session may bring its own");
}

#[tokio::test(start_paused = true)]
async fn env_headers_of_a_get_apply_to_its_session_from_then_on() {
    let host = host(&tenant(), &["TENANT"]);
    let bare = Client::new(&host).over(LOCAL);
    let session = bare.clone().initialized("2025-03-26").await;
    let other = bare.initialized("2025-03-26").await;
    let call = legacy_tool(1, "tenant");
    assert_eq!(tool_text(&session.post(&call).await.answer().await), "nobody");
    let malformed = session.clone().with("x-env-tenant", "a\tb").get().await;
    assert_eq!(malformed.status, 400);
    let stream = session.clone().with("x-env-tenant", "ann").get().await;
    assert_eq!(stream.status, 200);
    assert_eq!(tool_text(&session.post(&call).await.answer().await), "ann");
    assert_eq!(tool_text(&other.post(&call).await.answer().await), "nobody", "of another session");
    drop(stream);
    assert_eq!(session.get().await.status, 200);
    assert_eq!(
        tool_text(&session.post(&call).await.answer().await),
        "ann",
        "a GET without variables keeps them"
    );
}

#[tokio::test(start_paused = true)]
async fn env_headers_are_ignored_without_tls_or_loopback() {
    let host = host(&tenant(), &["TENANT"]);
    let trusting = HttpServerOptions { unknown_peer: ENCRYPTED, ..HttpServerOptions::default() };
    for (options, peer, expected) in [
        (HttpServerOptions::default(), Some(LOCAL), "ann"),
        (HttpServerOptions::default(), Some(ENCRYPTED), "ann"),
        (HttpServerOptions::default(), Some(OPEN), "nobody"),
        (HttpServerOptions::default(), None, "nobody"),
        (trusting.clone(), None, "ann"),
        (trusting, Some(OPEN), "nobody"),
    ] {
        let client = Client::of(&host.http_service(options)).with("x-env-tenant", "ann");
        let client = match peer {
            Some(peer) => client.over(peer),
            None => client,
        };
        let answer = client.post(&ModernRequest::tool("tenant").value()).await.answer().await;
        assert_eq!(tool_text(&answer), expected, "{peer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn env_headers_are_ignored_without_an_allow_list_and_rejected_if_malformed() {
    for (names, value, status, expected) in [
        (&[][..], "ann", 200, "nobody"),
        (&[], "a\tb", 200, "nobody"),
        (&["OTHER"], "a\tb", 200, "nobody"),
        (&["TENANT"], "a\tb", 400, ""),
    ] {
        let host = host(&tenant(), names);
        let client = Client::new(&host).over(LOCAL).with("x-env-tenant", value);
        let response = client.post(&ModernRequest::tool("tenant").value()).await;
        assert_eq!(response.status, status, "{names:?} {value:?}");
        let answer = response.answer().await;
        if status == 200 {
            assert_eq!(tool_text(&answer), expected);
        } else {
            assert!(!answer.to_string().contains(value), "{answer}");
        }
    }
    let host = host(&tenant(), &["TENANT"]);
    let in_params = ModernRequest::tool("tenant").param("env", json!({ "TENANT": "ann" })).value();
    let answer = Client::new(&host).over(LOCAL).post(&in_params).await.answer().await;
    assert_eq!(tool_text(&answer), "nobody", "variables never come in a message");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_never_mix_env_values_of_different_tenants() {
    const CALLS: usize = 10_000;
    const AT_ONCE: usize = 100;
    let host = host(&tenant(), &["TENANT"]);
    let bare = Client::new(&host).over(LOCAL);
    let mut clients = Vec::new();
    for tenant in ["ann", "bob"] {
        let with = bare.clone().with("x-env-tenant", tenant);
        clients.push((tenant, with.clone().initialized("2025-11-25").await.without("x-env-tenant"), false));
        clients.push((tenant, with, true));
    }
    for first in (0..CALLS).step_by(AT_ONCE) {
        let mut running = Vec::new();
        for call in first..first + AT_ONCE {
            let (tenant, client, modern) = clients[call % clients.len()].clone();
            running.push(tokio::spawn(async move {
                let request =
                    if modern { ModernRequest::tool("tenant").value() } else { legacy_tool(call, "tenant") };
                assert_eq!(tool_text(&client.post(&request).await.answer().await), tenant);
            }));
        }
        for call in running {
            within(call).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn secret_in_handler_output_is_redacted() {
    const KEY: &str = "sk-sentinel-0123";
    let leak = async |cx: Context, how: EnvArguments| -> Result<String, ToolError> {
        let key = cx.env("API_KEY").map(|key| key.expose().to_owned()).unwrap_or_default();
        cx.progress_with(1, None, format!("using {key}"));
        cx.log(LoggingLevel::Error, json!({ "key": key }));
        match how.how.as_str() {
            "said" => Ok(format!("the key is {key}, {key}")),
            "failed" => Err(ToolError::new(format!("bad key {key}"))),
            _ => Err(Refusal::INTERNAL.with_message(format!("bad key {key}")).into()),
        }
    };
    let host = host(&Server::new("s").with(Tool::new("leak").run(leak)), &["API_KEY"]);
    let client = Client::new(&host).over(LOCAL).with("x-env-api-key", KEY);
    let session = client.clone().initialized("2025-11-25").await.without("x-env-api-key");
    session.post(&legacy(0, "logging/setLevel", json!({ "level": "debug" }))).await.answer().await;
    for how in ["said", "failed", "refused"] {
        let arguments = json!({ "how": how });
        let modern =
            ModernRequest::tool("leak").token("t").level("debug").arguments(arguments.clone()).value();
        let params = json!({ "name": "leak", "arguments": arguments, "_meta": { "progressToken": "t" } });
        for messages in [
            client.post(&modern).await.rest().await,
            session.post(&legacy(how, "tools/call", params)).await.rest().await,
        ] {
            assert_eq!(messages.len(), 3, "{messages:?}");
            let all = Value::from(messages).to_string();
            assert!(!all.contains(KEY) && all.matches("[secret]").count() >= 3, "{all}");
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EnvArguments {
    how: String,
}

#[tokio::test(start_paused = true)]
async fn secret_of_an_earlier_input_round_is_redacted() {
    const KEY: &str = "sk-sentinel-0123";
    let tool = async |cx: Context| -> Result<String, ToolError> {
        let key = cx.env("API_KEY").map(|key| key.expose().to_owned()).unwrap_or_default();
        cx.ask(trunkline_server::roots().key("r")).await?;
        Ok(format!("{key} then {}", cx.env("API_KEY").is_some()))
    };
    let host = host(&Server::new("s").with(Tool::new("rounds").run(tool)), &["API_KEY"]);
    let bare = Client::new(&host).over(LOCAL);
    let request = ModernRequest::tool("rounds");
    let asked = bare.clone().with("x-env-api-key", KEY).post(&request.value()).await.answer().await;
    let next = request.answers(json!({ "r": { "roots": [] } })).after(&asked);
    let answer = bare.post(&next.value()).await.answer().await;
    assert_eq!(text(&answer), "[secret] then false", "the environment is that of the latest request");
}
