//! The metadata of the endpoint as a protected resource.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use trunkline_server::ServerLimits;
use trunkline_server::http::{BearerTokens, HttpServerOptions, ProtectedResource};

use crate::http_client::{send, to};
use crate::service::Service;

async fn service() -> Service {
    let resource = ProtectedResource::new("https://hub.example/team/mcp")
        .unwrap()
        .authorization_server("https://login.example")
        .scopes(["mcp:use"]);
    let options = HttpServerOptions {
        authenticator: Arc::new(BearerTokens::new([("ann", "ann-token-0123456")])),
        protected_resource: Some(resource),
        ..HttpServerOptions::default()
    };
    Service::start_with(options, ServerLimits::default()).await
}

#[tokio::test]
async fn metadata_is_public_at_the_root_and_below_both_paths() {
    let service = service().await;
    for path in ["", "/mcp", "/team/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        for origin in [None, Some("https://any.example")] {
            for method in ["GET", "HEAD", "OPTIONS", "POST"] {
                let mut request = to(service.address, method, &path);
                if let Some(origin) = origin {
                    request = request.header("origin", origin);
                }
                let response = send(service.address, request, String::new()).await;
                let expected = match method {
                    "OPTIONS" => 204,
                    "POST" => 405,
                    _ => 200,
                };
                assert_eq!(response.status(), expected, "{method} {path}");
                assert_eq!(response.headers()["access-control-allow-origin"], "*");
                if method != "GET" {
                    continue;
                }
                assert_eq!(response.headers()["content-type"], "application/json");
                let body = response.into_body().collect().await.unwrap().to_bytes();
                let document: Value = serde_json::from_slice(&body).unwrap();
                let expected = json!({
                    "resource": "https://hub.example/team/mcp",
                    "authorization_servers": ["https://login.example"],
                    "scopes_supported": ["mcp:use"],
                    "bearer_methods_supported": ["header"],
                });
                assert_eq!(document, expected);
            }
        }
    }
}

#[tokio::test]
async fn unknown_well_known_documents_are_404_in_json() {
    for service in [service().await, Service::start().await] {
        for path in [
            "/.well-known/oauth-protected-resource/other",
            "/.well-known/oauth-protected-resourcemcp",
            "/.well-known/openid-configuration",
            "/.well-known/",
        ] {
            let response = send(service.address, to(service.address, "GET", path), String::new()).await;
            assert_eq!(response.status(), 404, "{path}");
            assert_eq!(response.headers()["content-type"], "application/json");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(serde_json::from_slice::<Value>(&body).is_ok(), "{body:?}");
        }
    }
    let foreign = http::Request::get("/.well-known/oauth-protected-resource").header("host", "evil.example");
    let service = service().await;
    assert_eq!(
        send(service.address, foreign, String::new()).await.status(),
        403,
        "a Host is checked all the same"
    );
}
