//! A resource server with real issuers: each row of the table of refusals, and what outlives a token.

mod dpop;
#[path = "../../../../auth/tests/issuer/issuer_server.rs"]
mod issuer_server;
mod issuers;
mod metadata;
mod streams;
mod tokens;

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use trunkline_server::http::resource_server::{ResourceServer, ResourceServerOptions};
use trunkline_server::http::{BearerTokens, HttpServerOptions};
use trunkline_server::{Context, ServerLimits, Tool};

use self::issuer_server::{IssuerKey, IssuerServer, RESOURCE};
use crate::http_client::{send, to};
use crate::service::{Service, modern};

pub(crate) const METADATA: &str =
    r#"resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp""#;

/// A resource server with one issuer that has one key.
struct ResourceFixture {
    service: Service,
    issuer: IssuerServer,
    key: IssuerKey,
    authenticator: ResourceServer,
    static_tokens: BearerTokens,
}

/// A response that was read whole.
#[derive(Debug)]
struct WholeResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl WholeResponse {
    fn challenges(&self) -> Vec<&str> {
        self.headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

fn options(issuer: &IssuerServer) -> ResourceServerOptions {
    ResourceServerOptions::new(RESOURCE)
        .with_issuer(issuer.trusted())
        .with_static_tokens(BearerTokens::new([("cron", "cron-token-0123456")]))
        .with_required_scopes(["mcp:use"])
}

impl ResourceFixture {
    async fn start(change: impl FnOnce(&mut ResourceServerOptions, &IssuerServer)) -> Self {
        let issuer = IssuerServer::start().await;
        let key = IssuerKey::new("a");
        issuer.set_keys(&[&key]);
        let mut options = options(&issuer);
        change(&mut options, &issuer);
        let static_tokens = options.static_tokens.clone().unwrap();
        let authenticator = ResourceServer::new(options).unwrap();
        let http = HttpServerOptions {
            authenticator: Arc::new(authenticator.clone()),
            ..HttpServerOptions::default()
        };
        let service = Service::start_with(http, ServerLimits::default()).await;
        let whoami = Tool::new("whoami").run(async |cx: Context| cx.caller().principal.to_string());
        service.parts.add(whoami).unwrap();
        Self { service, issuer, key, authenticator, static_tokens }
    }

    /// Signs a token with changed claims.
    fn token(&self, changes: Value) -> String {
        self.key.sign(Some("at+jwt"), self.claims(changes))
    }

    fn claims(&self, changes: Value) -> Value {
        let mut claims = self.issuer.claims("ann");
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    /// Calls a tool with headers.
    async fn call_with(&self, path: &str, headers: &[(&str, &str)]) -> WholeResponse {
        let post = to(self.service.address, "POST", path)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "whoami");
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, *value));
        let message = modern(1, "tools/call", json!({ "name": "whoami" })).to_string();
        let response = send(self.service.address, post, message).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        WholeResponse { status, headers, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
    }

    async fn call(&self, token: &str) -> WholeResponse {
        self.call_with("/mcp", &[("authorization", &format!("Bearer {token}"))]).await
    }

    /// Asserts that a response is the call of a subject.
    fn assert_called_by(&self, response: &WholeResponse, subject: &str) {
        let expected = format!("{} {subject}", self.issuer.issuer());
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.body["result"]["content"][0]["text"], expected);
    }
}
