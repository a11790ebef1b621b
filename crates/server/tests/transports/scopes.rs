//! Tools that require scopes, and what handlers learn of the token of their caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::request::Parts;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use trunkline_server::http::{
    Authenticated, AuthenticationResult, Authenticator, HttpServerOptions, ProtectedResource,
};
use trunkline_server::protocol::RawJson;
use trunkline_server::session::Principal;
use trunkline_server::transport::Channel as _;
use trunkline_server::{AccessGrant, Context, ServerLimits, Tool};

use crate::http_client::{send, status, to};
use crate::service::{Service, initialize, modern, tool, within};
use crate::transport_link::{TransportLink, open_sse, open_websocket};

/// Takes the scopes of a request from its header: the token is not what is tested here.
#[derive(Debug)]
struct HeaderScopes;

impl Authenticator for HeaderScopes {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        let scopes = request.headers.get("x-scopes").map_or("", |scopes| scopes.to_str().unwrap());
        let grant = AccessGrant::new()
            .with_scopes(scopes.split_whitespace())
            .with_client_id("client-1")
            .with_issuer("https://login.example")
            .with_claims(RawJson::from(json!({ "department": "sales" })));
        let sender = Authenticated::new(Principal::Named("ann".into())).with_grant(grant);
        AuthenticationResult::Ready(Ok(sender))
    }
}

async fn service() -> (Service, Arc<AtomicUsize>) {
    let resource = ProtectedResource::new("https://hub.example/mcp").unwrap();
    let options = HttpServerOptions {
        authenticator: Arc::new(HeaderScopes),
        protected_resource: Some(resource),
        ..HttpServerOptions::default()
    };
    let service = Service::start_with(options, ServerLimits::default()).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let guarded =
        Tool::new("guarded").require_scopes(["files:read", "files:write"]).run(move |cx: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let caller = cx.caller();
                let issuer = caller.grant.as_ref().and_then(|grant| grant.issuer.clone());
                format!(
                    "{:?} {issuer:?} {:?}",
                    caller.oauth_client_id(),
                    caller.claims().map(RawJson::as_str)
                )
            }
        });
    service.parts.add(guarded).unwrap();
    (service, runs)
}

const ALL: &str = "other files:write files:read";

fn scopes_in(answer: &Value) -> &Value {
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    &answer["error"]["data"]["requiredScopes"]
}

#[tokio::test]
async fn missing_scope_is_403_with_a_challenge_in_both_eras() {
    let (service, runs) = service().await;
    let address = service.address;
    let opening = to(address, "POST", "/mcp");
    let (_, headers) = status(address, opening, &initialize("2025-11-25").to_string()).await;
    let legacy = |scopes: &str| {
        let post = to(address, "POST", "/mcp").header("mcp-session-id", &headers["mcp-session-id"]);
        (post.header("x-scopes", scopes), tool(1, "guarded", json!({})))
    };
    let modern = |scopes: &str| {
        let post = to(address, "POST", "/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "guarded");
        (post.header("x-scopes", scopes), modern(1, "tools/call", json!({ "name": "guarded" })))
    };
    for (scopes, expected) in [("", 403), ("files:write", 403), ("files:readwrite", 403), (ALL, 200)] {
        for (post, message) in [legacy(scopes), modern(scopes)] {
            let before = runs.load(Ordering::SeqCst);
            let response = send(address, post, message.to_string()).await;
            assert_eq!(response.status(), expected, "{scopes}");
            let challenge =
                response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&body).unwrap();
            if expected == 200 {
                let text = answer["result"]["content"][0]["text"].as_str().unwrap();
                let wanted =
                    r#"Some("client-1") Some("https://login.example") Some("{\"department\":\"sales\"}")"#;
                assert_eq!((text, challenge), (wanted, None));
                continue;
            }
            assert_eq!(
                challenge.unwrap(),
                r#"Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp""#
            );
            assert_eq!(scopes_in(&answer), &json!(["files:read", "files:write"]));
            assert_eq!(runs.load(Ordering::SeqCst), before, "the handler does not run");
        }
    }
}

#[tokio::test]
async fn missing_scope_is_an_error_on_channels_and_stdio_needs_none() {
    let (service, runs) = service().await;
    for (scopes, expected) in [("files:read", json!(["files:read", "files:write"])), (ALL, Value::Null)] {
        let headers = [("x-scopes", scopes)];
        let message = modern(1, "tools/call", json!({ "name": "guarded" })).to_string();
        let mut socket = open_websocket(service.address, &headers).await;
        socket.send(&message);
        within(std::future::poll_fn(|cx| socket.poll_flush(cx))).await.unwrap();
        let answer = within(std::future::poll_fn(|cx| socket.poll_receive(cx))).await.unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["error"]["data"]["requiredScopes"], expected, "{answer}");
        let (mut events, messages) = open_sse(service.address, &headers).await;
        for message in [initialize("2024-11-05"), tool(1, "guarded", json!({}))] {
            let post = to(service.address, "POST", &messages).header("x-scopes", scopes);
            assert_eq!(status(service.address, post, &message.to_string()).await.0, 202);
        }
        assert_eq!(within(events.message()).await.unwrap()["id"], 0);
        let answer = within(events.message()).await.unwrap();
        assert_eq!(answer["error"]["data"]["requiredScopes"], expected, "{answer}");
    }
    let before = runs.load(Ordering::SeqCst);
    let mut local = TransportLink::open("memory", &service).await;
    local.send(&modern(2, "tools/call", json!({ "name": "guarded" }))).await;
    assert!(local.receive().await["result"].is_object());
    assert_eq!(runs.load(Ordering::SeqCst), before + 1);
}
